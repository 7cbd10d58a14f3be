package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.ConnectorContext;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkConnectorContext;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** Runs a connector, or only has it change offsets, for which it is not started. */
final class ConnectorHost implements Host.Answers {
    private final Link link;
    private final Connector connector;
    private final Set<Thread> threads = threads();
    private boolean isStarted;

    ConnectorHost(Link link, Connector connector, Map<String, Object> facts) {
        this.link = link;
        this.connector = connector;
        facts.put("source", connector instanceof SourceConnector);
        facts.put("sink", connector instanceof SinkConnector);
        facts.put("version", connector.version());
    }

    @Override
    public Object answer(JsonNode call) throws IOException {
        var config = Context.strings(call.path("config"));
        switch (call.get("method").asText()) {
            case "initialize" -> connector.initialize(context());
            case "start" -> {
                isStarted = true;
                connector.start(config);
            }
            case "stop" -> end();
            case "taskConfigs" -> {
                return connector.taskConfigs(call.get("maxTasks").asInt());
            }
            case "taskClass" -> {
                return connector.taskClass().getName();
            }
            case "isIdle" -> {
                return isIdle();
            }
            case "alterOffsets" -> {
                return alterOffsets(config, call.get("offsets"));
            }
            default -> throw new IOException("Unknown call " + call);
        }
        return null;
    }

    @Override
    public void end() {
        if (isStarted) {
            isStarted = false;
            connector.stop();
        }
    }

    /** Whether the connector has started no threads and processes that still run. */
    private boolean isIdle() {
        var now = threads();
        now.removeAll(threads);
        now.remove(Thread.currentThread());
        return now.isEmpty() && ProcessHandle.current().children().findAny().isEmpty();
    }

    /** Those of the session: the virtual machine has its own elsewhere. */
    private static Set<Thread> threads() {
        var group = Thread.currentThread().getThreadGroup();
        var found = new Thread[2 * group.activeCount() + 64];
        return new HashSet<>(Arrays.asList(found).subList(0, group.enumerate(found)));
    }

    private boolean alterOffsets(Map<String, String> config, JsonNode changes) {
        if (connector instanceof SinkConnector sink) {
            var offsets = new HashMap<TopicPartition, Long>();
            for (var each : changes) {
                var partition = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
                offsets.put(partition, each.get(2).isNull() ? null : each.get(2).asLong());
            }
            return sink.alterOffsets(config, offsets);
        }
        var offsets = new HashMap<Map<String, ?>, Map<String, ?>>();
        for (var each : changes) {
            offsets.put(Context.offset(each.get(0)), Context.offset(each.get(1)));
        }
        return ((SourceConnector) connector).alterOffsets(config, offsets);
    }

    private ConnectorContext context() {
        return connector instanceof SourceConnector ? new ForSource(link) : new ForSink(link);
    }

    private static class ForSink extends Context implements SinkConnectorContext {
        ForSink(Link link) {
            super(link);
        }

        @Override
        public void requestTaskReconfiguration() {
            link.ask("requestTaskReconfiguration", Map.of());
        }

        @Override
        public void raiseError(Exception error) {
            link.ask("raiseError", Map.of("error", Errors.describe(error)));
        }
    }

    private static final class ForSource extends ForSink implements SourceConnectorContext {
        ForSource(Link link) {
            super(link);
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return new Offsets(link);
        }
    }
}
