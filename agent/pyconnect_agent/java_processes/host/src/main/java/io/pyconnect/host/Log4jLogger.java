package io.pyconnect.host;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Comparator;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.spi.ExtendedLoggerWrapper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives the lines of a logger of Log4j 2 to SLF4J, whose classes all plugins share.
 *
 * <p>It is wrapped by Log4j's own wrapper, which implements all methods of a logger by three: {@code
 * isEnabled} (in many forms), {@code getLevel} and {@code logMessage}.
 */
final class Log4jLogger implements InvocationHandler {
    /** Levels of SLF4J, the most specific first; a level between two of them counts as the second. */
    private enum At {
        ERROR(Level.ERROR, Logger::isErrorEnabled, Logger::error),
        WARN(Level.WARN, Logger::isWarnEnabled, Logger::warn),
        INFO(Level.INFO, Logger::isInfoEnabled, Logger::info),
        DEBUG(Level.DEBUG, Logger::isDebugEnabled, Logger::debug),
        TRACE(Level.TRACE, Logger::isTraceEnabled, Logger::trace);

        private final Level level;
        private final Predicate<Logger> isOn;
        private final Print print;

        At(Level level, Predicate<Logger> isOn, Print print) {
            this.level = level;
            this.isOn = isOn;
            this.print = print;
        }

        static At of(Object level) {
            for (var each : values()) {
                if (((Level) level).isMoreSpecificThan(each.level)) {
                    return each;
                }
            }
            return TRACE;
        }
    }

    private interface Print {
        void print(Logger logger, String text, Throwable error);
    }

    private final Logger logger;

    private Log4jLogger(String name) {
        logger = LoggerFactory.getLogger(name.isEmpty() ? Logger.ROOT_LOGGER_NAME : name);
    }

    static ExtendedLogger of(String name, MessageFactory messages) {
        var types = new Class<?>[] {ExtendedLogger.class};
        var loader = Log4jLogger.class.getClassLoader();
        var end = (ExtendedLogger) Proxy.newProxyInstance(loader, types, new Log4jLogger(name));
        return new ExtendedLoggerWrapper(end, name, messages);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        return switch (method.getName()) {
            case "isEnabled" -> At.of(arguments[0]).isOn.test(logger);
            case "getLevel" -> level();
            case "logMessage" -> {
                var message = (Message) arguments[3];
                var error = arguments[4] == null ? message.getThrowable() : (Throwable) arguments[4];
                At.of(arguments[1]).print.print(logger, message.getFormattedMessage(), error);
                yield null;
            }
            default -> throw new UnsupportedOperationException(method.getName());
        };
    }

    private Level level() {
        return Stream.of(At.values())
                .filter(each -> each.isOn.test(logger))
                .max(Comparator.naturalOrder())
                .orElse(At.ERROR)
                .level;
    }
}
