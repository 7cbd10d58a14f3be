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
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;

/**
 * Loads the classes of plugins: one loader for each plugin location, as in Kafka Connect.
 *
 * <p>A location has its own classes. Of another location it has the plugins, by their names.
 */
final class Loaders {
    private final Map<List<String>, PluginClassLoader> byJars = new ConcurrentHashMap<>();
    private final Map<String, List<String>> jarsByPlugin = new HashMap<>();
    private final ClassLoader parent = new AllPlugins();

    /** Each location is {@code {"jars": […], "classes": […]}}, with the names of its plugins. */
    Loaders(JsonNode locations) {
        for (var location : locations) {
            var jars = texts(location.get("jars"));
            location.get("classes").forEach(name -> jarsByPlugin.put(name.asText(), jars));
        }
    }

    /** The parent of all locations' loaders, as Kafka Connect's {@code DelegatingClassLoader}. */
    private final class AllPlugins extends ClassLoader {
        AllPlugins() {
            super(Loaders.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            var jars = jarsByPlugin.get(name);
            if (jars != null) {
                var location = byJars.computeIfAbsent(jars, Loaders.this::newLoader);
                // Without its file, the location would ask this loader for the class again.
                if (location.findResource(name.replace('.', '/') + ".class") != null) {
                    return location.loadClass(name);
                }
            }
            // Not super.loadClass, which keeps a lock for each name.
            return getParent().loadClass(name);
        }
    }

    /** Constructs what {@code {"class": …, "jars": […]}} names; without jars it is Kafka's. */
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
        return load(plugin.get("class").asText(), loader(texts(plugin.path("jars"))));
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
                : byJars.computeIfAbsent(jars, this::newLoader);
    }

    private PluginClassLoader newLoader(List<String> jars) {
        var loader = loaderOf(jars);
        Log4j1.follow(loader);
        return loader;
    }

    private PluginClassLoader loaderOf(List<String> jars) {
        var urls = urls(jars);
        var loader = new PluginClassLoader(urls[0], urls, parent);
        if (loader.findResource("org/apache/logging/log4j/spi/Provider.class") == null) {
            return loader;
        }
        // The plugin brings Log4j: the host's classes that extend Log4j's have to extend this copy.
        urls = Arrays.copyOf(urls, urls.length + 1);
        urls[urls.length - 1] = Loaders.class.getProtectionDomain().getCodeSource().getLocation();
        return new PluginClassLoader(urls[0], urls, parent);
    }

    /** Runs {@code work} with a context class loader: libraries find their services by it. */
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

    private static List<String> texts(JsonNode array) {
        var texts = new ArrayList<String>();
        array.forEach(each -> texts.add(each.asText()));
        return texts;
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
