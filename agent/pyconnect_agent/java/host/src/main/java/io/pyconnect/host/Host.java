package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A Java process that serves one connector, one task or one round of questions.
 *
 * <p>The first frame is the job. The process ends with the other end of the socket.
 */
public final class Host {
    private static volatile Job job;

    private Host() {}

    /** What the frames after the first are for. */
    interface Job {
        /** Returns the answer to the job's frame. */
        Object facts();

        /** Takes a frame; on the thread that reads, which must not wait. */
        void receive(int kind, int id, ByteBuffer payload) throws IOException;
    }

    /** A thread that does one thing after the other. */
    static final class Worker {
        private final LinkedBlockingQueue<Runnable> waiting = new LinkedBlockingQueue<>();

        Worker(String name) {
            var thread = new Thread(this::work, name);
            // Set for all libraries of the plugin that look for their services.
            thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
            thread.start();
        }

        void run(Runnable work) {
            waiting.add(work);
        }

        void answer(Link link, int id, Callable<?> call) {
            run(
                    () -> {
                        Object value;
                        try {
                            value = call.call();
                        } catch (Throwable failed) {
                            link.answerError(id, failed);
                            return;
                        }
                        link.answer(id, value);
                    });
        }

        private void work() {
            while (true) {
                try {
                    waiting.take().run();
                } catch (InterruptedException interrupted) {
                    // A plugin has interrupted its own thread; the work goes on.
                }
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        System.setIn(InputStream.nullInputStream());
        var link = new Link();
        Logs.to(link);
        link.read(
                (kind, id, payload) -> {
                    switch (kind) {
                        case Link.JOB -> begin(link, id, json(payload));
                        case Link.LEVEL -> Logs.setLevel(json(payload));
                        case Link.STACKS -> link.answer(id, Stacks.describe());
                        default -> job.receive(kind, id, payload);
                    }
                });
        // Nobody is left whom an orderly end would be for.
        Runtime.getRuntime().halt(0);
    }

    static JsonNode json(ByteBuffer payload) throws IOException {
        return Json.read(payload.array());
    }

    private static Job task(Link link, Loaders loaders, JsonNode described) {
        var connector = loaders.instance(described.get("connector"), Connector.class);
        // Set by the connector's worker, which may be one of the same group in Java.
        var named = described.path("task").textValue();
        var loader = connector.getClass().getClassLoader();
        var type = named == null ? connector.taskClass() : Loaders.load(named, loader);
        var task = Loaders.instance(type, Task.class);
        var facts = new HashMap<String, Object>();
        facts.put("connectorVersion", connector.version());
        facts.put("class", task.getClass().getName());
        facts.put("version", task.version());
        facts.put("isSource", task instanceof SourceTask);
        return task instanceof SourceTask source
                ? new SourceHost(link, source, new Chain<>(described, loaders), described, facts)
                : new SinkHost(link, (SinkTask) task, new Chain<>(described, loaders), described, facts);
    }

    private static void begin(Link link, int id, JsonNode described) {
        described
                .path("levels")
                .properties()
                .forEach(level -> Logs.setLevel(level.getKey(), level.getValue().asText()));
        // Not on this thread: what a constructor asks for is answered here.
        var thread = new Thread(() -> answer(link, id, described), "begin");
        thread.start();
    }

    private static void answer(Link link, int id, JsonNode described) {
        try {
            var loaders = new Loaders();
            if (described.has("connector")) {
                var loader = loaders.load(described.get("connector")).getClassLoader();
                Thread.currentThread().setContextClassLoader(loader);
            }
            job =
                    switch (described.get("mode").asText()) {
                        case "task" -> task(link, loaders, described);
                        case "connector" -> new ConnectorHost(link, loaders, described);
                        case "questions" -> new QuestionsHost(link, loaders);
                        default -> throw new IllegalArgumentException("Unknown job " + described);
                    };
            link.answer(id, job.facts());
        } catch (Throwable failed) {
            link.answerError(id, failed);
        }
    }
}
