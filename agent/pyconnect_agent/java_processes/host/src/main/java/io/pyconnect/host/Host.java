package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A Java process that serves one connector, one task or one round of questions; or, with the path of
 * an address as its argument, several connectors and tasks ({@link Shared}).
 *
 * <p>The first frame of a link is the job. The process ends with the other end of the socket.
 */
public final class Host {
    /** A process that is shared loads a location once, as a worker does. */
    private static final Map<JsonNode, Loaders> LOADERS = new ConcurrentHashMap<>();

    /** What the virtual machine's own output goes to; plugins may replace System.err. */
    static final PrintStream ERR = System.err;

    private Host() {}

    /** A job that was begun, and the facts about it that the Python process needs. */
    record Begun(Link.Receiver job, Map<String, Object> facts) {}

    /** A job that consists of calls, which are answered one after the other. */
    interface Answers {
        Object answer(JsonNode call) throws Exception;

        /** Ends what was begun, if no call has done that. */
        default void end() {}
    }

    /** A thread that runs what it is given, in that order. */
    static final class Worker {
        private final LinkedBlockingQueue<Runnable> waiting = new LinkedBlockingQueue<>();
        private final Session session = Session.of(Thread.currentThread());

        Worker(String name) {
            var thread = session.thread(name, this::work);
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
            while (!session.isOver()) {
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
            Logs.begin();
            if (arguments.length == 0) {
                new Session(new Link(), true).serve();
            } else {
                Shared.serve(Path.of(arguments[0]), Long.parseLong(arguments[1]));
            }
        } catch (Throwable failed) {
            failed.printStackTrace(ERR);
            Runtime.getRuntime().halt(Session.EXIT_FAILED);
        }
        Runtime.getRuntime().halt(0);
    }

    static JsonNode json(ByteBuffer payload) throws IOException {
        return Json.read(payload.array());
    }

    /** Makes the connector or task. */
    static Begun begin(Link link, JsonNode described) {
        var loaders = LOADERS.computeIfAbsent(described.path("locations"), Loaders::new);
        var facts = new HashMap<String, Object>();
        if (described.get("mode").asText().equals("questions")) {
            return new Begun(inTurn(link, "questions", new Questions(loaders)), facts);
        }
        if (described.get("mode").asText().equals("transformations")) {
            return new Begun(new Transformations(link, described, loaders), facts);
        }
        var loader = loaders.load(described.get("connector")).getClassLoader();
        Thread.currentThread().setContextClassLoader(loader);
        var connector = loaders.instance(described.get("connector"), Connector.class);
        var job =
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
        return new Begun(job, facts);
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
        return new Link.Receiver() {
            @Override
            public void receive(int kind, int id, ByteBuffer payload) throws IOException {
                var call = json(payload);
                calls.answer(link, id, () -> answers.answer(call));
            }

            @Override
            public void end() {
                answers.end();
            }
        };
    }
}
