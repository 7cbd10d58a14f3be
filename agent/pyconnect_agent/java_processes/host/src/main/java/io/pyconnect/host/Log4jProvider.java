package io.pyconnect.host;

import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.spi.LoggerContext;
import org.apache.logging.log4j.spi.LoggerContextFactory;
import org.apache.logging.log4j.spi.Provider;

/**
 * Gives Log4j 2 loggers that write to the worker's log. Log4j finds it as a service.
 *
 * <p>For a plugin that brings a copy of Log4j, {@link Loaders} loads this class and {@link
 * Log4jLogger} once more, beside that copy.
 */
public final class Log4jProvider extends Provider {
    /** Log4j's own implementation has 10, its bridge to SLF4J 15. */
    private static final int PRIORITY = 20;

    public Log4jProvider() {
        super(PRIORITY, "2.6.0", Context.class);
    }

    /** The only context, which is also the factory of contexts. */
    public static final class Context implements LoggerContextFactory, LoggerContext {
        private final Map<String, ExtendedLogger> loggers = new ConcurrentHashMap<>();

        @Override
        public LoggerContext getContext(String caller, ClassLoader loader, Object at, boolean current) {
            return this;
        }

        @Override
        public LoggerContext getContext(
                String caller, ClassLoader loader, Object at, boolean current, URI from, String name) {
            return this;
        }

        @Override
        public void removeContext(LoggerContext removed) {}

        @Override
        public Object getExternalContext() {
            return null;
        }

        @Override
        public ExtendedLogger getLogger(String name) {
            return loggers.computeIfAbsent(name, each -> Log4jLogger.of(each, null));
        }

        @Override
        public ExtendedLogger getLogger(String name, MessageFactory messages) {
            return messages == null ? getLogger(name) : Log4jLogger.of(name, messages);
        }

        @Override
        public boolean hasLogger(String name) {
            return loggers.containsKey(name);
        }

        @Override
        public boolean hasLogger(String name, MessageFactory messages) {
            return hasLogger(name);
        }

        @Override
        public boolean hasLogger(String name, Class<? extends MessageFactory> messages) {
            return hasLogger(name);
        }
    }
}
