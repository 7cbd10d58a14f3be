package io.pyconnect.host;

import java.util.Map;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;

/**
 * Metrics for plugins (KIP-877), which are shown nowhere. A class of its own: Kafka before 4.1 lacks
 * the types, and Java must not load them there.
 */
final class PluginsMetrics {
    private static final boolean KNOWN = PluginsMetrics.class.getClassLoader()
            .getResource("org/apache/kafka/common/metrics/Monitorable.class") != null;

    private PluginsMetrics() {}

    static void give(Object plugin) {
        if (KNOWN) {
            Kip877.give(plugin);
        }
    }

    static PluginMetrics create() {
        return Kip877.create();
    }

    private static final class Kip877 {
        static void give(Object plugin) {
            if (plugin instanceof Monitorable monitorable) {
                monitorable.withPluginMetrics(create());
            }
        }

        static PluginMetrics create() {
            return new PluginMetricsImpl(new Metrics(), Map.of());
        }
    }
}
