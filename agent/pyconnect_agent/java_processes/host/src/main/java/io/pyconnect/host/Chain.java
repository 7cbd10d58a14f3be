package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The converters and transformations of a task, made from its job.
 *
 * <p>An operation that throws a retriable exception is repeated here, as long as the connector's
 * settings allow. Whether a record that failed is skipped is decided by the Python process.
 */
final class Chain<R extends ConnectRecord<R>> {
    private static final Logger LOG = LoggerFactory.getLogger(Chain.class);
    private static final long FIRST_DELAY_MS = 300;
    /** Records of one question to Python. */
    private static final int PART = 500;
    /** Records of which one is timed. */
    private static final int TIMED_EVERY = 100;

    final Converter key;
    final Converter value;
    final HeaderConverter header;
    final boolean toleratesAll;

    private final List<Stage<R>> stages = new ArrayList<>();
    private boolean isMixed;
    private final Link link;
    private final Crossing crossing = new Crossing();
    private final long timeoutMs;
    private final long maxDelayMs;
    private final CountDownLatch stopping = new CountDownLatch(1);
    private final AtomicBoolean isEnded = new AtomicBoolean();

    /** Thrown when an operation on a record has failed and is not repeated any more. */
    static final class Failed extends Exception {
        private static final long serialVersionUID = 1;

        final String stage;
        final String operator;
        final int retries;
        /** The number under which the Python process has the error, null for an error of Java's. */
        final Object python;

        Failed(String stage, String operator, Exception cause, int retries, Object python) {
            super(cause);
            this.stage = stage;
            this.operator = operator;
            this.retries = retries;
            this.python = python;
        }

        /** Returns a map that may be changed; {@code row} is the record's place in its frame. */
        Map<String, Object> describe(int row) {
            var described = new HashMap<String, Object>();
            described.put("row", row);
            described.put("stage", stage);
            described.put("class", operator);
            described.put("retries", retries);
            if (python == null) {
                described.put("error", Errors.describe(getCause()));
            } else {
                described.put("python", python);
            }
            return described;
        }
    }

    /** What has become of the records that a transformation got; {@code us}: times of some. */
    private static final class Counts {
        private long came;
        private long told;
        private long dropped;
        private long failed;
        private final List<Number> us = new ArrayList<>();
    }

    /** {@code segment}: the number of transformations in Python; -1: this one is in Java. */
    private record Stage<R extends ConnectRecord<R>>(
            String alias,
            Transformation<R> change,
            Predicate<R> when,
            boolean not,
            int segment,
            Counts counts) {
        R apply(R record) {
            return when == null || Loaders.within(loader(when), () -> when.test(record)) != not
                    ? change.apply(record)
                    : record;
        }
    }

    /** Without converters in the job it only transforms. */
    @SuppressWarnings("unchecked")
    Chain(JsonNode job, Loaders loaders, Link link) {
        this.link = link;
        var converters = job.get("converters");
        if (converters == null) {
            key = value = null;
            header = null;
        } else {
            key = loaders.instance(converters.get("key"), Converter.class);
            configured(key, () -> key.configure(config(converters.get("key")), true));
            value = loaders.instance(converters.get("value"), Converter.class);
            configured(value, () -> value.configure(config(converters.get("value")), false));
            header = loaders.instance(converters.get("header"), HeaderConverter.class);
            configured(header, () -> header.configure(config(converters.get("header"))));
        }
        for (var stage : job.get("transforms")) {
            var alias = stage.path("alias").asText();
            if (stage.has("segment")) {
                int segment = stage.get("segment").asInt();
                stages.add(new Stage<>(alias, null, null, false, segment, null));
                isMixed = true;
                continue;
            }
            Transformation<R> change = loaders.instance(stage, Transformation.class);
            configured(change, () -> change.configure(config(stage)));
            Predicate<R> when = null;
            if (stage.hasNonNull("predicate")) {
                Predicate<R> found = loaders.instance(stage.get("predicate"), Predicate.class);
                configured(found, () -> found.configure(config(stage.get("predicate"))));
                when = found;
            }
            boolean not = stage.path("negate").asBoolean();
            stages.add(new Stage<>(alias, change, when, not, -1, new Counts()));
        }
        toleratesAll = job.path("toleratesAll").asBoolean();
        timeoutMs = job.path("retryTimeoutMs").asLong();
        maxDelayMs = job.path("retryDelayMaxMs").asLong();
    }

