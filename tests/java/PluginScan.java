import java.util.Locale;
import java.util.Map;
import org.apache.kafka.connect.runtime.isolation.ClassLoaderFactory;
import org.apache.kafka.connect.runtime.isolation.PluginDiscoveryMode;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.Plugins;

/** Prints the plugins that Kafka Connect finds: {@code PluginScan <plugin.path> <plugin.discovery>}. */
final class PluginScan {
    private PluginScan() {}

    public static void main(String[] arguments) {
        var plugins = new Plugins(Map.of("plugin.discovery", "service_load"));
        var locations = PluginUtils.pluginLocations(arguments[0], false);
        var mode = PluginDiscoveryMode.valueOf(arguments[1].toUpperCase(Locale.ROOT));
        var sources =
                PluginUtils.pluginSources(
                        locations, plugins.delegatingLoader(), new ClassLoaderFactory());
        plugins.initLoaders(sources, mode)
                .forEach(
                        found ->
                                System.out.println(
                                        String.join(
                                                "\t",
                                                "plugin",
                                                found.typeName(),
                                                found.className(),
                                                found.version(),
                                                found.location())));
    }
}
