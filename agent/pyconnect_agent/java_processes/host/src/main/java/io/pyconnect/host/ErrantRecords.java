package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;

/** Sends the task's reports of records to the Python process, which decides about them. */
final class ErrantRecords implements ErrantRecordReporter {
    private final Link link;
    private final Chain<SinkRecord> chain;
    private volatile boolean isRefused;

    ErrantRecords(Link link, Chain<SinkRecord> chain) {
        this.link = link;
        this.chain = chain;
    }

    @Override
    public Future<Void> report(SinkRecord record, Throwable error) {
        var raw = record instanceof ConsumedRecord own ? own.raw : raw(record);
        var question = Map.of("record", raw.facts(), "error", Errors.describe(error));
        var report = new Report();
        link.askLater("awaitErrant", Map.of("report", accepted(question))).thenAccept(report::end);
        return report;
    }

    /** Done when the record is in the dead letter queue. */
    private static final class Report extends CompletableFuture<Void> {
        void end(JsonNode answer) {
            try {
                Link.value(answer);
                complete(null);
            } catch (ConnectException failed) {
                completeExceptionally(failed);
            }
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            throw new UnsupportedOperationException(
                    "Reporting an errant record cannot be cancelled.");
        }
    }

    /** Returns the number of a report; throws an exception if errors are not tolerated. */
    private long accepted(Map<String, ?> question) {
        try {
            return link.ask("reportErrant", question).asLong();
        } catch (ConnectException refused) {
            isRefused = true;
            throw refused;
        }
    }

    /** Returns whether a report was refused, after which the Python process fails the task. */
    boolean isRefused() {
        return isRefused;
    }

    /** Converts a record that the task has made itself to the form that it would have in Kafka. */
    private Columns.Raw raw(SinkRecord record) {
        var headers = chain.headers(record);
        return new Columns.Raw(
                record.topic(),
                record.kafkaPartition() == null ? -1 : record.kafkaPartition(),
                record.kafkaOffset(),
                record.timestamp() == null ? -1 : record.timestamp(),
                record.timestampType().ordinal(),
                chain.key(record, headers),
                chain.value(record, headers),
                Columns.packed(headers));
    }

    /** A record for the task that remembers the consumed one, as do records made from it. */
    static final class ConsumedRecord extends SinkRecord {
        private final Columns.Raw raw;

        ConsumedRecord(SinkRecord record, Columns.Raw raw) {
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
                Long timestamp,
                Iterable<Header> headers) {
            var changed =
                    super.newRecord(
                            topic,
                            partition,
                            keySchema,
                            key,
                            valueSchema,
                            value,
                            timestamp,
                            headers);
            return new ConsumedRecord(changed, raw);
        }
    }
}
