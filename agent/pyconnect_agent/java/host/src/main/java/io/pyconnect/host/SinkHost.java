package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.IllegalWorkerStateException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** Runs a sink task: converts what the Python process has consumed and calls the task. */
final class SinkHost implements Host.Job {
    private static final TimestampType[] TYPES = {
        TimestampType.NO_TIMESTAMP_TYPE, TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
    };

    private final Link link;
    private final SinkTask task;
    private final Chain<SinkRecord> chain;
    private final Host.Worker calls = new Host.Worker("task");
    private final Map<String, Object> facts;
    private final TaskContext context;
    /** Records that the task has not taken yet, by their numbers. */
    private final Map<Long, SinkRecord> pending = new LinkedHashMap<>();

    SinkHost(
            Link link,
            SinkTask task,
            Chain<SinkRecord> chain,
            JsonNode job,
            Map<String, Object> facts) {
        this.link = link;
        this.task = task;
        this.chain = chain;
        this.facts = facts;
        context = new TaskContext(link, job.path("reportsErrors").asBoolean() ? new Reporter() : null);
    }

    @Override
    public Map<String, Object> facts() {
        return facts;
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        if (kind == Link.DELIVER) {
            calls.run(() -> answer(id, () -> deliver(payload)));
            return;
        }
        var call = Host.json(payload);
        if (call.get("method").asText().equals("stop")) {
            chain.stop();
        }
        calls.run(() -> answer(id, () -> answer(call)));
    }

    /** Answers with what the task has asked of its context meanwhile, failed or not. */
    private void answer(int id, Callable<?> call) {
        var answer = new HashMap<String, Object>();
        try {
            answer.put("value", call.call());
        } catch (Throwable failed) {
            answer.put("error", Errors.describe(failed));
        }
        answer.put("effects", context.takeEffects());
        link.send(Link.ANSWER, id, answer);
    }

    private Object answer(JsonNode call) throws IOException {
        switch (call.get("method").asText()) {
            case "start" -> {
                task.initialize(context);
                task.start(Context.strings(call.get("config")));
            }
            case "open" -> {
                var partitions = partitions(call.get("partitions"));
                context.assigned.addAll(partitions);
                task.open(partitions);
            }
            case "close" -> {
                var partitions = partitions(call.get("partitions"));
                try {
                    task.close(partitions);
                } finally {
                    context.assigned.removeAll(partitions);
                }
            }
            case "preCommit" -> {
                return preCommit(call.get("offsets"));
            }
            case "stop" -> {
                task.stop();
                chain.close();
            }
            default -> throw new IOException("Unknown call " + call);
        }
        return null;
    }

    private Object preCommit(JsonNode offsets) {
        var current = new HashMap<TopicPartition, OffsetAndMetadata>();
        for (var each : offsets) {
            current.put(partition(each), new OffsetAndMetadata(each.get(2).asLong()));
        }
        var safe = task.preCommit(current);
        if (safe == null) {
            return null;
        }
        var result = new ArrayList<List<Object>>();
        safe.forEach(
                (partition, offset) ->
                        result.add(
                                Arrays.asList(
                                        partition.topic(),
                                        partition.partition(),
                                        offset == null ? null : offset.offset())));
        return result;
    }

    // Records

    /** Converts the records that come, and gives them to the task after those it still has to take. */
    private Object deliver(ByteBuffer batch) throws IOException {
        var head = new byte[batch.getInt()];
        batch.get(head);
        var facts = Link.JSON.readTree(head);
        var kept = new ArrayList<Long>();
        facts.get("kept").forEach(number -> kept.add(number.asLong()));
        pending.keySet().retainAll(kept);
        var failures = new ArrayList<Map<String, Object>>();
        int count = facts.get("count").asInt();
        if (count > 0) {
            convert(batch, facts, count, failures);
        }
        if (failures.isEmpty() || chain.toleratesAll) {
            try {
                task.put(new ArrayList<>(pending.values()));
                pending.clear();
            } catch (Throwable failed) {
                // Both are to be known: what was skipped, and that the rest is not taken.
                return Map.of("failures", failures, "error", Errors.describe(failed));
            }
        }
        return Map.of("failures", failures);
    }

