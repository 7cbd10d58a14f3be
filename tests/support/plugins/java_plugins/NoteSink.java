package io.pyconnect.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Notes what it is called with, one line each; values may ask for something else. */
public class NoteSink extends SinkConnector {
    private Map<String, String> config;

    @Override
    public void start(Map<String, String> config) {
        this.config = config;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Notes.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return List.of(config);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1.2.3";
    }

    /** The task. */
    public static class Notes extends SinkTask {
        private Path file;
        private boolean hasFailed;
        private Path resume;
        private Long openAt;
        private TopicPartition paused;

        @Override
        public void start(Map<String, String> config) {
            file = Path.of(config.get("notes"));
            resume = Path.of(config.get("notes") + ".resume");
            openAt = config.containsKey("openAt") ? Long.valueOf(config.get("openAt")) : null;
            note("start");
        }

        @Override
        public void open(Collection<TopicPartition> partitions) {
            note("open " + partitions + " of " + context.assignment());
            if (openAt != null) {
                partitions.forEach(partition -> context.offset(Map.of(partition, openAt)));
            }
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            if (paused != null) {
                wait(records.isEmpty());
            }
            for (var record : records) {
                var value = String.valueOf(record.value());
                if (value.equals("again") && !hasFailed) {
                    hasFailed = true;
                    context.timeout(100);
                    throw new RetriableException("not yet");
                } else if (value.equals("throw")) {
                    throw new IllegalArgumentException("thrown by put");
                } else if (value.equals("errant")) {
                    var reporter = context.errantRecordReporter();
                    var report = reporter.report(record, new IllegalStateException("errant value"));
                    await(report);
                } else if (value.equals("rewind") && !hasFailed) {
                    hasFailed = true;
                    var partition = new TopicPartition(record.topic(), record.kafkaPartition());
                    context.offset(partition, 0);
                } else if (value.equals("commit")) {
                    context.requestCommit();
                } else if (value.equals("pause")) {
                    paused = new TopicPartition(record.topic(), record.kafkaPartition());
                    context.pause(paused);
                    context.timeout(20);
                }
                var headers = new StringBuilder();
                record.headers().forEach(header -> headers.append(" ").append(header));
                note(record.kafkaOffset() + " " + record.key() + "=" + value + headers);
            }
        }

        /** Resumes what is paused once a file is there. */
        private void wait(boolean isEmpty) {
            note(isEmpty ? "waits" : "got records of what is paused");
            if (Files.exists(resume)) {
                context.resume(paused);
                paused = null;
                note("resume");
            } else {
                context.timeout(20);
            }
        }

        private static void await(java.util.concurrent.Future<Void> report) {
            try {
                report.get();
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }

        @Override
        public void flush(Map<TopicPartition, OffsetAndMetadata> offsets) {
            offsets.values().forEach(offset -> note("flush " + offset.offset()));
        }

        @Override
        public void close(Collection<TopicPartition> partitions) {
            note("close " + partitions.size());
        }

        @Override
        public void stop() {
            note("stop");
        }

        @Override
        public String version() {
            return "1.2.3";
        }

        private void note(String line) {
            try {
                Files.writeString(
                        file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException failed) {
                throw new IllegalStateException(failed);
            }
        }
    }
}
