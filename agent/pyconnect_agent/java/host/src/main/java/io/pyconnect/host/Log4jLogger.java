package io.pyconnect.host;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.AbstractLogger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A logger of Log4j 2 that gives its lines to SLF4J, whose classes all plugins share. */
final class Log4jLogger extends AbstractLogger {
    private static final long serialVersionUID = 1;

    private final transient Logger logger;

    Log4jLogger(String name, MessageFactory messages) {
        super(name, messages);
        logger = LoggerFactory.getLogger(name.isEmpty() ? Logger.ROOT_LOGGER_NAME : name);
    }

    @Override
    public Level getLevel() {
        for (var level : new Level[] {Level.TRACE, Level.DEBUG, Level.INFO, Level.WARN}) {
            if (isOn(level)) {
                return level;
            }
        }
        return Level.ERROR;
    }

    @Override
    public void logMessage(
            String caller, Level level, Marker marker, Message message, Throwable error) {
        var text = message.getFormattedMessage();
        var cause = error == null ? message.getThrowable() : error;
        if (level.isMoreSpecificThan(Level.ERROR)) {
            logger.error(text, cause);
        } else if (level.isMoreSpecificThan(Level.WARN)) {
            logger.warn(text, cause);
        } else if (level.isMoreSpecificThan(Level.INFO)) {
            logger.info(text, cause);
        } else if (level.isMoreSpecificThan(Level.DEBUG)) {
            logger.debug(text, cause);
        } else {
            logger.trace(text, cause);
        }
    }

    private boolean isOn(Level level) {
        if (level.isMoreSpecificThan(Level.ERROR)) {
            return logger.isErrorEnabled();
        } else if (level.isMoreSpecificThan(Level.WARN)) {
            return logger.isWarnEnabled();
        } else if (level.isMoreSpecificThan(Level.INFO)) {
            return logger.isInfoEnabled();
        }
        return level.isMoreSpecificThan(Level.DEBUG)
                ? logger.isDebugEnabled()
                : logger.isTraceEnabled();
    }

    // One question, with or without the arguments of the message

    @Override
    public boolean isEnabled(Level level, Marker marker, Message text, Throwable error) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, CharSequence text, Throwable error) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, Object text, Throwable error) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text, Throwable error) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text, Object... values) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text, Object p0) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text, Object p0, Object p1) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(Level level, Marker marker, String text, Object p0, Object p1, Object p2) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4,
            Object p5) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4,
            Object p5,
            Object p6) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4,
            Object p5,
            Object p6,
            Object p7) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4,
            Object p5,
            Object p6,
            Object p7,
            Object p8) {
        return isOn(level);
    }

    @Override
    public boolean isEnabled(
            Level level,
            Marker marker,
            String text,
            Object p0,
            Object p1,
            Object p2,
            Object p3,
            Object p4,
            Object p5,
            Object p6,
            Object p7,
            Object p8,
            Object p9) {
        return isOn(level);
    }
}
