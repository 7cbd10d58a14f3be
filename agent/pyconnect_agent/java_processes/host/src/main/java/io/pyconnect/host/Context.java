package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** The requests that connectors and tasks of every kind can make of the worker. */
class Context {
    final Link link;

    Context(Link link) {
        this.link = link;
    }

    public Map<String, String> configs() {
        return strings(link.ask("configs", Map.of()));
    }

    static Map<String, String> strings(JsonNode found) {
        var strings = new LinkedHashMap<String, String>();
        for (var each : found.properties()) {
            strings.put(each.getKey(), each.getValue().isNull() ? null : each.getValue().asText());
        }
        return strings;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> offset(JsonNode found) {
        return (Map<String, Object>) Json.plain(found);
    }

    public PluginMetrics pluginMetrics() {
        return PluginsMetrics.create();
    }

    /** Asks the worker for committed offsets. */
    static final class Offsets implements OffsetStorageReader {
        private final Link link;

        Offsets(Link link) {
            this.link = link;
        }

        @Override
        public <T> Map<String, Object> offset(Map<String, T> partition) {
            return offsets(List.of(partition)).get(partition);
        }

        @Override
        public <T> Map<Map<String, T>, Map<String, Object>> offsets(
                Collection<Map<String, T>> partitions) {
            var asked = new ArrayList<>(partitions);
            var found = link.ask("readOffsets", Map.of("partitions", asked));
            var offsets = new LinkedHashMap<Map<String, T>, Map<String, Object>>();
            for (int i = 0; i < asked.size(); i++) {
                offsets.put(asked.get(i), Context.offset(found.get(i)));
            }
            return offsets;
        }
    }
}
