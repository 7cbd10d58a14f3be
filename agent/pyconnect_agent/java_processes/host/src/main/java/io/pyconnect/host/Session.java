package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What one Python process has begun: its link, its job, and the group of the threads of both.
 *
 * <p>The threads that a plugin starts belong to the group too: they tell whose a line of the log, a
 * stack or a thread is. A process has one session, or many ({@link Shared}).
 */
final class Session extends ThreadGroup {
    /** The exit codes with which {@code end.py} knows what has ended the process. */
    static final int EXIT_FAILED = 70;

    private static final int EXIT_STUCK = 76;

    /** How long a plugin has to stop once its Python process is gone. */
    private static final long STOP_MS = Long.getLong("io.pyconnect.stop.ms", 10_000);

    private static final int LOOK_MS = 20;
    private static final Map<Long, Session> ALL = new ConcurrentSkipListMap<>();
    private static final AtomicLong LAST = new AtomicLong();

    private final long number = LAST.incrementAndGet();
    private final List<Thread> own = new CopyOnWriteArrayList<>();
    private final Link link;
    private final boolean isAlone;
    private volatile Link.Receiver job;
    /** The connector or task that it was begun for. */
    private volatile String owner = "";
    private volatile boolean isOver;

    Session(Link link, boolean isAlone) {
        super("session");
        this.link = link;
        this.isAlone = isAlone;
        ALL.put(number, this);
    }

    /** Returns the session of a thread; null for one of the virtual machine or of no session. */
    static Session of(Thread thread) {
        var group = thread.getThreadGroup();
        while (group != null && !(group instanceof Session)) {
            group = group.getParent();
        }
        return (Session) group;
    }

    /** Returns the session that lines without one of their own go to; null without any. */
    static Session first() {
        for (var session : ALL.values()) {
            return session;
        }
        return null;
    }

    static int count() {
        return ALL.size();
    }

    Link link() {
        return link;
    }

    boolean isOver() {
        return isOver;
    }

    /** Returns a thread of this session, without which its Python process would wait. */
    Thread thread(String name, Runnable work) {
        var thread = new Thread(this, work, name);
        thread.setUncaughtExceptionHandler((ended, failed) -> fail(failed));
        own.removeIf(each -> each.getState() == Thread.State.TERMINATED);
        own.add(thread);
        return thread;
    }

    /** Serves the link to its end, and then ends what was begun. */
    void serve() {
        try {
            link.read(this::receive);
        } catch (Throwable failed) {
            // A process in Python that is killed may end its connection by a reset.
            if (isAlone || !(failed instanceof IOException)) {
                fail(failed);
            }
        }
        if (isAlone) {
            // The Python process is gone. Shutdown hooks of plugins could delay the end.
            Runtime.getRuntime().halt(0);
        }
        end();
    }

    private void receive(int kind, int id, ByteBuffer payload) throws IOException {
        switch (kind) {
            case Link.JOB -> {
                var described = Host.json(payload);
                // On another thread: this one reads the answers to what a constructor asks.
                thread("begin", () -> link.answer(id, () -> begin(described))).start();
            }
            case Link.LEVELS -> Logs.setLevels(Host.json(payload));
            case Link.STACKS -> link.answer(id, () -> Stacks.describe(this));
            // Getters of beans are code of the plugin, which may wait.
            case Link.MBEANS -> thread("mbeans", () -> link.answer(id, this::beans)).start();
            default -> job.receive(kind, id, payload);
        }
    }

    private Map<String, Object> begin(JsonNode described) throws InterruptedException {
        var name = described.path("owner").asText();
        // What the same owner's last process has begun may still be about to end.
        while (isStillEnding(name)) {
            Thread.sleep(LOOK_MS);
        }
        owner = name;
        var begun = Host.begin(link, described);
        job = begun.job();
        return begun.facts();
    }

    private static boolean isStillEnding(String name) {
        return ALL.values().stream().anyMatch(each -> each.isOver && each.owner.equals(name));
    }

    /** Beans belong to the process: one of its sessions shows them. */
    private List<List<Object>> beans() {
        return first() == this ? MBeans.values() : List.of();
    }

    /** A failure of a thread ends the process, or only this session if there may be others. */
    private void fail(Throwable failed) {
        try {
            if (!isOver) {
                failed.printStackTrace(Host.ERR);
            }
        } finally {
            if (isAlone) {
                Runtime.getRuntime().halt(EXIT_FAILED);
            }
            link.close();
        }
    }

    /** Stops the plugin; if that is impossible, the process ends, and with it the other sessions. */
    private void end() {
        isOver = true;
        link.giveUp();
        interrupt();
        own.forEach(this::join);
        var begun = job;
        if (begun != null) {
            var stop = thread("stop", begun::end);
            stop.start();
            join(stop);
        }
        job = null;
        ALL.remove(number);
        // Its Python process waits for that when it ends by itself.
        link.close();
    }

    private void join(Thread thread) {
        if (thread == Thread.currentThread()) {
            return;
        }
        long end = System.nanoTime() + STOP_MS * 1_000_000;
        while (thread.isAlive()) {
            long leftMs = (end - System.nanoTime()) / 1_000_000;
            if (leftMs <= 0) {
                Host.ERR.printf(
                        "The thread \"%s\" did not end within %d ms after its process in Python.%n",
                        thread.getName(), STOP_MS);
                Runtime.getRuntime().halt(EXIT_STUCK);
            }
            try {
                thread.join(leftMs);
            } catch (InterruptedException interrupted) {
                // By the interruption of the group, which this thread belongs to.
            }
        }
    }
}
