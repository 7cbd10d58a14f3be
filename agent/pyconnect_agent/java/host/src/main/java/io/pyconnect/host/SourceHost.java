package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.source.TransactionContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;
import org.apache.kafka.connect.storage.OffsetUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs a source task: polls while the Python process gives credits, and converts the records. */
final class SourceHost implements Link.Receiver {
    private static final Logger LOG = LoggerFactory.getLogger(SourceHost.class);

    /** What is larger goes in parts: one is sent to Kafka while the next is converted. */
    private static final int PART_BYTES = 1 << 19;

    private final Link link;
    private final SourceTask task;
    private final Chain<SourceRecord> chain;
    private final Requested requested;
    private final boolean hearsOfRecords;
    private final Host.Worker polls = new Host.Worker("task");
    private final Host.Worker commits;
    private final AtomicBoolean commitIsDue = new AtomicBoolean();
    private final Columns.Writer writer = new Columns.Writer();
    private final Map<Long, SourceRecord> unacknowledged = new ConcurrentSkipListMap<>();
    private long nextRecord;

    SourceHost(
            Link link,
            SourceTask task,
            Chain<SourceRecord> chain,
            JsonNode job,
            Map<String, Object> facts) {
        this.link = link;
        this.task = task;
        this.chain = chain;
        requested = job.path("boundaries").asBoolean() ? new Requested() : null;
        hearsOfRecords = overrides("commitRecord", SourceRecord.class, RecordMetadata.class);
        facts.put("hearsOfRecords", hearsOfRecords);
        facts.put("hearsOfCommits", overrides("commit"));
        // Commits may wait for the system that a poll waits for; in transactions they are in turn.
        commits = job.path("exactlyOnce").asBoolean() ? polls : new Host.Worker("commit");
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        if (kind == Link.CREDIT) {
            polls.run(this::poll);
            return;
        }
        var call = Host.json(payload);
        switch (kind == Link.ACKS ? "acknowledge" : call.get("method").asText()) {
            case "start" -> polls.answer(link, id, () -> start(call));
            case "commit" -> commit();
            case "acknowledge" -> commits.run(() -> acknowledge(call));
            case "stop" -> {
                chain.stop();
                polls.answer(link, id, this::stop);
            }
            default -> throw new IOException("Unknown call " + call);
        }
    }

    private Object start(JsonNode call) {
        task.initialize(new TaskContext(link, requested));
        task.start(Context.strings(call.path("config")));
        return null;
    }

    private Object stop() {
        task.stop();
        chain.close();
        return null;
    }

    // Records

    private void poll() {
        var facts = new HashMap<String, Object>();
        try {
            var records = task.poll();
            send(records == null ? List.of() : records, facts);
        } catch (Throwable failed) {
            facts.put("error", Errors.describe(failed));
            facts.put("last", true);
            writer.finish(new HashMap<>());
            link.send(Link.BATCH, 0, writer.finish(facts));
        }
    }

    private void send(List<SourceRecord> records, Map<String, Object> facts) {
        var failures = new ArrayList<Map<String, Object>>();
        var dropped = new ArrayList<Integer>();
        var commitsAfter = new ArrayList<Integer>();
        var abortsAfter = new ArrayList<Integer>();
        facts.put("first", nextRecord);
        facts.put("failures", failures);
        facts.put("dropped", dropped);
        facts.put("commitsAfter", commitsAfter);
        facts.put("abortsAfter", abortsAfter);
        for (var record : records) {
            int row = writer.count();
            if (requested != null) {
                requested.take(record, row, commitsAfter, abortsAfter);
            }
            if (hearsOfRecords) {
                unacknowledged.put(nextRecord, record);
            }
            nextRecord++;
            try {
                if (!write(record)) {
                    dropped.add(row);
                }
            } catch (Chain.Failed failed) {
                failures.add(failed.describe(row));
                if (!chain.toleratesAll) {
                    break;
                }
            }
            if (writer.bytes() > PART_BYTES) {
                facts.put("last", false);
                link.send(Link.BATCH, 0, writer.finish(facts));
                facts.put("first", nextRecord);
                failures.clear();
                dropped.clear();
                commitsAfter.clear();
                abortsAfter.clear();
            }
        }
        facts.put("last", true);
        if (requested != null) {
            facts.put("commit", requested.takeCommit());
            facts.put("abort", requested.takeAbort());
        }
        link.send(Link.BATCH, 0, writer.finish(facts));
    }

