package told;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Makes one record in each poll, unless {@code deed} says otherwise. */
public class Source extends SourceConnector {
    @Override
    public void start(Map<String, String> config) {}

    @Override
    public Class<? extends Task> taskClass() {
        return Records.class;
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

    private static final class Unreadable extends RuntimeException {
        @Override
        public String getMessage() {
            throw new IllegalStateException("thrown by getMessage");
        }
    }

    /** The task. */
    public static class Records extends SourceTask {
        private Notes notes;
        private String deed;
        private volatile boolean isStopped;
        private volatile int polls;

        @Override
        public void start(Map<String, String> config) {
            notes = new Notes(config);
            deed = config.get("deed");
            if (deed.equals("show beans")) {
                showBeans();
            } else if (deed.equals("leave files")) {
                leaveFile();
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            notes.add("poll");
            polls++;
            switch (deed) {
                case "poll slowly" -> notes.awaitGo();
                case "fail" -> throw new IllegalStateException("thrown by poll");
                case "time out" -> throw new TimeoutException("Kafka's, thrown by poll");
                case "commit and fail" -> {
                    context.transactionContext().commitTransaction();
                    throw new RetriableException("thrown by poll");
                }
                case "commit a copy" -> context.transactionContext().commitTransaction(record());
                case "fail without a message" -> throw new Unreadable();
                case "store a date" -> {
                    var offset = Map.of("at", new Date(0));
                    return List.of(new SourceRecord(null, offset, "t", null, "value"));
                }
                case "make it bad" -> {
                    return List.of(record("bad"));
                }
                case "return null" -> {
                    return Arrays.asList(null, record(), null);
                }
                default -> {}
            }
            return List.of(record());
        }

        @Override
        public void commit() throws InterruptedException {
            for (int i = 0; i < 100 && deed.equals("commit slowly") && !isStopped; i++) {
                Thread.sleep(5);
            }
            notes.add("commit");
            if (deed.equals("throw errors")) {
                throw new AssertionError("thrown by commit");
            }
        }

        @Override
        public void commitRecord(SourceRecord record, RecordMetadata metadata)
                throws InterruptedException {
            for (int i = 0; i < 100 && deed.equals("take results slowly") && polls < 2; i++) {
                Thread.sleep(5);
            }
            notes.add("commitRecord");
            if (deed.equals("note sizes")) {
                int key = metadata.serializedKeySize();
                notes.add("sizes " + key + " " + metadata.serializedValueSize());
            }
            if (deed.equals("throw errors")) {
                throw new AssertionError("thrown by commitRecord");
            }
        }

        @Override
        public void stop() {
            isStopped = true;
            notes.add("stop");
            if (deed.equals("throw errors")) {
                throw new AssertionError("thrown by stop");
            }
        }

        @Override
        public String version() {
            return "1";
        }

        private static void leaveFile() {
            try {
                File.createTempFile("told-", ".so").deleteOnExit();
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        private static void showBeans() {
            try {
                var server = ManagementFactory.getPlatformMBeanServer();
                var name = "told.source:type=task-metrics,server=\"a,b=c\",context=streaming";
                server.registerMBean(new Beans(), new ObjectName(name));
            } catch (JMException failed) {
                throw new IllegalStateException(failed);
            }
        }

        /** Numbers, a boolean, a map, a text, and one that fails. */
        public interface BeansMXBean {
            long getBehind();

            boolean isConnected();

            Map<String, Long> getRows();

            String getText();

            double getRatio();

            int getBroken();
        }

        public static final class Beans implements BeansMXBean {
            @Override
            public long getBehind() {
                return 17;
            }

            @Override
            public boolean isConnected() {
                return true;
            }

            @Override
            public Map<String, Long> getRows() {
                return Map.of("shop.orders", 3L);
            }

            @Override
            public String getText() {
                return "text";
            }

            @Override
            public double getRatio() {
                return Double.NaN;
            }

            @Override
            public int getBroken() {
                throw new IllegalStateException("thrown by a getter");
            }
        }

        private static SourceRecord record() {
            return record("value");
        }

        private static SourceRecord record(String value) {
            return new SourceRecord(Map.of("a", 1), Map.of("b", 2), "t", null, value);
        }
    }
}
