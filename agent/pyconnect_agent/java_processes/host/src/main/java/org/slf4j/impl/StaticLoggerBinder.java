package org.slf4j.impl;

import io.pyconnect.host.Logs;
import org.slf4j.ILoggerFactory;
import org.slf4j.spi.LoggerFactoryBinder;

/** The binding of SLF4J 1.7, which finds it by its name: loggers are those of the host. */
public final class StaticLoggerBinder implements LoggerFactoryBinder {
    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();

    public static StaticLoggerBinder getSingleton() {
        return SINGLETON;
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return Logs::logger;
    }

    @Override
    public String getLoggerFactoryClassStr() {
        return Logs.class.getName();
    }
}
