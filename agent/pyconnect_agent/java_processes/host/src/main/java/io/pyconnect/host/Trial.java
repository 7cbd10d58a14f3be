package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Shows what becomes of records: those of a source task, or given ones that a sink would get. */
final class Trial implements Host.Answers {
    /** Null for a sink, whose task is not made. */
    private final SourceTask task;

    private final Link link;
    private final Chain<SourceRecord> sourceChain;
    private final Chain<SinkRecord> sinkChain;

    Trial(Link link, SourceTask task, JsonNode job, Loaders loaders) {
        this.link = link;
        this.task = task;
        sourceChain = task == null ? null : new Chain<>(job, loaders, link);
        sinkChain = task == null ? new Chain<>(job, loaders, link) : null;
    }

    @Override
    public Object answer(JsonNode call) throws Exception {
        switch (call.get("method").asText()) {
            case "start" -> {
                task.initialize(new SourceHost.TaskContext(link, null));
                task.start(Context.strings(call.path("config")));
            }
            case "poll" -> {
                return polled(call.get("most").asInt());
            }
            case "convert" -> {
                return converted(call.get("given"));
            }
            case "stop" -> {
                if (task == null) {
                    sinkChain.end(() -> {});
                } else {
                    sourceChain.end(task::stop);
                }
            }
            default -> throw new IOException("Unknown call " + call);
        }
        return null;
    }

    private List<Object> polled(int most) throws InterruptedException {
        var records = task.poll();
        var shown = new ArrayList<Object>();
        for (var record : records == null ? List.<SourceRecord>of() : records) {
            if (record != null && shown.size() < most) {
                shown.add(written(record));
            }
        }
        return shown;
    }

    private Map<String, Object> written(SourceRecord polled) {
        var shown = new HashMap<String, Object>();
        shown.put("source_partition", polled.sourcePartition());
        shown.put("source_offset", polled.sourceOffset());
        var steps = new ArrayList<Object>(List.of(step("polled", polled)));
        shown.put("steps", steps);
        try {
            var record = sourceChain.transform(polled, (name, each) -> steps.add(step(name, each)));
            if (record == null) {
                return shown;
            }
            var chain = sourceChain;
            var headers = chain.run("HEADER_CONVERTER", chain.header, () -> chain.headers(record));
            var kafka = new HashMap<String, Object>();
            kafka.put("key", chain.run("KEY_CONVERTER", chain.key, () -> chain.key(record, headers)));
            kafka.put(
                    "value",
                    chain.run("VALUE_CONVERTER", chain.value, () -> chain.value(record, headers)));
            kafka.put("headers", pairs(headers));
            shown.put("kafka", kafka);
        } catch (Chain.Failed failed) {
            steps.add(failure(failed));
        }
        return shown;
    }

    private List<Object> converted(JsonNode given) throws IOException {
        var shown = new ArrayList<Object>();
        for (var each : given) {
            var steps = new ArrayList<Object>();
            shown.add(new HashMap<>(Map.of("steps", steps)));
            try {
                var record = consumed(each);
                steps.add(step("converted", record));
                sinkChain.transform(record, (name, made) -> steps.add(step(name, made)));
            } catch (Chain.Failed failed) {
                steps.add(failure(failed));
            }
        }
        return shown;
    }

    private SinkRecord consumed(JsonNode given) throws IOException, Chain.Failed {
        var headers = new RecordHeaders();
        for (var each : given.get("headers")) {
            headers.add(each.get(0).asText(), bytes(each.get(1)));
        }
        var raw =
                new Columns.Raw(
                        given.get("topic").asText(),
                        given.get("partition").asInt(),
                        given.get("offset").asLong(),
                        given.get("timestamp").asLong(-1),
                        TimestampType.CREATE_TIME.ordinal(),
                        bytes(given.get("key")),
                        bytes(given.get("value")),
                        Columns.packed(headers));
        return SinkHost.record(sinkChain, raw);
    }

    private static byte[] bytes(JsonNode text) throws IOException {
        return text.isNull() ? null : text.binaryValue();
    }

    private static List<Object> pairs(Headers headers) {
        var pairs = new ArrayList<Object>();
        for (var each : headers) {
            var pair = new ArrayList<Object>();
            pair.add(each.key());
            pair.add(each.value());
            pairs.add(pair);
        }
        return pairs;
    }

    /** Null is a record that the transformation has dropped. */
    private static Map<String, Object> step(String name, ConnectRecord<?> record) {
        var step = new HashMap<String, Object>();
        step.put("step", name);
        step.put("record", record == null ? null : fields(record));
        return step;
    }

    private static Map<String, Object> failure(Chain.Failed failed) {
        var step = new HashMap<String, Object>();
        step.put("step", failed.operator.substring(failed.operator.lastIndexOf('.') + 1));
        var error = failed.getCause();
        var cause = error.getCause();
        step.put("error", cause == null ? error.toString() : error + " (" + cause + ")");
        return step;
    }

    private static Map<String, Object> fields(ConnectRecord<?> record) {
        var fields = new LinkedHashMap<String, Object>();
        fields.put("topic", record.topic());
        fields.put("partition", record.kafkaPartition());
        fields.put("timestamp", record.timestamp());
        fields.put("key", text(record.key()));
        fields.put("key_schema", schema(record.keySchema()));
        fields.put("value", text(record.value()));
        fields.put("value_schema", schema(record.valueSchema()));
        var headers = new ArrayList<Object>();
        record.headers().forEach(each -> headers.add(List.of(each.key(), "" + each.value())));
        fields.put("headers", headers);
        return fields;
    }

    private static String text(Object value) {
        if (value instanceof byte[] bytes) {
            return java.util.HexFormat.of().formatHex(bytes);
        }
        return value == null ? null : value.toString();
    }

    private static String schema(Schema schema) {
        if (schema == null) {
            return null;
        }
        var name = schema.type().getName();
        var text =
                switch (schema.type()) {
                    case STRUCT -> {
                        var fields = new ArrayList<String>();
                        for (var each : schema.fields()) {
                            fields.add(each.name() + ": " + schema(each.schema()));
                        }
                        yield "{" + String.join(", ", fields) + "}";
                    }
                    case ARRAY -> "[" + schema(schema.valueSchema()) + "]";
                    case MAP ->
                            "{" + schema(schema.keySchema()) + ": "
                                    + schema(schema.valueSchema()) + "}";
                    default -> name;
                };
        var named = schema.name() == null ? text : schema.name() + " " + text;
        return schema.isOptional() ? named + "?" : named;
    }
}
