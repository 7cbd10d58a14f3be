package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.source.TransactionContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;
import org.apache.kafka.connect.storage.OffsetUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs a source task: polls once for each credit of the Python process, converts the records. */
final class SourceHost implements Link.Receiver {
    private static final Logger LOG = LoggerFactory.getLogger(SourceHost.class);

    /** A larger batch is sent in parts: Python produces one part while the next is converted. */
    private static final int PART_BYTES = 1 << 19;

    /** The task is not polled while more results than these wait for it. */
    private static final int MOST_RESULTS = 10_000;

    private final Link link;
    private final SourceTask task;
    private final Chain<SourceRecord> chain;
    private final Requested requested;
    private final boolean hearsOfRecords;
    private final boolean showsRecords;
    private final Host.Worker taskThread = new Host.Worker("task");
    private final Host.Worker commitThread;
    private final AtomicBoolean commitIsDue = new AtomicBoolean();
    private final AtomicInteger waitingResults = new AtomicInteger();
    private final Columns.Writer writer = new Columns.Writer();
    private final Map<Long, Sent> unacknowledged = new ConcurrentSkipListMap<>();
    /** False once the task is to be stopped or has failed; later credits have no effect. */
    private volatile boolean isPolled = true;
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
        showsRecords = job.path("showsRecords").asBoolean();
        facts.put("hearsOfCommits", overrides("commit"));
        // As in Kafka's worker: with transactions the task's own thread commits. Without them
        // commits have a thread of their own, because a poll may last.
        boolean isTransactional = job.path("exactlyOnce").asBoolean();
        commitThread = isTransactional ? taskThread : new Host.Worker("commit");
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        if (kind == Link.CREDIT) {
            taskThread.run(this::poll);
            return;
        }
        var call = Host.json(payload);
        switch (kind == Link.ACKS ? "acknowledge" : call.get("method").asText()) {
            case "start" -> taskThread.answer(link, id, () -> start(call));
            case "commit" -> commit();
            case "acknowledge" -> {
                waitingResults.addAndGet(call.get("results").size());
                commitThread.run(() -> acknowledge(call));
            }
            case "stop" -> {
                isPolled = false;
                chain.stop();
                // After the last commit, which may be on its own thread.
                commitThread.run(() -> taskThread.answer(link, id, Executors.callable(this::end)));
            }
            default -> throw new IOException("Unknown call " + call);
        }
    }

    private Object start(JsonNode call) {
        task.initialize(new TaskContext(link, requested));
        task.start(Context.strings(call.path("config")));
        return null;
    }

    @Override
    public void end() {
        chain.end(task::stop);
    }

    private void poll() {
        if (!isPolled) {
            return;
        }
        if (waitingResults.get() > MOST_RESULTS) {
            // Poll after these: records of a task that takes results slowly would fill the heap.
            commitThread.run(() -> taskThread.run(this::poll));
            return;
        }
        try {
            var records = task.poll();
            send(records == null ? List.of() : records);
        } catch (Throwable failed) {
            // Without the records that the failure has interrupted.
            writer.finish(new HashMap<>());
            finish(new HashMap<>(Map.of("error", failedPoll(failed))));
        }
    }

    private Map<String, Object> failedPoll(Throwable failed) {
        var error = Errors.describe(failed);
        if (failed instanceof org.apache.kafka.common.errors.RetriableException) {
            // Kafka's worker repeats a poll after these too, but not a put.
            error.put("kind", "retriable");
        }
        if (!error.get("kind").equals("retriable")) {
            isPolled = false;
        }
        return error;
    }

    private void send(List<SourceRecord> records) {
        var facts = new HashMap<String, Object>();
        var failures = new ArrayList<Map<String, Object>>();
        var dropped = new ArrayList<Integer>();
        var commitsAfter = new ArrayList<Integer>();
        var abortsAfter = new ArrayList<Integer>();
        facts.put("first", nextRecord);
        facts.put("failures", failures);
        facts.put("dropped", dropped);
        facts.put("commitsAfter", commitsAfter);
        facts.put("abortsAfter", abortsAfter);
        var results = chain.transformAll(records, each -> each);
        for (var record : records) {
            if (record == null) {
                // Kafka's worker drops it.
                results.next();
                continue;
            }
            int row = writer.count();
            if (requested != null) {
                requested.take(record, row, commitsAfter, abortsAfter);
            }
            try {
                if (!write(record, nextRecord++, results)) {
                    dropped.add(row);
                }
            } catch (Chain.Failed failed) {
                var failure = failed.describe(row);
                if (showsRecords) {
                    failure.put("record", record.toString());
                }
                failures.add(failure);
                if (!chain.toleratesAll) {
                    isPolled = false;
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
        finish(facts);
    }

    /** Sends the last part of a poll. */
    private void finish(Map<String, Object> facts) {
        facts.put("last", true);
        facts.put("stages", chain.takeCounts());
        if (requested != null) {
            facts.put("commit", requested.takeCommit());
            facts.put("abort", requested.takeAbort());
        }
        link.send(Link.BATCH, 0, writer.finish(facts));
    }

    /** Adds a record to the batch; returns false when a transformation has dropped it. */
    private boolean write(SourceRecord polled, long number, Iterator<Object> results)
            throws Chain.Failed {
        var offset = storable(polled.sourceOffset());
        byte[] key = null;
        byte[] value = null;
        byte[] packed = null;
        // A record that fails is reported with the topic that the task gave to it.
        var shown = polled;
        try {
            var record = chain.result(results.next());
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
            if (hearsOfRecords) {
                unacknowledged.put(number, new Sent(polled, bytes(key), bytes(value)));
            }
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

    /**
     * Returns an offset, or one that Python refuses when it is to be stored. In transactions an
     * offset that cannot be stored fails the task, as the commit in Kafka's worker does; without
     * them the task goes on.
     */
    private Map<String, ?> storable(Map<String, ?> offset) {
        if (offset == null || isPlain(offset)) {
            return offset;
        }
        try {
            OffsetUtils.validateFormat(offset);
            return offset;
        } catch (DataException invalid) {
            if (commitThread == taskThread) {
                throw invalid;
            }
            return Map.of(invalid.getMessage(), List.of());
        }
    }

    /**
     * Returns whether an offset has values of the usual types only. Almost every offset has, and
     * this takes a tenth of the time that Kafka's own check takes.
     */
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

    private void commit() {
        // A commit that still waits in the queue covers this one.
        if (commitIsDue.compareAndSet(false, true)) {
            commitThread.run(
                    () -> {
                        commitIsDue.set(false);
                        notifyTask("commit", task::commit);
                    });
        }
    }

    private void acknowledge(JsonNode results) {
        for (var result : results.get("results")) {
            var sent = unacknowledged.remove(result.get(0).asLong());
            if (sent == null) {
                continue;
            }
            var metadata = result.size() > 1 ? sent.metadata(result) : null;
            notifyTask("commitRecord", () -> task.commitRecord(sent.record, metadata));
        }
        waitingResults.addAndGet(-results.get("results").size());
        if (results.has("forgetBefore")) {
            long before = results.get("forgetBefore").asLong();
            unacknowledged.keySet().removeIf(record -> record < before);
        }
    }

    /** A record that waits for its result, with the sizes of its key and value, -1 for null. */
    private record Sent(SourceRecord record, int keyBytes, int valueBytes) {
        RecordMetadata metadata(JsonNode result) {
            var partition = new TopicPartition(result.get(1).asText(), result.get(2).asInt());
            long offset = result.get(3).asLong();
            long timestamp = result.get(4).asLong();
            return new RecordMetadata(partition, offset, 0, timestamp, keyBytes, valueBytes);
        }
    }

    private static int bytes(byte[] serialized) {
        return serialized == null ? -1 : serialized.length;
    }

    private interface Notification {
        void send() throws InterruptedException;
    }

    /** Calls the task; an exception is logged and the task continues, as in Kafka's worker. */
    private static void notifyTask(String method, Notification notification) {
        try {
            notification.send();
        } catch (Throwable failed) {
            LOG.error("SourceTask.{} failed", method, failed);
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

    static final class TaskContext extends Context implements SourceTaskContext {
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

    /**
     * The commits and aborts that the task has requested; Python carries them out. A request is for
     * the next record that equals its record, as in Kafka's worker.
     */
    private static final class Requested implements TransactionContext {
        private final Set<SourceRecord> commits = Collections.synchronizedSet(new HashSet<>());
        private final Set<SourceRecord> aborts = Collections.synchronizedSet(new HashSet<>());
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
            return Objects.requireNonNull(
                    record, "Source record used to define transaction boundaries may not be null");
        }
    }
}
