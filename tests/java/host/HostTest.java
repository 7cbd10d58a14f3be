package io.pyconnect.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.DataInputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Parts of the host without a worker: {@code columns} copies the columns of batches for sinks to
 * those of batches of sources, {@code json} reads and writes JSON, {@code types} writes what JSON has
 * no type for, {@code loaders} says which loaders classes of a location come from.
 */
public final class HostTest {
    private HostTest() {}

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "columns" -> {
                var writer = new Columns.Writer();
                echo(payload -> copy(ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN), writer));
            }
            case "json" -> echo(payload -> Json.bytes(Json.plain(Json.read(payload))));
            case "types" -> System.out.write(Json.bytes(types()));
            case "loaders" -> {
                var jars = List.of(arguments).subList(2, arguments.length);
                loaders(arguments[1], jars);
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private interface Copy {
        byte[] of(byte[] payload) throws IOException;
    }

    /** Each payload is preceded by its length. */
    private static void echo(Copy copy) throws IOException {
        var in = new DataInputStream(System.in);
        while (true) {
            var payload = new byte[in.readInt()];
            in.readFully(payload);
            byte[] copied = copy.of(payload);
            var length = ByteBuffer.allocate(4).putInt(copied.length).array();
            System.out.write(length);
            System.out.write(copied);
            System.out.flush();
        }
    }

    private static byte[] copy(ByteBuffer batch, Columns.Writer writer) throws IOException {
        var consumed = new Columns.Consumed(batch);
        if (batch.hasRemaining()) {
            throw new IOException(batch.remaining() + " bytes are left");
        }
        for (int row = 0; row < consumed.count; row++) {
            var raw = consumed.next();
            writer.add(raw.topic(), Map.of("type", raw.type()), raw.partition(), raw.timestamp());
            writer.offsets.addJson(raw.offset() % 3 == 0 ? null : Map.of("at", raw.offset()));
            writer.keys.add(raw.key());
            writer.values.add(raw.value());
            writer.headers.add(Columns.packed(Columns.unpacked(raw.headers())));
        }
        return writer.finish(new HashMap<>());
    }

    private static List<Object> types() {
        return List.of(
                (byte) 1,
                (short) 2,
                3,
                4L,
                1.5f,
                2.5,
                Double.NaN,
                new BigInteger("100000000000000000000"),
                new BigDecimal("0.10"),
                new byte[] {1, 2},
                ByteBuffer.wrap(new byte[] {0, 1, 2}, 1, 2),
                Thread.State.NEW,
                Map.of(1, List.of()));
    }

    private static void loaders(String locations, List<String> jars) throws IOException {
        var loaders = new Loaders(Json.read(locations.getBytes(UTF_8)));
        var loader = loaders.loader(jars);
        var ours = HostTest.class.getClassLoader();
        for (var name :
                List.of(
                        "lib.Own",
                        "other.Plugin",
                        "other.Library",
                        "other.Gone",
                        Schema.class.getName(),
                        "org.apache.kafka.connect.json.JsonConverter",
                        "org.slf4j.Logger",
                        "com.fasterxml.jackson.databind.JsonNode")) {
            System.out.println(name + " " + place(name, loader, ours));
        }
        System.out.println("same " + (loaders.loader(List.of()) == ours));
    }

    private static String place(String name, ClassLoader loader, ClassLoader ours) {
        try {
            var found = Loaders.load(name, loader).getClassLoader();
            return found == ours ? "worker" : found == loader ? "plugin" : "elsewhere";
        } catch (ConnectException missing) {
            return "nowhere";
        }
    }
}
