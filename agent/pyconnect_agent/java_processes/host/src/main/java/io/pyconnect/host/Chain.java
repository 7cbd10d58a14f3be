package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.connector.ConnectRecord;
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

    final Converter key;
    final Converter value;
    final HeaderConverter header;
    final boolean toleratesAll;

    private final List<Stage<R>> stages = new ArrayList<>();
    private final long timeoutMs;
    private final long maxDelayMs;
    private final CountDownLatch stopping = new CountDownLatch(1);

    /** Thrown when an operation on a record has failed and is not repeated any more. */
    static final class Failed extends Exception {
        private static final long serialVersionUID = 1;

        final String stage;
        final Class<?> operator;
        final int retries;

        Failed(String stage, Class<?> operator, Exception cause, int retries) {
            super(cause);
            this.stage = stage;
            this.operator = operator;
            this.retries = retries;
        }

        /** Returns a map that may be changed; {@code row} is the record's place in its frame. */
        Map<String, Object> describe(int row) {
            var described = new HashMap<String, Object>();
            described.put("row", row);
            described.put("stage", stage);
            described.put("class", operator.getName());
            described.put("retries", retries);
            described.put("error", Errors.describe(getCause()));
            return described;
        }
    }

    private record Stage<R extends ConnectRecord<R>>(
            String alias, Transformation<R> change, Predicate<R> when, boolean not) {
        R apply(R record) {
            return when == null || Loaders.within(loader(when), () -> when.test(record)) != not
                    ? change.apply(record)
                    : record;
        }
    }

    @SuppressWarnings("unchecked")
    Chain(JsonNode job, Loaders loaders) {
        var converters = job.get("converters");
        key = loaders.instance(converters.get("key"), Converter.class);
        configured(key, () -> key.configure(config(converters.get("key")), true));
        value = loaders.instance(converters.get("value"), Converter.class);
        configured(value, () -> value.configure(config(converters.get("value")), false));
        header = loaders.instance(converters.get("header"), HeaderConverter.class);
        configured(header, () -> header.configure(config(converters.get("header"))));
        for (var stage : job.get("transforms")) {
            Transformation<R> change = loaders.instance(stage, Transformation.class);
            configured(change, () -> change.configure(config(stage)));
            Predicate<R> when = null;
            if (stage.hasNonNull("predicate")) {
                Predicate<R> found = loaders.instance(stage.get("predicate"), Predicate.class);
                configured(found, () -> found.configure(config(stage.get("predicate"))));
                when = found;
            }
            var alias = stage.path("alias").asText();
            stages.add(new Stage<>(alias, change, when, stage.path("negate").asBoolean()));
        }
        toleratesAll = job.path("toleratesAll").asBoolean();
        timeoutMs = job.path("retryTimeoutMs").asLong();
        maxDelayMs = job.path("retryDelayMaxMs").asLong();
    }

    /** Returns the record after all transformations, null if one of them has dropped it. */
    R transform(R record) throws Failed {
        return transform(record, (alias, each) -> {});
    }

    /** Shows the record after each transformation to {@code seen}, with the alias of that. */
    R transform(R record, BiConsumer<String, R> seen) throws Failed {
        var current = record;
        for (var stage : stages) {
            var before = current;
            current = run("TRANSFORMATION", stage.change, () -> stage.apply(before));
            seen.accept(stage.alias, current);
            if (current == null) {
                return null;
            }
        }
        return current;
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
                        throw new Failed(stage, operator.getClass(), failed, attempt - 1);
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

    /** Closes all plugins, whatever they throw. */
    void close() {
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
