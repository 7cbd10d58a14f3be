package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;
import org.slf4j.helpers.MessageFormatter;

/**
 * Sends what plugins log as frames to the worker's own log.
 *
 * <p>Loggers of SLF4J are made here. java.util.logging has a handler and Log4j 1 an appender ({@link
 * Log4j1}) that bring their lines here; those of Log4j 2 come by SLF4J ({@link Log4jProvider}). The
 * worker sends the levels of the loggers that it knows; any other logger has the level of the
 * nearest one above it.
 */
public final class Logs {
    private static final List<String> LEVELS =
            List.of("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF");
    private static final int INFO = LEVELS.indexOf("INFO");
    private static final Map<String, Integer> SET = new ConcurrentHashMap<>();
    private static final List<Runnable> FOLLOWERS = new CopyOnWriteArrayList<>();
    private static final Map<String, Logger> LOGGERS = new ConcurrentHashMap<>();
    private static volatile int changes;

    private Logs() {}

    static void begin() {
        bindSlf4j();
        System.setProperty("java.util.logging.config.class", JavaUtilLogging.class.getName());
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

    /** Sets the levels of loggers by name; there are never fewer than the last time. */
    static synchronized void setLevels(JsonNode levels) {
        for (var each : levels.properties()) {
            SET.put(each.getKey(), LEVELS.indexOf(each.getValue().asText()));
        }
        changes++;
        FOLLOWERS.forEach(Logs::update);
    }

    /** This is the thread that reads frames: code of a plugin must not end it. */
    private static void update(Runnable library) {
        try {
            library.run();
        } catch (RuntimeException | LinkageError failed) {
            var text = "A logging library of the plugin does not take the worker's levels";
            log(Logs.class.getName(), LEVELS.indexOf("WARN"), text, failed);
        }
    }

    /** Has {@code update} called whenever levels change, for a library that checks them itself. */
    static void follow(Runnable update) {
        FOLLOWERS.add(update);
    }

    /** Gives {@code taker} the name of each logger that has a level, and that of the level. */
    static void levels(BiConsumer<String, String> taker) {
        SET.forEach((logger, level) -> taker.accept(logger, LEVELS.get(level)));
    }

    /** Sends a line of a library that has levels of its own: a plugin may have set them lower. */
    static void log(String logger, String level, Supplier<String> text, Throwable error) {
        int known = LEVELS.indexOf(level);
        int number = known < 0 ? INFO : known;
        if (number >= levelOf(logger)) {
            log(logger, number, text.get(), error);
        }
    }

    /** Returns the logger of SLF4J with a name. */
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
        var session = Session.of(Thread.currentThread());
        if (session == null || session.isOver()) {
            // A thread that all sessions use, such as one of the virtual machine's own pool.
            session = Session.first();
        }
        if (session == null) {
            Host.ERR.println(line);
        } else {
            send(session, line);
        }
    }

    private static void send(Session session, Map<String, Object> line) {
        try {
            session.link().send(Link.LOG, 0, line);
        } catch (UncheckedIOException gone) {
            // What a plugin logs while its connection ends must not end the work that ends it.
            Host.ERR.println(line);
        }
    }

    /** The methods of one logger of SLF4J, sixty in all: names and arguments tell which is called. */
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
                // A marker may be null.
                int first = method.getParameterTypes()[0] == Marker.class ? 1 : 0;
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
}