    /**
     * Returns the record after all transformations, null if one of them has dropped it. Shows it
     * after each of them to {@code seen}, with the alias of that.
     */
    R transform(R record, BiConsumer<String, R> seen) throws Failed {
        var current = record;
        for (var stage : stages) {
            var before = current;
            if (stage.segment < 0) {
                current = applied(stage, before);
            } else {
                var pass = new Pass<>(List.of(before), each -> each, stages.indexOf(stage));
                pass.takeAnswer();
                current = result(pass.rows[0]);
            }
            seen.accept(stage.alias, current);
            if (current == null) {
                return null;
            }
        }
        return current;
    }

    private R applied(Stage<R> stage, R record) throws Failed {
        var counts = stage.counts;
        long began = counts.came++ % TIMED_EVERY == 0 ? System.nanoTime() : 0;
        try {
            var result = run("TRANSFORMATION", stage.change, () -> stage.apply(record));
            if (result == null) {
                counts.dropped++;
            }
            return result;
        } catch (Failed failed) {
            counts.failed++;
            throw failed;
        } finally {
            if (began != 0) {
                counts.us.add((System.nanoTime() - began) / 1000.0);
            }
        }
    }

    /**
     * Returns for each transformation in Java how many records came, were dropped and failed since
     * the last call, and the microseconds that it has taken for some of them.
     */
    List<List<Number>> takeCounts() {
        var taken = new ArrayList<List<Number>>();
        for (var stage : stages) {
            var counts = stage.counts;
            if (counts == null) {
                continue;
            }
            long came = counts.came - counts.told;
            var row = new ArrayList<Number>(List.of(came, counts.dropped, counts.failed));
            row.addAll(counts.us);
            taken.add(row);
            counts.dropped = counts.failed = 0;
            counts.told = counts.came;
            counts.us.clear();
        }
        return taken;
    }

    /** Makes a record of an item. */
    interface Make<T, R> {
        R of(T item) throws Failed;
    }

    /**
     * Returns for each item the record after all transformations, null for a dropped one, or a
     * {@code Failed}. An item without a record (null) has none in the end. Python works on some
     * records while Java works on others; without Python each record is made when it is asked for.
     */
    <T> Iterator<Object> transformAll(List<T> items, Make<T, R> make) {
        if (!isMixed) {
            return items.stream().map(each -> transformed(each, make)).iterator();
        }
        var passes = new ArrayList<Pass<T>>();
        for (int at = 0; at < items.size(); at += PART) {
            var part = items.subList(at, Math.min(at + PART, items.size()));
            passes.add(new Pass<>(part, make, 0));
        }
        return passes.stream().flatMap(pass -> Arrays.stream(pass.finish())).iterator();
    }

    private <T> Object transformed(T item, Make<T, R> make) {
        try {
            var record = make.of(item);
            return record == null ? null : transform(record, (alias, each) -> {});
        } catch (Failed failed) {
            return failed;
        }
    }

    /** Returns an element of {@code transformAll}; throws it if it is a failure. */
    @SuppressWarnings("unchecked")
    R result(Object row) throws Failed {
        if (row instanceof Failed failed) {
            throw failed;
        }
        return (R) row;
    }

    /** Records on their way through the chain, up to the next question to Python. */
    private final class Pass<T> {
        final Object[] rows;
        private final List<Integer> asked = new ArrayList<>();
        private CompletableFuture<byte[]> answer;
        private int stage;

        Pass(List<T> items, Make<T, R> make, int stage) {
            rows = new Object[items.size()];
            this.stage = stage;
            for (int row = 0; row < rows.length; row++) {
                try {
                    rows[row] = make.of(items.get(row));
                } catch (Failed failed) {
                    rows[row] = failed;
                }
            }
            advance();
        }

        Object[] finish() {
            while (stage < stages.size()) {
                takeAnswer();
                stage++;
                advance();
            }
            return rows;
        }

        private void advance() {
            for (; stage < stages.size(); stage++) {
                var each = stages.get(stage);
                if (each.segment >= 0) {
                    ask(each.segment);
                    return;
                }
                for (int row = 0; row < rows.length; row++) {
                    if (!(rows[row] instanceof ConnectRecord)) {
                        continue;
                    }
                    @SuppressWarnings("unchecked")
                    var record = (R) rows[row];
                    try {
                        rows[row] = applied(each, record);
                    } catch (Failed failed) {
                        rows[row] = failed;
                    }
                }
            }
        }

        private void ask(int segment) {
            var batch = crossing.new Batch();
            asked.clear();
            for (int row = 0; row < rows.length; row++) {
                if (rows[row] instanceof ConnectRecord<?> record) {
                    try {
                        batch.add(record);
                        asked.add(row);
                    } catch (RuntimeException odd) {
                        rows[row] =
                                new Failed("TRANSFORMATION", Crossing.class.getName(), odd, 0, null);
                    }
                }
            }
            answer = link.transform(batch.finish(segment));
        }