    /** Adds a record to the batch; returns false when a transformation has dropped it. */
    private boolean write(SourceRecord polled) throws Chain.Failed {
        // As in Kafka's worker, an offset that cannot be stored fails the task, not the record.
        var offset = polled.sourceOffset();
        if (offset != null && !isPlain(offset)) {
            OffsetUtils.validateFormat(offset);
        }
        byte[] key = null;
        byte[] value = null;
        byte[] packed = null;
        // A record that has failed keeps the place that its report names.
        var shown = polled;
        try {
            var record = chain.transform(polled);
            if (record == null) {
                return false;
            }
            var headers = headers(record);
            key = chain.run("KEY_CONVERTER", chain.key, () -> chain.key(record, headers));
            value = chain.run("VALUE_CONVERTER", chain.value, () -> chain.value(record, headers));
            packed = Columns.packed(headers);
            shown = record;
            return true;
        } finally {
            writer.add(
                    shown.topic(),
                    polled.sourcePartition(),
                    shown.kafkaPartition(),
                    shown.timestamp());
            writer.offsets.addJson(offset);
            writer.keys.add(key);
            writer.values.add(value);
            writer.headers.add(packed);
        }
    }

    /** Almost every offset is, and this takes a tenth of the time of looking its types up. */
    private static boolean isPlain(Map<?, ?> offset) {
        for (var each : offset.entrySet()) {
            var value = each.getValue();
            if (!(each.getKey() instanceof String)
                    || !(value == null
                            || value instanceof Long
                            || value instanceof String
                            || value instanceof Integer
                            || value instanceof Boolean)) {
                return false;
            }
        }
        return true;
    }

    private Headers headers(SourceRecord record) throws Chain.Failed {
        return record.headers().isEmpty()
                ? new RecordHeaders()
                : chain.run("HEADER_CONVERTER", chain.header, () -> chain.headers(record));
    }

    // What the task hears of its records

    private void commit() {
        // One that waits is about everything so far.
        if (commitIsDue.compareAndSet(false, true)) {
            commits.run(
                    () -> {
                        commitIsDue.set(false);
                        try {
                            task.commit();
                        } catch (Exception failed) {
                            LOG.error("SourceTask.commit failed", failed);
                        }
                    });
        }
    }

    private void acknowledge(JsonNode results) {
        for (var result : results.get("results")) {
            var record = unacknowledged.remove(result.get(0).asLong());
            if (record == null) {
                continue;
            }
            RecordMetadata metadata = null;
            if (result.size() > 1) {
                var partition =
                        new TopicPartition(result.get(1).asText(), result.get(2).asInt());
                metadata =
                        new RecordMetadata(
                                partition, result.get(3).asLong(), 0, result.get(4).asLong(), -1, -1);
            }
            try {
                task.commitRecord(record, metadata);
            } catch (Exception failed) {
                LOG.error("SourceTask.commitRecord failed", failed);
            }
        }
        if (results.has("forgetBefore")) {
            long before = results.get("forgetBefore").asLong();
            unacknowledged.keySet().removeIf(record -> record < before);
        }
    }

    private boolean overrides(String method, Class<?>... arguments) {
        try {
            var found = task.getClass().getMethod(method, arguments);
            return found.getDeclaringClass() != SourceTask.class;
        } catch (NoSuchMethodException impossible) {
            throw new ConnectException(impossible);
        }
    }

    private static final class TaskContext extends Context implements SourceTaskContext {
        private final TransactionContext transactions;

        TaskContext(Link link, TransactionContext transactions) {
            super(link);
            this.transactions = transactions;
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return new Offsets(link);
        }

        @Override
        public TransactionContext transactionContext() {
            return transactions;
        }
    }

    /** What the task wants to be committed or aborted; what that means is decided in Python. */
    private static final class Requested implements TransactionContext {
        private final Set<SourceRecord> commits =
                Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
        private final Set<SourceRecord> aborts =
                Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
        private final AtomicBoolean commit = new AtomicBoolean();
        private final AtomicBoolean abort = new AtomicBoolean();

        @Override
        public void commitTransaction() {
            commit.set(true);
        }

        @Override
        public void commitTransaction(SourceRecord record) {
            commits.add(given(record));
        }

        @Override
        public void abortTransaction() {
            abort.set(true);
        }

        @Override
        public void abortTransaction(SourceRecord record) {
            aborts.add(given(record));
        }

        void take(SourceRecord record, int row, List<Integer> commitRows, List<Integer> abortRows) {
            if (commits.remove(record)) {
                commitRows.add(row);
            }
            if (aborts.remove(record)) {
                abortRows.add(row);
            }
        }

        boolean takeCommit() {
            return commit.getAndSet(false);
        }

        boolean takeAbort() {
            return abort.getAndSet(false);
        }

        private static SourceRecord given(SourceRecord record) {
            if (record == null) {
                throw new ConnectException(
                        "Source record used to define transaction boundaries may not be null");
            }
            return record;
        }
    }
}
