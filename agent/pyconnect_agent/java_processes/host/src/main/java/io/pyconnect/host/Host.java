package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A Java process that serves one connector, one task or one round of questions.
 *
 * <p>The first frame is the job. The process ends with the other end of the socket.
 */
public final class Host {
    /** The exit code with which {@code end.py} knows a failure of this class. */
    private static final int EXIT_FAILED = 70;

    private static volatile Link.Receiver job;

    private Host() {}

    /** A job that consists of calls, which are answered one after the other. */
    interface Answers {
        Object answer(JsonNode call) throws Exception;
    }

    /** A thread that runs what it is given, in that order. */
    static final class Worker {
        private final LinkedBlockingQueue<Runnable> waiting = new LinkedBlockingQueue<>();

        Worker(String name) {
            var thread = thread(name, this::work);
            // The plugin's: its libraries find their services by it.
            thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
            thread.start();
        }

        void run(Runnable work) {
            waiting.add(work);
        }

        void answer(Link link, int id, Callable<?> call) {
            run(() -> link.answer(id, call));
        }

        private void work() {
            while (true) {
                try {
                    waiting.take().run();
                } catch (InterruptedException interrupted) {
                    // A plugin has interrupted its own thread. The next work begins.
                }
            }
        }
    }

    public static void main(String[] arguments) {
        try {
            System.setIn(InputStream.nullInputStream());
            var link = new Link();
            Logs.to(link);
            link.read((kind, id, payload) -> receive(link, kind, id, payload));
        } catch (Throwable failed) {
            fail(failed);
        }
        // The Python process is gone. Shutdown hooks of plugins could delay the end.
        Runtime.getRuntime().halt(0);
    }

    private static Thread thread(String name, Runnable work) {
        var thread = new Thread(work, name);
        thread.setUncaughtExceptionHandler((ended, failed) -> fail(failed));
        return thread;
    }

    /** Ends the process, because without one of these threads the Python process would wait. */
    private static void fail(Throwable failed) {
        try {
            failed.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(EXIT_FAILED);
        }
    }

    private static void receive(Link link, int kind, int id, ByteBuffer payload)
            throws IOException {
        switch (kind) {
            case Link.JOB -> begin(link, id, json(payload));
            case Link.LEVELS -> Logs.setLevels(json(payload));
            case Link.STACKS -> link.answer(id, Stacks::describe);
            // Getters of beans are code of the plugin, which may wait.
            case Link.MBEANS -> thread("mbeans", () -> link.answer(id, MBeans::values)).start();
            default -> job.receive(kind, id, payload);
        }
    }

    static JsonNode json(ByteBuffer payload) throws IOException {
        return Json.read(payload.array());
    }

    private static void begin(Link link, int id, JsonNode described) {
        // On another thread: this one reads the answers to what a constructor asks.
        thread("begin", () -> link.answer(id, () -> begin(link, described))).start();
    }

    /** Makes the connector or task. Returns the facts about it that the Python process needs. */
    private static Map<String, Object> begin(Link link, JsonNode described) {
        var loaders = new Loaders(described.path("locations"));
        var facts = new HashMap<String, Object>();
        if (described.get("mode").asText().equals("questions")) {
            job = inTurn(link, "questions", new Questions(loaders));
            return facts;
        }
        var loader = loaders.load(described.get("connector")).getClassLoader();
        Thread.currentThread().setContextClassLoader(loader);
        var connector = loaders.instance(described.get("connector"), Connector.class);
        job =
                switch (described.get("mode").asText()) {
                    case "task" -> task(link, loaders, connector, described, facts);
                    case "trial" -> {
                        var isSource = connector instanceof SourceConnector;
                        var task =
                                isSource ? (SourceTask) newTask(connector, described, facts) : null;
                        yield inTurn(link, "task", new Trial(link, task, described, loaders));
                    }
                    default ->
                            inTurn(link, "connector", new ConnectorHost(link, connector, facts));
                };
        return facts;
    }

    private static Link.Receiver task(
            Link link,
            Loaders loaders,
            Connector connector,
            JsonNode described,
            Map<String, Object> facts) {
        var task = newTask(connector, described, facts);
        return task instanceof SourceTask source
                ? new SourceHost(link, source, new Chain<>(described, loaders, link), described, facts)
                : new SinkHost(link, (SinkTask) task, new Chain<>(described, loaders, link), described);
    }

    private static Task newTask(
            Connector connector, JsonNode described, Map<String, Object> facts) {
        // A worker of the group, this one or a Java worker, has added it to the task's config.
        var named = described.path("task").textValue();
        var loader = connector.getClass().getClassLoader();
        var type = named == null ? connector.taskClass() : Loaders.load(named, loader);
        var task = Loaders.instance(type, Task.class);
        facts.put("connectorVersion", connector.version());
        facts.put("class", task.getClass().getName());
        facts.put("version", task.version());
        facts.put("isSource", task instanceof SourceTask);
        return task;
    }

    private static Link.Receiver inTurn(Link link, String thread, Answers answers) {
        var calls = new Worker(thread);
        return (kind, id, payload) -> {
            var call = json(payload);
            calls.answer(link, id, () -> answers.answer(call));
        };
    }
}