        @SuppressWarnings("unchecked")
        void takeAnswer() {
            var found = Crossing.read(ByteBuffer.wrap(answer.join()));
            if (!(found instanceof List<?> parts)) {
                throw new ConnectException("Python's transformations failed: " + found);
            }
            var outcomes = (List<?>) parts.get(2);
            for (int place = 0; place < asked.size(); place++) {
                int row = asked.get(place);
                var outcome = outcomes.get(place);
                if (outcome == null) {
                    rows[row] = null;
                } else if (outcome instanceof List<?> fields) {
                    rows[row] = changed((R) rows[row], fields, (List<?>) parts.get(1));
                } else if (outcome instanceof Map<?, ?> failure) {
                    var text = new ConnectException((String) failure.get("text"));
                    rows[row] =
                            new Failed(
                                    "TRANSFORMATION",
                                    (String) failure.get("class"),
                                    text,
                                    ((Long) failure.get("retries")).intValue(),
                                    failure.get("python"));
                }
            }
        }

        private Object changed(R before, List<?> fields, List<?> known) {
            try {
                return crossing.changed(before, fields, known);
            } catch (RuntimeException odd) {
                return new Failed("TRANSFORMATION", Crossing.class.getName(), odd, 0, null);
            }
        }
    }

    /**
     * Returns the result of an operation of a plugin, its operator. Meanwhile the operator's loader
     * is the thread's context class loader. After a retriable exception the operation is repeated
     * if the settings allow that.
     */
    <T> T run(String stage, Object operator, Callable<T> operation) throws Failed {
        long since = timeoutMs > 0 ? System.nanoTime() : 0;
        var thread = Thread.currentThread();
        var before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader(operator));
        try {
            for (int attempt = 1; ; attempt++) {
                try {
                    return operation.call();
                } catch (Exception failed) {
                    if (!(failed instanceof RetriableException) || !waited(attempt, since)) {
                        throw new Failed(
                                stage, operator.getClass().getName(), failed, attempt - 1, null);
                    }
                }
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** Converts the headers of a record to those of Kafka. */
    Headers headers(R record) {
        var headers = new RecordHeaders();
        for (var each : record.headers()) {
            var value =
                    header.fromConnectHeader(
                            record.topic(), each.key(), each.schema(), each.value());
            headers.add(each.key(), value);
        }
        return headers;
    }

    byte[] key(R record, Headers headers) {
        return key.fromConnectData(record.topic(), headers, record.keySchema(), record.key());
    }

    byte[] value(R record, Headers headers) {
        return value.fromConnectData(record.topic(), headers, record.valueSchema(), record.value());
    }

    /** Ends the wait before an operation is repeated; the operation fails instead. */
    void stop() {
        stopping.countDown();
    }

    /** Ends the task, once: asked for it, or because the Python process is gone. */
    void end(Runnable stopTask) {
        if (isEnded.getAndSet(true)) {
            return;
        }
        try {
            stopTask.run();
        } finally {
            close();
        }
    }

    /** Closes all plugins, whatever they throw. */
    private void close() {
        for (var stage : stages) {
            close(stage.change);
            close(stage.when);
        }
        close(key);
        close(value);
        close(header);
    }

    private static Map<String, String> config(JsonNode plugin) {
        return Context.strings(plugin.path("config"));
    }

    private static void configured(Object plugin, Runnable configure) {
        Loaders.within(
                loader(plugin),
                () -> {
                    configure.run();
                    PluginsMetrics.give(plugin);
                    return null;
                });
    }

    private static ClassLoader loader(Object plugin) {
        return plugin.getClass().getClassLoader();
    }

    /** Waits before an operation is repeated; returns false if it is not to be repeated. */
    private boolean waited(int attempt, long since) {
        long spentMs =
                timeoutMs > 0 ? TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - since) : 0;
        if (timeoutMs >= 0 && spentMs >= timeoutMs) {
            return false;
        }
        long delayMs = FIRST_DELAY_MS << Math.min(attempt - 1, 40);
        if (delayMs > maxDelayMs) {
            delayMs = (long) (maxDelayMs * ThreadLocalRandom.current().nextDouble());
        }
        if (timeoutMs >= 0) {
            delayMs = Math.min(delayMs, timeoutMs - spentMs);
        }
        try {
            return !stopping.await(delayMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            // A plugin has interrupted its own thread; as in Kafka's worker only the wait ends.
            return true;
        }
    }

    private static void close(AutoCloseable plugin) {
        try {
            if (plugin != null) {
                plugin.close();
            }
        } catch (Throwable failed) {
            LOG.warn("could not be closed: {}", plugin.getClass().getName(), failed);
        }
    }
}
