package io.pyconnect.host;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;

/**
 * Parts of the host without a worker: {@code echo} copies the columns of batches for sinks to those
 * of batches of sources; {@code loaders} says which loaders classes of a location come from.
 */
public final class HostTest {
    private HostTest() {}

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "echo" -> echo();
            case "loaders" -> loaders(List.of(arguments).subList(1, arguments.length));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /** Each batch is preceded by its length. */
    private static void echo() throws IOException {
        var in = new DataInputStream(System.in);
        var writer = new Columns.Writer();
        while (true) {
            var payload = new byte[in.readInt()];
            in.readFully(payload);
            byte[] copied = copy(ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN), writer);
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
            var raw = consumed.record(row);
            writer.add(raw.topic(), Map.of("type", raw.type()), raw.partition(), raw.timestamp());
            writer.offsets.add(Long.toString(raw.offset()).getBytes());
            writer.keys.add(raw.key());
            writer.values.add(raw.value());
            writer.headers.add(Columns.packed(Columns.unpacked(raw.headers())));
        }
        return writer.finish(new HashMap<>());
    }

    private static void loaders(List<String> jars) {
        var loader = new Loaders().loader(jars);
        var ours = HostTest.class.getClassLoader();
        for (var name :
                List.of(
                        "lib.Own",
                        Schema.class.getName(),
                        "org.apache.kafka.connect.json.JsonConverter",
                        "org.slf4j.Logger",
                        "com.fasterxml.jackson.databind.JsonNode")) {
            var found = Loaders.load(name, loader).getClassLoader();
            System.out.println(name + " " + (found == ours ? "worker" : "plugin"));
        }
        System.out.println("same " + (new Loaders().loader(List.of()) == ours));
    }
}
