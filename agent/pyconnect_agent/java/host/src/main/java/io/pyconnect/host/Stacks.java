package io.pyconnect.host;

import java.util.Comparator;
import java.util.Map;

/** The stacks of this process's threads, in the form of Java's own dumps. */
final class Stacks {
    private Stacks() {}

    static String describe() {
        var text = new StringBuilder();
        Thread.getAllStackTraces().entrySet().stream()
                .sorted(Comparator.comparingLong(entry -> entry.getKey().getId()))
                .forEach(entry -> describe(entry, text));
        return text.toString();
    }

    private static void describe(Map.Entry<Thread, StackTraceElement[]> entry, StringBuilder text) {
        var thread = entry.getKey();
        text.append("Java thread \"").append(thread.getName()).append("\" ");
        text.append(thread.getState()).append('\n');
        for (var frame : entry.getValue()) {
            text.append("  at ").append(frame).append('\n');
        }
        text.append('\n');
    }
}
