package io.pyconnect.host;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Properties;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/**
 * The configuration of java.util.logging. Java makes it when a plugin logs by that for the first
 * time, not before, because java.util.logging looks for services in all jars of Kafka.
 */
public final class JavaUtilLogging {
    private static final Map<String, String> LEVELS =
            Map.of(
                    "TRACE", "FINEST",
                    "DEBUG", "FINE",
                    "WARN", "WARNING",
                    "ERROR", "SEVERE",
                    "FATAL", "OFF");

    public JavaUtilLogging() throws IOException {
        // In this order: no change of a level is missed.
        Logs.follow(JavaUtilLogging::update);
        LogManager.getLogManager().readConfiguration(described());
    }

    private static void update() {
        try {
            var manager = LogManager.getLogManager();
            manager.updateConfiguration(described(), key -> (before, now) -> now);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    private static InputStream described() throws IOException {
        var described = new Properties();
        described.setProperty("handlers", ToWorker.class.getName());
        Logs.levels(
                (logger, level) ->
                        described.setProperty(
                                (logger.equals("root") ? "" : logger) + ".level",
                                LEVELS.getOrDefault(level, level)));
        var text = new ByteArrayOutputStream();
        described.store(text, null);
        return new ByteArrayInputStream(text.toByteArray());
    }

    /** Public, because java.util.logging makes it. */
    public static final class ToWorker extends Handler {
        @Override
        public void publish(LogRecord record) {
            var formatter = new SimpleFormatter();
            Logs.log(
                    String.valueOf(record.getLoggerName()),
                    level(record.getLevel().intValue()),
                    () -> formatter.formatMessage(record),
                    record.getThrown());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}

        private static String level(int number) {
            if (number >= Level.SEVERE.intValue()) {
                return "ERROR";
            } else if (number >= Level.WARNING.intValue()) {
                return "WARN";
            } else if (number >= Level.INFO.intValue()) {
                return "INFO";
            }
            return number >= Level.FINE.intValue() ? "DEBUG" : "TRACE";
        }
    }
}
