package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;

/** Loads the classes of plugins: one loader for each plugin location, as Kafka Connect has it. */
final class Loaders {
    private final Map<List<String>, ClassLoader> byJars = new HashMap<>();

    /** Makes what {@code {"class": …, "jars": […]}} names; jars empty: Kafka's own. */
    <T> T instance(JsonNode plugin, Class<T> type) {
        return instance(load(plugin), type);
    }

    static <T> T instance(Class<?> plugin, Class<T> type) {
        if (!type.isAssignableFrom(plugin)) {
            throw new ConnectException(plugin.getName() + " is not a " + type.getSimpleName());
        }
        try {
            return within(plugin.getClassLoader(), () -> type.cast(construct(plugin)));
        } catch (UnsupportedClassVersionError tooNew) {
            throw tooNew(plugin.getName(), tooNew);
        }
    }

    private static Object construct(Class<?> plugin) {
        try {
            return plugin.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException failed) {
            var cause = failed.getCause() == null ? failed : failed.getCause();
            throw new ConnectException("Could not construct " + plugin.getName(), cause);
        }
    }

    Class<?> load(JsonNode plugin) {
        var jars = new ArrayList<String>();
        plugin.path("jars").forEach(jar -> jars.add(jar.asText()));
        return load(plugin.get("class").asText(), loader(jars));
    }

    static Class<?> load(String name, ClassLoader loader) {
        try {
            return Class.forName(name, true, loader);
        } catch (ClassNotFoundException missing) {
            throw new ConnectException("Failed to find the class " + name, missing);
        } catch (UnsupportedClassVersionError tooNew) {
            throw tooNew(name, tooNew);
        }
    }

    ClassLoader loader(List<String> jars) {
        return jars.isEmpty()
                ? Loaders.class.getClassLoader()
                : byJars.computeIfAbsent(jars, Loaders::newLoader);
    }

    private static ClassLoader newLoader(List<String> jars) {
        var loader = loaderOf(jars);
        Log4j1.follow(loader);
        return loader;
    }

    private static PluginClassLoader loaderOf(List<String> jars) {
        var urls = urls(jars);
        var ours = Loaders.class.getClassLoader();
        var loader = new PluginClassLoader(urls[0], urls, ours);
        if (loader.findResource("org/apache/logging/log4j/spi/Provider.class") == null) {
            return loader;
        }
        // The plugin's Log4j is another than ours: the classes that it logs with are to be its own.
        urls = Arrays.copyOf(urls, urls.length + 1);
        urls[urls.length - 1] = Loaders.class.getProtectionDomain().getCodeSource().getLocation();
        return new PluginClassLoader(urls[0], urls, ours);
    }

    /** Runs {@code work} with the loader that its libraries look their services up with. */
    static <T> T within(ClassLoader loader, Supplier<T> work) {
        var thread = Thread.currentThread();
        var before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            return work.get();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static ConnectException tooNew(String name, UnsupportedClassVersionError error) {
        return new ConnectException(
                name
                        + " needs a newer Java than "
                        + System.getProperty("java.version")
                        + " in "
                        + System.getProperty("java.home")
                        + "; set agent.java.home to a newer one. "
                        + error.getMessage(),
                error);
    }

    private static URL[] urls(List<String> jars) {
        var urls = new ArrayList<URL>();
        for (var jar : jars) {
            try {
                urls.add(new File(jar).toURI().toURL());
            } catch (MalformedURLException invalid) {
                throw new ConnectException("Not the path of a jar: " + jar, invalid);
            }
        }
        return urls.toArray(URL[]::new);
    }
}
