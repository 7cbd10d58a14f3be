package told;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

/** What plugins were called with, one line each, in the file that their settings name. */
final class Notes {
    private final Path file;

    Notes(Map<String, ?> config) {
        file = Path.of(config.get("notes").toString());
    }

    synchronized void add(String line) {
        try {
            Files.writeString(
                    file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** Adds whether libraries of the plugin would find their services. */
    void addLoader(Object plugin) {
        var name = plugin.getClass().getSimpleName();
        var found = Thread.currentThread().getContextClassLoader();
        add(name + (found == plugin.getClass().getClassLoader() ? " with" : " without") + " its loader");
    }

    /** Waits until the test has made another file. */
    void awaitGo() throws InterruptedException {
        while (!Files.exists(file.resolveSibling("go"))) {
            Thread.sleep(5);
        }
    }
}
