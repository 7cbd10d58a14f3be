package io.pyconnect.host;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URLClassLoader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The appender of Log4j 1 or reload4j, for a plugin that brings one of them.
 *
 * <p>Each plugin has a copy of its own, and the host has none to be compiled against: classes and
 * methods are looked up by their names.
 */
final class Log4j1 implements InvocationHandler {
    private static final Logger LOG = LoggerFactory.getLogger(Log4j1.class);

    private final ClassLoader loader;

    private Log4j1(ClassLoader loader) {
        this.loader = loader;
    }

    /** Has the lines of a location's Log4j 1 come to the worker, if the location has it. */
    static void follow(URLClassLoader loader) {
        if (!has(loader, "spi/RootLogger") || has(loader, "bridge/LogEventAdapter")) {
            // There is none, or one that gives its lines to Log4j 2.
            return;
        }
        if (System.getProperty("log4j.configuration") != null) {
            return;
        }
        // Without this it would look for a configuration, which may print the lines too.
        System.setProperty("log4j.defaultInitOverride", "true");
        try {
            var appender = new Log4j1(loader);
            var type = appender.type("Appender");
            var proxy = Proxy.newProxyInstance(loader, new Class<?>[] {type}, appender);
            var root = appender.type("Logger").getMethod("getRootLogger").invoke(null);
            appender.type("Category").getMethod("addAppender", type).invoke(root, proxy);
            Logs.follow(appender::update);
            appender.update();
        } catch (ReflectiveOperationException | RuntimeException | LinkageError failed) {
            LOG.warn("Lines of a plugin's Log4j 1 are lost", failed);
        }
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (method.getDeclaringClass() == Object.class) {
            return method.invoke(this, arguments);
        }
        if (method.getName().equals("doAppend")) {
            print(arguments[0]);
        }
        return method.getReturnType() == boolean.class ? false : null;
    }

    private void print(Object event) throws ReflectiveOperationException {
        var thrown = get(event, "getThrowableInformation");
        var text = String.valueOf(get(event, "getRenderedMessage"));
        Logs.log(
                (String) get(event, "getLoggerName"),
                String.valueOf(get(event, "getLevel")),
                () -> text,
                thrown == null ? null : (Throwable) get(thrown, "getThrowable"));
    }

    private void update() {
        Logs.levels(
                (logger, level) -> {
                    try {
                        setLevel(logger, level);
                    } catch (ReflectiveOperationException failed) {
                        throw new IllegalStateException(failed);
                    }
                });
    }

    private void setLevel(String logger, String level) throws ReflectiveOperationException {
        var found =
                logger.equals("root")
                        ? type("Logger").getMethod("getRootLogger").invoke(null)
                        : type("Logger").getMethod("getLogger", String.class).invoke(null, logger);
        var parsed = type("Level").getMethod("toLevel", String.class).invoke(null, level);
        type("Category").getMethod("setLevel", type("Level")).invoke(found, parsed);
    }

    private Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName("org.apache.log4j." + name, true, loader);
    }

    private static Object get(Object from, String method) throws ReflectiveOperationException {
        return from.getClass().getMethod(method).invoke(from);
    }

    private static boolean has(URLClassLoader loader, String name) {
        return loader.findResource("org/apache/log4j/" + name + ".class") != null;
    }
}
