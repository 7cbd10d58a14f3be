package told;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Notes the values of its records; some of them ask for more. */
public class Sink extends SinkConnector {
    @Override
    public void start(Map<String, String> config) {}

    @Override
    public Class<? extends Task> taskClass() {
        return Values.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return List.of();
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }

    /** The task. */
    public static class Values extends SinkTask {
        private Notes notes;

        @Override
        public void start(Map<String, String> config) {
            notes = new Notes(config);
        }

        @Override
        public void open(Collection<TopicPartition> partitions) {
            notes.add("open of " + context.assignment());
            if (partitions.contains(new TopicPartition("fails", 0))) {
                throw new RetriableException("thrown by open");
            }
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            for (var record : records) {
                notes.add("put " + record.value());
                if (record.value().equals("time out")) {
                    throw new TimeoutException("Kafka's, thrown by put");
                } else if (record.value().equals("errant")) {
                    report(record);
                }
            }
        }

        private void report(SinkRecord record) {
            var reporter = context.errantRecordReporter();
            try {
                var report = reporter.report(record, new IllegalStateException());
                report.cancel(true);
            } catch (UnsupportedOperationException impossible) {
                notes.add("report: " + impossible.getMessage());
            } catch (ConnectException refused) {
                notes.add("refused: " + refused.getMessage());
            }
        }

        @Override
        public Map<TopicPartition, OffsetAndMetadata> preCommit(
                Map<TopicPartition, OffsetAndMetadata> offsets) {
            context.requestCommit();
            return null;
        }

        @Override
        public void stop() {
            notes.add("stop");
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
