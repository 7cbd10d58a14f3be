package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Answers questions of validation and discovery about classes of plugins. Starts none of them. */
final class Questions implements Host.Answers {
    private final Loaders loaders;
    private final Map<JsonNode, Object> instances = new HashMap<>();
    private final Map<JsonNode, ConfigDef> definitions = new HashMap<>();

    Questions(Loaders loaders) {
        this.loaders = loaders;
    }

    /** Returns a value of JSON; the {@code plugin} of a question is a class and its jars. */
    @Override
    public Object answer(JsonNode question) {
        var plugin = question.path("plugin");
        var config = Context.strings(question.path("config"));
        return switch (question.get("method").asText()) {
            case "describe" -> describe(question.get("plugins"), question.get("bases"));
            case "load" -> load(plugin, question.get("bases"));
            case "forget" -> forget();
            case "construct" -> instance(plugin).getClass().getName();
            case "config" -> keys(plugin);
            case "check" -> check(plugin, question);
            case "recommend" -> recommend(plugin, question);
            case "validate" -> validate(plugin, config);
            case "exactlyOnceSupport" ->
                    within(plugin, () -> source(plugin).exactlyOnceSupport(config));
            case "canDefineTransactionBoundaries" ->
                    within(plugin, () -> source(plugin).canDefineTransactionBoundaries(config));
            default -> throw new ConnectException("Unknown question " + question.get("method"));
        };
    }

    /** Drops the plugins that were asked, and the values that they were given. */
    private Object forget() {
        instances.clear();
        definitions.clear();
        System.gc();
        return null;
    }

    /**
     * Returns facts of each class: whether it is the location's {@code own}, which of the {@code
     * bases} it has, whether it has a constructor for a plugin ({@code constructible}), its {@code
     * version}. The fact {@code error} is why a class cannot be used.
     */
    private List<Map<String, Object>> describe(JsonNode plugins, JsonNode bases) {
        var found = new ArrayList<Map<String, Object>>();
        for (var plugin : plugins) {
            var described = new LinkedHashMap<String, Object>();
            try {
                var loaded = loaders.load(plugin);
                described.put("own", isOwn(plugin, loaded));
                described.put("bases", bases(loaded, bases));
                described.put("constructible", hasConstructor(loaded));
                described.put("version", version(Loaders.instance(loaded, Object.class)));
            } catch (Throwable failed) {
                // The plugin's code may throw anything.
                described.put("error", text(failed));
            }
            found.add(described);
        }
        return found;
    }

    /** A location may have a copy of Kafka's jars; classes of the API come from the worker's. */
    private boolean isOwn(JsonNode plugin, Class<?> loaded) {
        return plugin.path("jars").isEmpty()
                || loaded.getClassLoader() != Loaders.class.getClassLoader();
    }

    private static boolean hasConstructor(Class<?> loaded) {
        return Stream.of(loaded.getDeclaredConstructors())
                .anyMatch(each -> each.getParameterCount() == 0);
    }

    /** Returns null for a plugin without a version, such as one for an older API. */
    private static String version(Object instance) {
        try {
            // Kafka Connect shows the version null as this text, too.
            return instance instanceof Versioned versioned
                    ? String.valueOf(versioned.version())
                    : null;
        } catch (Throwable failed) {
            return null;
        }
    }

    /** Returns which bases a class has, or null if there is no such class. */
    private Map<String, Object> load(JsonNode plugin, JsonNode bases) {
        Class<?> loaded;
        try {
            loaded = loaders.load(plugin);
        } catch (ConnectException missing) {
            if (missing.getCause() instanceof ClassNotFoundException) {
                return null;
            }
            throw missing;
        }
        return Map.of(
                "bases", bases(loaded, bases),
                "abstract", Modifier.isAbstract(loaded.getModifiers()));
    }

    private static List<String> bases(Class<?> loaded, JsonNode bases) {
        var ours = Questions.class.getClassLoader();
        var found = new ArrayList<String>();
        for (var base : bases) {
            if (Loaders.load(base.asText(), ours).isAssignableFrom(loaded)) {
                found.add(base.asText());
            }
        }
        return found;
    }

    private Object instance(JsonNode plugin) {
        return instances.computeIfAbsent(plugin, each -> loaders.instance(each, Object.class));
    }

    private SourceConnector source(JsonNode plugin) {
        return (SourceConnector) instance(plugin);
    }

    private <T> T within(JsonNode plugin, Supplier<T> work) {
        return Loaders.within(instance(plugin).getClass().getClassLoader(), work);
    }

