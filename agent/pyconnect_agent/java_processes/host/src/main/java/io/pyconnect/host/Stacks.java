package io.pyconnect.host;

import java.util.Comparator;

/** The stacks of a session's threads and of those of none, in the form of Java's own dumps. */
final class Stacks {
    private Stacks() {}

    static String describe(Session session) {
        var text = new StringBuilder();
        var stacks = Thread.getAllStackTraces();
        stacks.keySet().stream()
                .filter(thread -> isOf(session, thread))
                .sorted(Comparator.comparingLong(Thread::getId))
                .forEach(
                        thread -> {
                            var name = thread.getName();
                            text.append("Java thread \"%s\" %s\n".formatted(name, thread.getState()));
                            for (var frame : stacks.get(thread)) {
                                text.append("  at ").append(frame).append('\n');
                            }
                            text.append('\n');
                        });
        return text.toString();
    }

    private static boolean isOf(Session session, Thread thread) {
        var found = Session.of(thread);
        return found == null || found == session;
    }
}
