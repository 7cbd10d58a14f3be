package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
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
        var head = new byte[batch.getInt()];
        batch.get(head);
        JsonNode facts = Link.JSON.readTree(head);
        int count = facts.get("count").asInt();
        var places = new int[2 * count];
        batch.asIntBuffer().get(places);
        batch.position(batch.position() + 8 * count);
        var numbers = new long[2 * count];
        batch.asLongBuffer().get(numbers);
        batch.position(batch.position() + 16 * count);
        var types = new byte[count];
        batch.get(types);
        var keys = Columns.readBlob(batch, count, facts.get("keys").asBoolean());
        var values = Columns.readBlob(batch, count, facts.get("values").asBoolean());
        var headers = Columns.readBlob(batch, count, facts.get("headers").asBoolean());
        if (batch.hasRemaining()) {
            throw new IOException(batch.remaining() + " bytes are left");
        }
        for (int row = 0; row < count; row++) {
            var topic = facts.get("topics").get(places[row]).asText();
            var place = Map.of("type", (int) types[row]);
            writer.add(topic, place, places[count + row], numbers[count + row]);
            writer.offsets.add(Long.toString(numbers[row]).getBytes());
            writer.keys.add(keys[row]);
            writer.values.add(values[row]);
            writer.headers.add(Columns.packed(Columns.unpacked(headers[row])));
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
