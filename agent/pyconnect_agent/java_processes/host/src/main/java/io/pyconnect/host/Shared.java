package io.pyconnect.host;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * A process for the connectors and tasks of several Python processes, each with a session.
 *
 * <p>Sockets of TCP: a plugin interrupts its threads, and that would close a channel, the only way to
 * Unix sockets. A Python process shows a token from a file that only this user can read. The process
 * ends some time after its last session.
 */
final class Shared {
    private static final int TOKEN_BYTES = 16;
    private static final int LOOK_MS = 500;
    private static final int GREETING_MS = 10_000;
    private static final int LINGER_MS = Integer.getInteger("io.pyconnect.linger.ms", 10_000);

    private Shared() {}

    /**
     * Accepts sessions; {@code address} becomes a file with port, token and process id. Without
     * sessions it ends soon, and at once when {@code parent} is gone, whose children they are of.
     */
    static void serve(Path address, long parent) throws IOException {
        System.setOut(new PrintStream(new Lines(), true));
        System.setErr(new PrintStream(new Lines(), true));
        var token = new byte[TOKEN_BYTES];
        new SecureRandom().nextBytes(token);
        // Only one machine's own processes reach it.
        try (var server = new ServerSocket(0, 1024, InetAddress.getByName("127.0.0.1"))) {
            var text = HexFormat.of().formatHex(token);
            var line = "%d %s %d".formatted(
                    server.getLocalPort(), text, ProcessHandle.current().pid());
            var written = Path.of(address + ".new");
            Files.writeString(written, line);
            Files.move(written, address, StandardCopyOption.ATOMIC_MOVE);
            server.setSoTimeout(LOOK_MS);
            long lastSeen = System.nanoTime();
            while (true) {
                if (Session.count() > 0) {
                    lastSeen = System.nanoTime();
                } else if (System.nanoTime() - lastSeen > LINGER_MS * 1_000_000L
                        || ProcessHandle.of(parent).isEmpty()) {
                    break;
                }
                try {
                    greet(server.accept(), token);
                } catch (SocketTimeoutException nobody) {
                    // Time to look whether anybody is still here.
                }
            }
            Files.deleteIfExists(address);
        }
    }

    /** Begins a session with one who knows the token. */
    private static void greet(Socket socket, byte[] token) {
        try {
            socket.setSoTimeout(GREETING_MS);
            socket.setTcpNoDelay(true);
            if (MessageDigest.isEqual(token, socket.getInputStream().readNBytes(TOKEN_BYTES))) {
                socket.setSoTimeout(0);
                var session = new Session(new Link(socket), false);
                socket.getOutputStream().write('+');
                session.thread("frames", session::serve).start();
            } else {
                socket.close();
            }
        } catch (IOException gone) {
            // Whoever it was has left.
        }
    }

    /** What a plugin prints, in the log of its session. */
    private static final class Lines extends ByteArrayOutputStream {
        private static final int LINE_BYTES = 8_192;

        @Override
        public synchronized void flush() {
            var text = toString(Charset.defaultCharset());
            if (text.endsWith("\n") || count > LINE_BYTES) {
                reset();
                text.lines().forEach(line -> Logs.log("java.output", "INFO", () -> line, null));
            }
        }
    }
}
