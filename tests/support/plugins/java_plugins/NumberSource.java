package io.pyconnect.tests;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import javax.management.JMException;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/** Makes the numbers from 0 on, and at one of them does what {@code deed} says. */
public class NumberSource extends SourceConnector {
    private Map<String, String> config;
    private Thread monitor;
    private volatile int tasks = 1;

    @Override
    public void start(Map<String, String> config) {
        this.config = config;
        if (config.getOrDefault("deed", "").equals("raise")) {
            context().raiseError(new IllegalStateException("raised by the connector"));
        }
        if (config.containsKey("wish")) {
            monitor = new Thread(() -> monitor(Path.of(config.get("wish"))), "monitor");
            monitor.start();
        }
    }

    /** Follows a file, as other connectors follow the tables of a database. */
    private void monitor(Path file) {
        try {
            while (true) {
                Thread.sleep(20);
                var wish = Files.exists(file) ? Files.readString(file).strip() : "";
                if (wish.equals("raise")) {
                    context().raiseError(new IllegalStateException("raised by the monitor"));
                    return;
                } else if (!wish.isEmpty() && Integer.parseInt(wish) != tasks) {
                    tasks = Integer.parseInt(wish);
                    context().requestTaskReconfiguration();
                }
            }
        } catch (IOException | InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Numbers.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return Collections.nCopies(Math.min(tasks, maxTasks), config);
    }

    @Override
    public void stop() {
        if (monitor != null) {
            monitor.interrupt();
        }
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1.2.3";
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(
            Map<String, String> config) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    @Override
    public boolean alterOffsets(
            Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    /** The task; notes what it hears of its records. */
    public static class Numbers extends SourceTask {
        private static final Logger LOG = LoggerFactory.getLogger(Numbers.class);

        private final List<byte[]> memory = new ArrayList<>();
        private final List<Object> proxies = new ArrayList<>();
        private Map<String, String> config;
        private Map<String, String> place = Map.of("place", "here");
        private long next;

        @Override
        public void start(Map<String, String> config) {
            this.config = config;
            if (config.containsKey("zone")) {
                place = new LinkedHashMap<>();
                place.put("zone", config.get("zone"));
                place.put("place", "here");
            }
            var offset = context.offsetStorageReader().offset(place);
            next = offset == null ? 0 : (Long) offset.get("number") + 1;
            note("start " + next);
            if (config.containsKey("bean")) {
                showBean();
            }
        }

        /** What a bean shows. */
        public interface NumbersMXBean {
            long getNext();
        }

        private void showBean() {
            try {
                NumbersMXBean bean = () -> next;
                var name = new ObjectName("tests:type=numbers,name=" + config.get("bean"));
                var server = ManagementFactory.getPlatformMBeanServer();
                server.registerMBean(new StandardMBean(bean, NumbersMXBean.class, true), name);
            } catch (JMException failed) {
                throw new IllegalStateException(failed);
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            long limit = Long.parseLong(config.getOrDefault("limit", "10"));
            if (next >= limit) {
                Thread.sleep(100);
                return null;
            }
            Thread.sleep(Long.parseLong(config.getOrDefault("pause", "0")));
            var records = new ArrayList<SourceRecord>();
            long most = Long.parseLong(config.getOrDefault("most", "5"));
            while (next < limit && records.size() < most) {
                if (next == 7) {
                    act();
                }
                boolean isBad = config.getOrDefault("deed", "").equals("bad") && next % 4 == 3;
                int padding = Integer.parseInt(config.getOrDefault("padding", "0"));
                Object value = "number " + next + " ".repeat(padding);
                if (config.getOrDefault("deed", "").equals("bad") && !isBad) {
                    value = next;
                }
                var record =
                        new SourceRecord(
                                place,
                                Map.of("number", next),
                                config.get("topic"),
                                null,
                                "key " + next,
                                null,
                                value);
                record.headers().addString("header", "of " + next);
                records.add(record);
                bound(record);
                next++;
            }
            return records;
        }

        private void bound(SourceRecord record) {
            if (context.transactionContext() != null && next % 4 == 3) {
                context.transactionContext().commitTransaction(record);
            } else if (context.transactionContext() != null && next == 5) {
                context.transactionContext().abortTransaction(record);
            }
        }

        private void act() {
            switch (config.getOrDefault("deed", "")) {
                case "throw" -> throw new IllegalStateException("thrown by the task");
                case "exit" -> System.exit(Integer.parseInt(config.getOrDefault("code", "7")));
                case "reveal" -> reveal(config.get("secret"));
                case "noise" -> makeNoise();
                case "hook" -> {
                    Runtime.getRuntime().addShutdownHook(new Thread(Numbers::hang, "hanging-hook"));
                    System.exit(7);
                }
                case "recurse" -> act();
                case "riddle" -> throw new Riddle();
                case "cut" -> throw new IllegalStateException("cut at \uD83D");
                case "spawn" -> spawn();
                case "close" -> close();
                case "lack" -> throw new OutOfMemoryError("thrown by the task");
                case "array" -> memory.add(new byte[Integer.MAX_VALUE]);
                case "direct" -> ByteBuffer.allocateDirect(1 << 30);
                case "classes" -> {
                    while (true) {
                        proxies.add(proxy());
                    }
                }
                case "print" -> System.out.println("printed by the task");
                case "debug" -> {
                    LOG.debug("told in detail by {}", "the task");
                    LOG.warn((Marker) null, "told in short by {}", "the task");
                }
                case "memory" -> fill(Integer.MAX_VALUE);
                case "hold" -> fill(150);
                case "hang" -> hang();
                case "read" -> next += System.in == null ? 1 : 0;
                default -> {}
            }
        }

        private static void hang() {
            while (true) {
                LockSupport.park();
            }
        }

        private void fill(int megabytes) {
            for (int each = 0; each < megabytes; each++) {
                memory.add(new byte[1 << 20]);
            }
        }

        /** Prints, logs and throws what should be seen nowhere. */
        private static void reveal(String secret) {
            System.out.println("printed " + secret);
            LOG.warn("logged {}", secret, new IllegalStateException("logged " + secret));
            var failed = new IllegalStateException("outer", new IllegalStateException(secret));
            failed.addSuppressed(new IllegalStateException("suppressed " + secret));
            throw failed;
        }

        /** Prints a line of three million characters, and one of all bytes. */
        private static void makeNoise() {
            System.out.println("x".repeat(3_000_000));
            for (int each = 0; each < 256; each++) {
                System.out.write(each);
            }
            System.out.println();
        }

        /** An instance of a class that has never been there. */
        private static Object proxy() {
            var types = new Class<?>[] {Runnable.class};
            var loader = new URLClassLoader(new URL[0]);
            return Proxy.newProxyInstance(loader, types, (proxy, method, arguments) -> null);
        }

        /** Starts a program that has the descriptors of this process. */
        private void spawn() {
            try {
                new ProcessBuilder("sleep", "1000").inheritIO().start();
            } catch (IOException failed) {
                throw new IllegalStateException(failed);
            }
        }

        private static void close() {
            try {
                new FileInputStream(FileDescriptor.in).close();
            } catch (IOException failed) {
                throw new IllegalStateException(failed);
            }
        }

        @Override
        public void commit() {
            note("commit");
        }

        @Override
        public void commitRecord(SourceRecord record, RecordMetadata metadata) {
            note(record.key() + (metadata == null ? " dropped" : " at " + metadata.offset()));
        }

        @Override
        public void stop() {
            note("stop");
        }

        @Override
        public String version() {
            return "1.2.3";
        }

        private synchronized void note(String line) {
            if (config.containsKey("notes")) {
                try {
                    var file = Path.of(config.get("notes"));
                    Files.writeString(
                            file,
                            line + "\n",
                            StandardOpenOption.CREATE,
                            StandardOpenOption.APPEND);
                } catch (IOException failed) {
                    throw new IllegalStateException(failed);
                }
            }
        }
    }

    /** An exception that does not even say what it is. */
    private static final class Riddle extends RuntimeException {
        private static final long serialVersionUID = 1;

        @Override
        public String getMessage() {
            throw new IllegalStateException("asked for its message");
        }
    }
}
