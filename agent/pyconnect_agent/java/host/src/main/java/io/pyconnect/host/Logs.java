package io.pyconnect.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.helpers.MessageFormatter;

/** What plugins log, by SLF4J or java.util.logging, as frames for the worker's own log. */
public final class Logs {
    private static final List<String> LEVELS =
            List.of("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF");
    private static final int INFO = LEVELS.indexOf("INFO");
    private static final Map<String, Integer> SET = new ConcurrentHashMap<>();
    private static final Map<String, Logger> LOGGERS = new ConcurrentHashMap<>();
    private static volatile Link link;
    private static volatile int changes;

    private Logs() {}

    static void to(Link found) {
        link = found;
        bindSlf4j();
        var name = JavaUtilConfiguration.class.getName();
        System.setProperty("java.util.logging.config.class", name);
    }

    /**
     * Has SLF4J look for its binding. It also lists the bindings in all jars of Kafka, except on
     * Android, and Java keeps the directories of these jars in memory: 3 MiB.
     */
    private static void bindSlf4j() {
        var property = "java.vendor.url";
        var before = System.setProperty(property, "android");
        LoggerFactory.getILoggerFactory();
        System.setProperty(property, before);
    }

    static void setLevels(JsonNode levels) {
        levels.properties().forEach(each -> setLevel(each.getKey(), each.getValue().asText()));
    }

    /** Sets the level of a logger and of all below it. */
    private static void setLevel(String name, String level) {
        if (!name.equals("root")) {
            SET.keySet().removeIf(each -> each.startsWith(name + "."));
        }
        SET.put(name, LEVELS.indexOf(level.toUpperCase(Locale.ROOT)));
        changes++;
    }

    /** Returns the logger that SLF4J gives out. */
    public static Logger logger(String name) {
        return LOGGERS.computeIfAbsent(
                name,
                found ->
                        (Logger)
                                Proxy.newProxyInstance(
                                        Logs.class.getClassLoader(),
                                        new Class<?>[] {Logger.class},
                                        new Calls(found)));
    }

    private static int levelOf(String logger) {
        for (var name = logger; !name.isEmpty(); ) {
            var found = SET.get(name);
            if (found != null) {
                return found;
            }
            name = name.substring(0, Math.max(name.lastIndexOf('.'), 0));
        }
        return SET.getOrDefault("root", INFO);
    }

    private static void log(String logger, int level, String text, Throwable error) {
        var line = new LinkedHashMap<String, Object>();
        line.put("logger", logger);
        line.put("level", LEVELS.get(level));
        line.put("message", String.valueOf(text));
        if (error != null) {
            line.put("trace", Utils.stackTrace(error));
        }
        if (link == null) {
            System.err.println(line);
        } else {
            link.send(Link.LOG, 0, line);
        }
    }

    /** One logger: SLF4J's sixty methods, told apart by their names and arguments. */
    private static final class Calls implements InvocationHandler {
        /** Plugins ask for a level, or log below it, for each record: this is one look-up. */
        private static final Map<String, Integer> WANTED = new HashMap<>();

        static {
            for (var level : List.of("Trace", "Debug", "Info", "Warn", "Error")) {
                int wanted = LEVELS.indexOf(level.toUpperCase(Locale.ROOT));
                WANTED.put(level.toLowerCase(Locale.ROOT), wanted);
                WANTED.put("is" + level + "Enabled", wanted);
            }
        }

        private final String name;
        private volatile int level;
        private volatile int seen = -1;

        Calls(String name) {
            this.name = name;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            if (method.getDeclaringClass() == Object.class) {
                return method.invoke(this, arguments);
            }
            var called = method.getName();
            if (called.equals("getName")) {
                return name;
            }
            if (seen != changes) {
                seen = changes;
                level = levelOf(name);
            }
            int wanted = WANTED.get(called);
            if (method.getReturnType() == boolean.class) {
                return wanted >= level;
            }
            if (wanted >= level) {
                int first = arguments[0] instanceof org.slf4j.Marker ? 1 : 0;
                print(wanted, arguments, first);
            }
            return null;
        }

        private void print(int wanted, Object[] arguments, int first) {
            Object[] values = new Object[arguments.length - first - 1];
            System.arraycopy(arguments, first + 1, values, 0, values.length);
            if (values.length == 1 && values[0] instanceof Object[] many) {
                values = many;
            }
            var text = MessageFormatter.arrayFormat((String) arguments[first], values);
            log(name, wanted, text.getMessage(), text.getThrowable());
        }
    }

    /**
     * The configuration of java.util.logging. Java makes it when a plugin logs by that for the
     * first time, not before, because java.util.logging looks for services in all jars of Kafka.
     */
    public static final class JavaUtilConfiguration {
        public JavaUtilConfiguration() throws IOException {
            var handler = "handlers=" + JavaUtilLogging.class.getName();
            LogManager.getLogManager()
                    .readConfiguration(new ByteArrayInputStream(handler.getBytes(UTF_8)));
        }
    }

    /** Public, because java.util.logging makes it. */
    public static final class JavaUtilLogging extends Handler {
        @Override
        public void publish(LogRecord record) {
            int level = level(record.getLevel());
            if (level >= levelOf(String.valueOf(record.getLoggerName()))) {
                var formatter = new java.util.logging.SimpleFormatter();
                log(
                        String.valueOf(record.getLoggerName()),
                        level,
                        formatter.formatMessage(record),
                        record.getThrown());
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}

        private static int level(Level level) {
            int number = level.intValue();
            if (number >= Level.SEVERE.intValue()) {
                return INFO + 2;
            } else if (number >= Level.WARNING.intValue()) {
                return INFO + 1;
            }
            return number >= Level.INFO.intValue() ? INFO : INFO - 1;
        }
    }
}
