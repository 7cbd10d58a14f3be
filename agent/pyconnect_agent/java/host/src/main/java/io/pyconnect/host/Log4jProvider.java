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
 * How Log4j 2 finds where logs go.
 *
 * <p>A plugin that brings Log4j has this class too, loaded beside its own: see {@link Loaders}.
 */
public final class Log4jProvider extends Provider {
    /** Log4j's own implementation has 10, its bridge to SLF4J 15. */
    private static final int PRIORITY = 20;

    public Log4jProvider() {
        super(PRIORITY, "2.6.0", Factory.class);
    }

    /** Has one context for all. */
    public static final class Factory implements LoggerContextFactory {
        private final LoggerContext context = new Context();

        @Override
        public LoggerContext getContext(
                String caller, ClassLoader loader, Object external, boolean current) {
            return context;
        }

        @Override
        public LoggerContext getContext(
                String caller,
                ClassLoader loader,
                Object external,
                boolean current,
                URI configuration,
                String name) {
            return context;
        }

        @Override
        public void removeContext(LoggerContext removed) {}
    }

    private static final class Context implements LoggerContext {
        private final Map<String, ExtendedLogger> loggers = new ConcurrentHashMap<>();

        @Override
        public Object getExternalContext() {
            return null;
        }

        @Override
        public ExtendedLogger getLogger(String name) {
            return loggers.computeIfAbsent(name, each -> new Log4jLogger(each, null));
        }

        @Override
        public ExtendedLogger getLogger(String name, MessageFactory messages) {
            return messages == null ? getLogger(name) : new Log4jLogger(name, messages);
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