    /** Returns null if the plugin does; Python refuses that. */
    private ConfigDef definition(JsonNode plugin) {
        if (!definitions.containsKey(plugin)) {
            definitions.put(plugin, within(plugin, () -> settingsOf(instance(plugin))));
        }
        return definitions.get(plugin);
    }

    private static ConfigDef settingsOf(Object instance) {
        if (instance instanceof Connector connector) {
            return connector.config();
        } else if (instance instanceof Converter converter) {
            return converter.config();
        } else if (instance instanceof HeaderConverter converter) {
            return converter.config();
        } else if (instance instanceof Transformation<?> transformation) {
            return transformation.config();
        } else if (instance instanceof Predicate<?> predicate) {
            return predicate.config();
        }
        throw new ConnectException(instance.getClass().getName() + " has no settings to show");
    }

    private List<Map<String, Object>> keys(JsonNode plugin) {
        var definition = definition(plugin);
        if (definition == null) {
            return null;
        }
        return definition.configKeys().values().stream().map(Questions::key).toList();
    }

    private static Map<String, Object> key(ConfigKey key) {
        var shown = new LinkedHashMap<String, Object>();
        shown.put("name", key.name);
        shown.put("type", key.type.name());
        shown.put("required", !key.hasDefault());
        shown.put("default", key.hasDefault() ? defaultText(key) : null);
        shown.put("importance", key.importance.name());
        shown.put("documentation", key.documentation);
        shown.put("group", key.group);
        shown.put("order", key.orderInGroup);
        shown.put("width", key.width.name());
        shown.put("display", key.displayName);
        shown.put("dependents", key.dependents);
        shown.put("validated", key.validator != null);
        shown.put("recommended", key.recommender != null);
        shown.put("internal", key.internalConfig);
        return shown;
    }

    /** Returns a text that can be parsed to the default, also that of a secret. */
    private static String defaultText(ConfigKey key) {
        return key.defaultValue instanceof Password secret
                ? secret.value()
                : text(key.defaultValue, key.type);
    }

    /** Throws what the validator of a key throws. */
    private Object check(JsonNode plugin, JsonNode question) {
        var key = definition(plugin).configKeys().get(question.get("key").asText());
        return within(
                plugin,
                () -> {
                    key.validator.ensureValid(key.name, parsed(key, question.get("value")));
                    return null;
                });
    }

    private Map<String, Object> recommend(JsonNode plugin, JsonNode question) {
        var keys = definition(plugin).configKeys();
        var key = keys.get(question.get("key").asText());
        return within(
                plugin,
                () -> {
                    var values = new HashMap<String, Object>();
                    for (var entry : question.get("parsed").properties()) {
                        var name = entry.getKey();
                        values.put(name, parsed(keys.get(name), entry.getValue()));
                    }
                    var shown =
                            key.recommender.validValues(key.name, values).stream()
                                    .map(value -> text(value, itemType(key.type)))
                                    .toList();
                    return Map.of(
                            "values", shown,
                            "visible", key.recommender.visible(key.name, values));
                });
    }

    private static Object parsed(ConfigKey key, JsonNode value) {
        if (key == null || value.isNull()) {
            return value.isNull() ? null : value.asText();
        }
        return ConfigDef.parseType(key.name, value.asText(), key.type);
    }

    private List<Map<String, Object>> validate(JsonNode plugin, Map<String, String> config) {
        var keys = definition(plugin).configKeys();
        var found = within(plugin, () -> ((Connector) instance(plugin)).validate(config));
        if (found == null) {
            return null;
        }
        return found.configValues().stream().map(value -> value(value, keys.get(value.name()))).toList();
    }

    private static Map<String, Object> value(ConfigValue value, ConfigKey key) {
        var type = key == null ? null : key.type;
        var shown = new LinkedHashMap<String, Object>();
        shown.put("name", value.name());
        shown.put("value", text(value.value(), type));
        shown.put(
                "recommended",
                value.recommendedValues().stream().map(item -> text(item, itemType(type))).toList());
        shown.put("errors", value.errorMessages());
        shown.put("visible", value.visible());
        return shown;
    }

    private static ConfigDef.Type itemType(ConfigDef.Type type) {
        return type == ConfigDef.Type.LIST ? ConfigDef.Type.STRING : type;
    }

    private static String text(Object value, ConfigDef.Type type) {
        return ConfigDef.convertToString(value, type);
    }

    private static String text(Throwable error) {
        var message = Errors.message(error);
        if (!(error instanceof ConnectException)) {
            var name = error.getClass().getName();
            return message == null ? name : name + ": " + message;
        }
        return error.getCause() == null ? message : message + ": " + text(error.getCause());
    }
}