    private void convert(
            ByteBuffer batch, JsonNode facts, int count, List<Map<String, Object>> failures) {
        var topics = new ArrayList<String>();
        facts.get("topics").forEach(topic -> topics.add(topic.asText()));
        var topicOf = new int[count];
        var partitionOf = new int[count];
        var offsets = new long[count];
        var timestamps = new long[count];
        var types = new byte[count];
        batch.asIntBuffer().get(topicOf).get(partitionOf);
        batch.position(batch.position() + 8 * count);
        batch.asLongBuffer().get(offsets).get(timestamps);
        batch.position(batch.position() + 16 * count);
        batch.get(types);
        var keys = Columns.readBlob(batch, count, facts.get("keys").asBoolean());
        var values = Columns.readBlob(batch, count, facts.get("values").asBoolean());
        var headers = Columns.readBlob(batch, count, facts.get("headers").asBoolean());
        long first = facts.get("first").asLong();
        for (int row = 0; row < count; row++) {
            var raw =
                    new Raw(
                            topics.get(topicOf[row]),
                            partitionOf[row],
                            offsets[row],
                            timestamps[row],
                            TYPES[types[row]],
                            keys[row],
                            values[row],
                            headers[row]);
            try {
                var record = chain.transform(record(raw));
                if (record != null) {
                    pending.put(first + row, record);
                }
            } catch (Chain.Failed failed) {
                failures.add(failed.describe(row));
                if (!chain.toleratesAll) {
                    return;
                }
            }
        }
    }

    private SinkRecord record(Raw raw) throws Chain.Failed {
        var headers = Columns.unpacked(raw.headers);
        var key =
                chain.run(
                        "KEY_CONVERTER",
                        chain.key.getClass(),
                        () -> chain.key.toConnectData(raw.topic, headers, raw.key));
        var value =
                chain.run(
                        "VALUE_CONVERTER",
                        chain.value.getClass(),
                        () -> chain.value.toConnectData(raw.topic, headers, raw.value));
        var connectHeaders =
                raw.headers == null
                        ? null
                        : chain.run(
                                "HEADER_CONVERTER",
                                chain.header.getClass(),
                                () -> connectHeaders(raw.topic, headers));
        var record =
                new SinkRecord(
                        raw.topic,
                        raw.partition,
                        key.schema(),
                        key.value(),
                        value.schema(),
                        value.value(),
                        raw.offset,
                        raw.timestamp < 0 ? null : (Long) raw.timestamp,
                        raw.type,
                        connectHeaders);
        return context.reporter == null ? record : new ConsumedRecord(record, raw);
    }

    private ConnectHeaders connectHeaders(String topic, Headers headers) {
        var found = new ConnectHeaders();
        for (var each : headers) {
            found.add(each.key(), chain.header.toConnectHeader(topic, each.key(), each.value()));
        }
        return found;
    }

    private static List<TopicPartition> partitions(JsonNode found) {
        var partitions = new ArrayList<TopicPartition>();
        found.forEach(each -> partitions.add(partition(each)));
        return partitions;
    }

    private static TopicPartition partition(JsonNode found) {
        return new TopicPartition(found.get(0).asText(), found.get(1).asInt());
    }

    /** A record as it was consumed. */
    private record Raw(
            String topic,
            int partition,
            long offset,
            long timestamp,
            TimestampType type,
            byte[] key,
            byte[] value,
            byte[] headers) {
        Map<String, Object> describe() {
            var fields = new HashMap<String, Object>();
            fields.put("topic", topic);
            fields.put("partition", partition);
            fields.put("offset", offset);
            fields.put("timestamp", timestamp);
            fields.put("type", Arrays.asList(TYPES).indexOf(type));
            fields.put("key", key);
            fields.put("value", value);
            fields.put("headers", headers);
            return fields;
        }
    }

    /** A record that remembers what it was made of, through transformations too. */
    private static final class ConsumedRecord extends SinkRecord {
        private final Raw raw;

        ConsumedRecord(SinkRecord record, Raw raw) {
            super(
                    record.topic(),
                    record.kafkaPartition(),
                    record.keySchema(),
                    record.key(),
                    record.valueSchema(),
                    record.value(),
                    record.kafkaOffset(),
                    record.timestamp(),
                    record.timestampType(),
                    record.headers(),
                    record.originalTopic(),
                    record.originalKafkaPartition(),
                    record.originalKafkaOffset());
            this.raw = raw;
        }

