package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.errors.IllegalWorkerStateException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Runs a sink task: converts the records that the Python process has consumed, calls the task. */
final class SinkHost implements Link.Receiver {
    private static final TimestampType[] TYPES = TimestampType.values();

    private final Link link;
    private final SinkTask task;
    private final Chain<SinkRecord> chain;
    private final Host.Worker calls = new Host.Worker("task");
    private final TaskContext context;
    private final Pending pending = new Pending();
    private int round;

    SinkHost(Link link, SinkTask task, Chain<SinkRecord> chain, JsonNode job) {
        this.link = link;
        this.task = task;
        this.chain = chain;
        boolean reports = job.path("reportsErrors").asBoolean();
        var consumer = new SinkConsumer(link);
        context = new TaskContext(link, consumer, reports ? new ErrantRecords(link, chain) : null);
        consumer.belongTo(context);
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        if (kind == Link.DELIVER) {
            // Decoded on this thread, while the task may still work on the frame before.
            var batch = new Columns.Consumed(payload);
            calls.run(
                    () -> {
                        answer(id, () -> deliver(batch));
                        link.reuse(payload.array());
                    });
            return;
        }
        var call = Host.json(payload);
        if (call.get("method").asText().equals("stop")) {
            chain.stop();
        }
        calls.run(() -> answer(id, () -> answer(call)));
    }

    /** Adds the task's requests to its context to the answer, also if the call has failed. */
    private void answer(int id, Callable<?> call) {
        link.answer(id, call, () -> Map.of("effects", context.takeEffects()));
    }

