package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Frames to and from the Python process, over the socket that is descriptor 0 or another one.
 *
 * <p>A frame is the length of what follows (32 bits, little endian), its kind (8), an id (32) and
 * the payload. Plain streams and not a channel: an interrupted thread that writes to a channel
 * closes it, and connectors interrupt their threads.
 */
final class Link {
    static final int JOB = 1;
    static final int CALL = 2;
    static final int ANSWER = 3;
    static final int ASK = 4;
    static final int BATCH = 5;
    static final int CREDIT = 6;
    static final int DELIVER = 7;
    static final int ACKS = 8;
    static final int LOG = 9;
    static final int LEVELS = 10;
    static final int STACKS = 11;
    static final int MBEANS = 12;
    static final int TRANSFORM = 13;
    static final int TRANSFORMED = 14;

    private static final int HEAD_BYTES = 9;
    /** A smaller frame is sent by one write, as each would wake the Python process. */
    private static final int JOINED_BYTES = 1 << 16;
    /** A larger array for records is not kept for later frames. */
    private static final int KEPT_BYTES = 1 << 21;

    /** Takes the frames that are no answers; must not block, as it is called by the reading thread. */
    interface Receiver {
        void receive(int kind, int id, ByteBuffer payload) throws IOException;

        /** Ends what was begun, if no call has done that: the Python process is gone. */
        default void end() {}
    }

    private final DataInputStream in;
    private final OutputStream out;
    private final Map<Integer, CompletableFuture<JsonNode>> asked = new ConcurrentHashMap<>();
    private final Map<Integer, CompletableFuture<byte[]>> transforming = new ConcurrentHashMap<>();
    private final AtomicInteger lastId = new AtomicInteger();
    /** Arrays for records: new ones for each frame would often be copied by the garbage collector. */
    private final Queue<byte[]> rooms = new ArrayBlockingQueue<>(3);

    /** The link of a process that has no other. */
    Link() {
        this(new InputInPieces(), new OutputInPieces());
    }

    Link(Socket socket) throws IOException {
        this(socket.getInputStream(), socket.getOutputStream());
    }

    private Link(InputStream in, OutputStream out) {
        this.in = new DataInputStream(new BufferedInputStream(in, PIECE_BYTES));
        this.out = out;
    }

    /** Lets the Python process see the end. */
    void close() {
        try {
            out.close();
        } catch (IOException gone) {
            // It has seen it.
        }
    }

    /** Answers what was asked, because nobody will. */
    void giveUp() {
        asked.values().forEach(each -> each.completeExceptionally(new ConnectException("The worker is gone")));
    }

    /** Gives frames to {@code receiver} until the other end of the socket is closed. */
    void read(Receiver receiver) throws IOException {
        while (true) {
            int length;
            try {
                length = Integer.reverseBytes(in.readInt());
            } catch (EOFException end) {
                return;
            }
            int kind = in.readByte();
            int id = Integer.reverseBytes(in.readInt());
            int size = length - HEAD_BYTES + Integer.BYTES;
            var payload = kind == DELIVER ? room(size) : new byte[size];
            in.readFully(payload, 0, size);
            if (kind == TRANSFORMED) {
                transforming.remove(id).complete(payload);
            } else if (kind == ANSWER) {
                asked.remove(id).complete(Json.read(payload));
            } else {
                var buffer = ByteBuffer.wrap(payload, 0, size).order(ByteOrder.LITTLE_ENDIAN);
                receiver.receive(kind, id, buffer);
            }
        }
    }

    /** Keeps an array for later frames, once its records have been read. */
    void reuse(byte[] payload) {
        if (payload.length <= KEPT_BYTES) {
            rooms.offer(payload);
        }
    }

    private byte[] room(int size) {
        var room = rooms.poll();
        return room != null && room.length >= size ? room : new byte[size + size / 8];
    }

    void send(int kind, int id, byte[] payload) {
        boolean joined = payload.length <= JOINED_BYTES;
        var head = ByteBuffer.allocate(HEAD_BYTES + (joined ? payload.length : 0));
        head.order(ByteOrder.LITTLE_ENDIAN);
        head.putInt(payload.length + HEAD_BYTES - Integer.BYTES).put((byte) kind).putInt(id);
        if (joined) {
            head.put(payload);
        }
        synchronized (out) {
            try {
                out.write(head.array());
                if (!joined) {
                    out.write(payload);
                }
            } catch (IOException gone) {
                // The reading thread finds the end too, and halts.
                throw new UncheckedIOException(gone);
            }
        }
    }

    void send(int kind, int id, Object json) {
        send(kind, id, Json.bytes(json));
    }

    /** Answers with the result of {@code call}, or its exception, and with further facts. */
    void answer(int id, Callable<?> call, Supplier<Map<String, ?>> facts) {
        var answer = new HashMap<String, Object>();
        try {
            answer.put("value", call.call());
        } catch (Throwable failed) {
            answer.put("error", Errors.describe(failed));
        }
        answer.putAll(facts.get());
        send(ANSWER, id, answer);
    }

    void answer(int id, Callable<?> call) {
        answer(id, call, Map::of);
    }

    /** Sends a question that has no answer. */
    void tell(String method, Map<String, ?> arguments) {
        send(ASK, 0, question(method, arguments));
    }

    /** Asks the Python process and waits; never on the thread that reads. */
    JsonNode ask(String method, Map<String, ?> arguments) {
        try {
            return value(askLater(method, arguments).get());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new ConnectException("Interrupted while the worker was asked", interrupted);
        } catch (ExecutionException failed) {
            throw new ConnectException(failed.getCause());
        }
    }

    CompletableFuture<JsonNode> askLater(String method, Map<String, ?> arguments) {
        int id = lastId.incrementAndGet();
        var answer = new CompletableFuture<JsonNode>();
        asked.put(id, answer);
        send(ASK, id, question(method, arguments));
        return answer;
    }

    /** Gives records to transformations of the Python process; both are as in Crossing. */
    CompletableFuture<byte[]> transform(byte[] records) {
        int id = lastId.incrementAndGet();
        var answer = new CompletableFuture<byte[]>();
        transforming.put(id, answer);
        send(TRANSFORM, id, records);
        return answer;
    }

    /** Returns the value of an answer; throws the error that it carries. */
    static JsonNode value(JsonNode answer) {
        if (answer.has("error")) {
            throw new ConnectException(answer.get("error").get("message").asText());
        }
        return answer.get("value");
    }

    private static Map<String, Object> question(String method, Map<String, ?> arguments) {
        var question = new HashMap<String, Object>(arguments);
        question.put("method", method);
        return question;
    }

    /** Java copies what a file stream reads or writes at once through native memory of that size. */
    private static final int PIECE_BYTES = 1 << 16;

    private static final class InputInPieces extends FileInputStream {
        InputInPieces() {
            super(FileDescriptor.in);
        }

        @Override
        public int read(byte[] target, int from, int length) throws IOException {
            return super.read(target, from, Math.min(length, PIECE_BYTES));
        }
    }

    private static final class OutputInPieces extends FileOutputStream {
        OutputInPieces() {
            super(FileDescriptor.in);
        }

        @Override
        public void write(byte[] source) throws IOException {
            for (int at = 0; at < source.length; at += PIECE_BYTES) {
                write(source, at, Math.min(PIECE_BYTES, source.length - at));
            }
        }
    }
}