        @Override
        public SinkRecord newRecord(
                String topic,
                Integer partition,
                Schema keySchema,
                Object key,
                Schema valueSchema,
                Object value,
                Long timestamp) {
            return newRecord(
                    topic, partition, keySchema, key, valueSchema, value, timestamp, headers());
        }

        @Override
        public SinkRecord newRecord(
                String topic,
                Integer partition,
                Schema keySchema,
                Object key,
                Schema valueSchema,
                Object value,
                Long timestamp,
                Iterable<Header> headers) {
            var changed =
                    super.newRecord(
                            topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
            return new ConsumedRecord(changed, raw);
        }
    }

    /** Takes records that the task cannot deliver; what becomes of them is decided in Python. */
    private final class Reporter implements ErrantRecordReporter {
        @Override
        public Future<Void> report(SinkRecord record, Throwable error) {
            var raw = record instanceof ConsumedRecord own ? own.raw : raw(record);
            var fields = new HashMap<>(raw.describe());
            fields.put("error", Errors.describe(error));
            fields.put("original", record instanceof ConsumedRecord);
            fields.put("originalTopic", record.originalTopic());
            fields.put("originalPartition", record.originalKafkaPartition());
            // Throws when errors are not tolerated.
            long report = link.ask("reportErrant", fields).asLong();
            return link.askLater("awaitErrant", Map.of("report", report))
                    .thenApply(
                            answer -> {
                                Link.value(answer);
                                return null;
                            });
        }

        /** Returns what a record that the task has made itself would be in Kafka. */
        private Raw raw(SinkRecord record) {
            var headers = new RecordHeaders();
            for (var each : record.headers()) {
                var value =
                        chain.header.fromConnectHeader(
                                record.topic(), each.key(), each.schema(), each.value());
                headers.add(each.key(), value);
            }
            return new Raw(
                    record.topic(),
                    record.kafkaPartition() == null ? -1 : record.kafkaPartition(),
                    record.kafkaOffset(),
                    record.timestamp() == null ? -1 : record.timestamp(),
                    record.timestampType(),
                    chain.key.fromConnectData(
                            record.topic(), headers, record.keySchema(), record.key()),
                    chain.value.fromConnectData(
                            record.topic(), headers, record.valueSchema(), record.value()),
                    Columns.packed(headers));
        }
    }

    private static final class TaskContext extends Context implements SinkTaskContext {
        final Set<TopicPartition> assigned = ConcurrentHashMap.newKeySet();
        final Reporter reporter;
        private List<List<Object>> effects = new ArrayList<>();

        TaskContext(Link link, Reporter reporter) {
            super(link);
            this.reporter = reporter;
        }

        synchronized List<List<Object>> takeEffects() {
            var taken = effects;
            effects = new ArrayList<>();
            return taken;
        }

        private synchronized void effect(Object... effect) {
            effects.add(Arrays.asList(effect));
        }

        @Override
        public void offset(Map<TopicPartition, Long> offsets) {
            offsets.forEach((partition, offset) -> offset(partition, offset));
        }

        @Override
        public void offset(TopicPartition partition, long offset) {
            offset(partition, (Long) offset);
        }

        private void offset(TopicPartition partition, Long offset) {
            effect("offset", partition.topic(), partition.partition(), offset);
        }

        @Override
        public void timeout(long timeoutMs) {
            effect("timeout", timeoutMs);
        }

        @Override
        public Set<TopicPartition> assignment() {
            return Set.copyOf(assigned);
        }

        @Override
        public void pause(TopicPartition... partitions) {
            each("pause", partitions);
        }

        @Override
        public void resume(TopicPartition... partitions) {
            each("resume", partitions);
        }

        private void each(String what, TopicPartition... partitions) {
            if (!assigned.containsAll((Collection<?>) Arrays.asList(partitions))) {
                throw new IllegalWorkerStateException(
                        "SinkTasks may not "
                                + what
                                + " partitions that are not currently assigned to them.");
            }
            for (var partition : partitions) {
                effect(what, partition.topic(), partition.partition());
            }
        }

        @Override
        public void requestCommit() {
            link.tell("requestCommit", Map.of());
        }

        @Override
        public ErrantRecordReporter errantRecordReporter() {
            return reporter;
        }
    }
}
