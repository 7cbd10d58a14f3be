package io.pyconnect.host;

import java.util.Comparator;

/** The stacks of this process's threads, in the form of Java's own dumps. */
final class Stacks {
    private Stacks() {}

    static String describe() {
        var text = new StringBuilder();
        var stacks = Thread.getAllStackTraces();
        stacks.keySet().stream()
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
}