    private Object answer(JsonNode call) throws IOException {
        switch (call.get("method").asText()) {
            case "start" -> {
                context.taskThread = Thread.currentThread();
                task.initialize(context);
                task.start(Context.strings(call.path("config")));
            }
            case "open" -> {
                var partitions = partitions(call.get("partitions"));
                context.assigned.addAll(partitions);
                boolean isOpen = false;
                try {
                    task.open(partitions);
                    isOpen = true;
                } finally {
                    if (!isOpen) {
                        // The partitions may be revoked before the next attempt; the task is then
                        // not asked to close them.
                        context.assigned.removeAll(partitions);
                    }
                }
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
            case "stop" -> end();
            default -> throw new IOException("Unknown call " + call);
        }
        return null;
    }

    @Override
    public void end() {
        chain.end(task::stop);
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

    /**
     * Converts the records of a frame and gives them to the task, in puts of as many records as a
     * poll of Kafka's worker has at most. A frame ends early when the Python process has to decide
     * which records come next: a conversion, put or report has failed, the task has called {@code
     * offset} or {@code pause}, or the frame's time is over. Frames of the same round, which were
     * sent before the Python process knew that, are then refused.
     */
    private Object deliver(Columns.Consumed batch) {
        var failures = new ArrayList<Map<String, Object>>();
        var puts = new ArrayList<List<Object>>();
        var answer = new HashMap<String, Object>(Map.of("failures", failures, "puts", puts));
        int taken = 0;
        boolean stopped = batch.facts.get("round").asInt() < round;
        if (!stopped) {
            int most = batch.facts.get("most").asInt();
            long first = batch.facts.get("first").asLong();
            long longestNs = batch.facts.get("longestMs").asLong() * 1_000_000;
            long began = System.nanoTime();
            pending.retain(batch.facts.get("kept"));
            do {
                int end = Math.min(taken + most, batch.count);
                try {
                    stopped = !convert(batch, taken, end, first, failures);
                    if (!stopped) {
                        puts.add(put());
                        taken = end;
                        stopped = context.endsFrame();
                    }
                } catch (Throwable failed) {
                    // Beside the other facts: failed conversions before this put are reported too.
                    answer.put("error", Errors.describe(failed));
                    stopped = true;
                }
                stopped |= taken < batch.count && System.nanoTime() - began >= longestNs;
            } while (!stopped && taken < batch.count);
            round = batch.facts.get("round").asInt() + (stopped ? 1 : 0);
        }
        answer.put("stages", chain.takeCounts());
        answer.put("taken", taken);
        answer.put("stopped", stopped);
        return answer;
    }

    /** Returns the number of records, and the microseconds that the task has taken for them. */
    private List<Object> put() {
        int size = pending.records.size();
        long began = System.nanoTime();
        task.put(new ArrayList<>(pending.records));
        pending.clear();
        return List.of(size, (System.nanoTime() - began) / 1000);
    }

    /** Returns false if a record has failed and failures are not tolerated. */
    private boolean convert(
            Columns.Consumed batch,
            int start,
            int end,
            long first,
            List<Map<String, Object>> failures) {
        var raws = new ArrayList<Columns.Raw>();
        for (int row = start; row < end; row++) {
            raws.add(batch.next());
        }
        var results = chain.transformAll(raws, raw -> record(chain, raw));
        for (int row = start; row < end; row++) {
            try {
                var record = chain.result(results.next());
                if (record != null) {
                    pending.add(
                            first + row,
                            context.reporter == null
                                    ? record
                                    : new ErrantRecords.ConsumedRecord(
                                            record, raws.get(row - start)));
                }
            } catch (Chain.Failed failed) {
                failures.add(failed.describe(row));
                if (!chain.toleratesAll) {
                    return false;
                }
            }
        }
        return true;
    }

    /** The records of the next put, with the numbers that the Python process knows them by. */
    private static final class Pending {
        final List<SinkRecord> records = new ArrayList<>();
        private long[] numbers = new long[512];

        void add(long number, SinkRecord record) {
            if (records.size() == numbers.length) {
                numbers = Arrays.copyOf(numbers, 2 * numbers.length);
            }
            numbers[records.size()] = number;
            records.add(record);
        }

        void clear() {
            records.clear();
        }

        /** Drops the records of a failed put that are not to be put again. */
        void retain(JsonNode wanted) {
            var kept = new HashSet<Long>();
            wanted.forEach(number -> kept.add(number.asLong()));
            var all = List.copyOf(records);
            records.clear();
            for (int place = 0; place < all.size(); place++) {
                if (kept.contains(numbers[place])) {
                    add(numbers[place], all.get(place));
                }
            }
        }
    }

    static SinkRecord record(Chain<SinkRecord> chain, Columns.Raw raw) throws Chain.Failed {
        var headers = Columns.unpacked(raw.headers());
        var key =
                chain.run(
                        "KEY_CONVERTER",
                        chain.key,
                        () -> chain.key.toConnectData(raw.topic(), headers, raw.key()));
        var value =
                chain.run(
                        "VALUE_CONVERTER",
                        chain.value,
                        () -> chain.value.toConnectData(raw.topic(), headers, raw.value()));
        var connectHeaders =
                raw.headers() == null
                        ? null
                        : chain.run(
                                "HEADER_CONVERTER",
                                chain.header,
                                () -> connectHeaders(chain, raw.topic(), headers));
        return new SinkRecord(
                raw.topic(),
                raw.partition(),
                key.schema(),
                key.value(),
                value.schema(),
                value.value(),
                raw.offset(),
                raw.timestamp() < 0 ? null : (Long) raw.timestamp(),
                TYPES[raw.type()],
                connectHeaders);
    }

    private static ConnectHeaders connectHeaders(
            Chain<SinkRecord> chain, String topic, Headers headers) {
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

    /** Of the class that a Java worker's context has, because sinks look for its fields. */
    private static final class TaskContext extends WorkerSinkTaskContext {
        private final Link link;
        final Set<TopicPartition> assigned = ConcurrentHashMap.newKeySet();
        final ErrantRecords reporter;
        private List<List<Object>> effects = new ArrayList<>();
        private boolean endsFrame;
        private volatile Thread taskThread;

        TaskContext(Link link, SinkConsumer consumer, ErrantRecords reporter) {
            super(consumer.consumer(), null, null);
            this.link = link;
            this.reporter = reporter;
        }

        synchronized List<List<Object>> takeEffects() {
            var taken = effects;
            effects = new ArrayList<>();
            endsFrame = false;
            return taken;
        }

        /** Returns whether the Python process has to decide which records come next. */
        synchronized boolean endsFrame() {
            return endsFrame || (reporter != null && reporter.isRefused());
        }

        private synchronized void effect(Object... effect) {
            effects.add(Arrays.asList(effect));
            endsFrame |= effect[0].equals("offset") || effect[0].equals("pause");
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
        public Map<String, String> configs() {
            return new Context(link).configs();
        }

        @Override
        public PluginMetrics pluginMetrics() {
            return PluginsMetrics.create();
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
            pauseOrResume("pause", partitions);
        }

        @Override
        public void resume(TopicPartition... partitions) {
            pauseOrResume("resume", partitions);
        }

        private void pauseOrResume(String what, TopicPartition... partitions) {
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
            if (Thread.currentThread() == taskThread) {
                effect("requestCommit");
            } else {
                link.tell("requestCommit", Map.of());
            }
        }

        @Override
        public ErrantRecordReporter errantRecordReporter() {
            return reporter;
        }
    }
}
