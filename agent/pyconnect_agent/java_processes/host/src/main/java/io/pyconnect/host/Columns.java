package io.pyconnect.host;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.errors.ConnectException;

/** The columns of a batch of records, as `frames.py` describes them. */
final class Columns {
    private Columns() {}

    /** A batch is sent with the record that makes it larger than 512 KiB. */
    private static ConnectException tooLarge() {
        return new ConnectException("A source record has more than 2 GiB in key, value and headers");
    }

    /** Values of any length in one array; a value's end is inverted when the value is null. */
    static final class Blob extends OutputStream {
        private int[] ends = new int[1024];
        private byte[] data = new byte[1 << 16];
        private int count;
        private int size;
        private boolean used;
        private JsonGenerator json;

        void add(byte[] value) {
            if (value != null) {
                write(value, 0, value.length);
            }
            end(value != null, size);
        }

        /** Adds a value as JSON; {@code add} is not for such a column. */
        void addJson(Object value) {
            try {
                if (json == null) {
                    json = Json.writer(this);
                }
                if (value != null) {
                    Json.write(json, value);
                }
            } catch (IOException invalid) {
                throw new UncheckedIOException(invalid);
            }
            end(value != null, size + json.getOutputBuffered());
        }

        private void end(boolean isValue, int at) {
            if (count == ends.length) {
                ends = Arrays.copyOf(ends, count * 2);
            }
            used |= isValue;
            ends[count++] = isValue ? at : ~at;
        }

        @Override
        public void write(int each) {
            write(new byte[] {(byte) each}, 0, 1);
        }

        @Override
        public void write(byte[] value, int from, int length) {
            long needed = (long) size + length;
            if (needed > data.length) {
                if (needed > Integer.MAX_VALUE - 16) {
                    throw tooLarge();
                }
                // No more than it takes: a record may fill a large part of the heap.
                long grown = Math.max(needed, 2L * data.length);
                data = Arrays.copyOf(data, (int) Math.min(grown, Integer.MAX_VALUE - 16));
            }
            System.arraycopy(value, from, data, size, length);
            size += length;
        }

        int size() {
            return size;
        }

        private long bytes() {
            return used ? 4L * count + size : 0;
        }

        /** Writes the JSON that is still in the generator's buffer. */
        private void finish() {
            try {
                if (json != null) {
                    json.close();
                }
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }

        private void write(ByteBuffer to) {
            if (used) {
                to.asIntBuffer().put(ends, 0, count);
                to.position(to.position() + 4 * count);
                to.put(data, 0, size);
            }
        }

        private void clear() {
            count = size = 0;
            used = false;
            json = null;
            if (data.length > 1 << 24) {
                data = new byte[1 << 16];
            }
        }
    }

    /** The columns of source records; used for one batch after the other. */
    static final class Writer {
        final Blob keys = new Blob();
        final Blob values = new Blob();
        final Blob offsets = new Blob();
        final Blob headers = new Blob();
        private final Map<Object, Integer> topics = new LinkedHashMap<>();
        private final Map<Object, Integer> places = new LinkedHashMap<>();
        private int[] integers = new int[3 * 1024];
        private long[] timestamps = new long[1024];
        private int count;

        /** Adds the values of fixed size; {@code place} is a source partition. */
        void add(String topic, Object place, Integer partition, Long timestamp) {
            if (count == timestamps.length) {
                timestamps = Arrays.copyOf(timestamps, count * 2);
                integers = Arrays.copyOf(integers, count * 6);
            }
            integers[3 * count] = index(topics, topic);
            integers[3 * count + 1] = index(places, place);
            integers[3 * count + 2] = partition == null ? -1 : partition;
            timestamps[count++] = timestamp == null || timestamp == -1 ? 0 : timestamp;
        }

        int count() {
            return count;
        }

        long bytes() {
            return (long) keys.size() + values.size() + headers.size() + offsets.size();
        }

        /** Returns the frame's payload and begins a new batch. */
        byte[] finish(Map<String, Object> facts) {
            facts.put("count", count);
            facts.put("topics", topics.keySet());
            facts.put("places", places.keySet());
            var blobs =
                    Map.of("keys", keys, "values", values, "headers", headers, "offsets", offsets);
            blobs.forEach((name, blob) -> facts.put(name, blob.used));
            offsets.finish();
            byte[] head = Json.bytes(facts);
            long total = 4L + head.length + 20L * count;
            total += keys.bytes() + values.bytes() + offsets.bytes() + headers.bytes();
            if (total > Integer.MAX_VALUE - 16) {
                throw tooLarge();
            }
            var to = ByteBuffer.allocate((int) total).order(ByteOrder.LITTLE_ENDIAN);
            to.putInt(head.length).put(head);
            to.asIntBuffer().put(integers, 0, 3 * count);
            to.position(to.position() + 12 * count);
            to.asLongBuffer().put(timestamps, 0, count);
            to.position(to.position() + 8 * count);
            offsets.write(to);
            keys.write(to);
            values.write(to);
            headers.write(to);
            count = 0;
            topics.clear();
            places.clear();
            for (var blob : new Blob[] {keys, values, offsets, headers}) {
                blob.clear();
            }
            return to.array();
        }

        private static int index(Map<Object, Integer> known, Object value) {
            var found = known.get(value);
            if (found == null) {
                found = known.size();
                known.put(value, found);
            }
            return found;
        }
    }

    /** A record as it was consumed; {@code type} is the number of its timestamp's type. */
    record Raw(
            String topic,
            int partition,
            long offset,
            long timestamp,
            int type,
            byte[] key,
            byte[] value,
            byte[] headers) {
        Map<String, Object> facts() {
            var facts = new LinkedHashMap<String, Object>();
            facts.put("topic", topic);
            facts.put("partition", partition);
            facts.put("offset", offset);
            facts.put("timestamp", timestamp);
            facts.put("type", type);
            facts.put("key", key);
            facts.put("value", value);
            facts.put("headers", headers);
            return facts;
        }
    }

    /**
     * The columns of records for a sink. A record is copied out of them when its turn comes, so that
     * only the records of the current put are objects.
     */
    static final class Consumed {
        final JsonNode facts;
        final int count;
        private final ByteBuffer from;
        private final String[] topics;
        private final int start;
        private final Values keys;
        private final Values values;
        private final Values headers;
        private int row;

        Consumed(ByteBuffer from) throws IOException {
            this.from = from;
            facts = Json.read(bytes(from, from.getInt()));
            count = facts.get("count").asInt();
            var names = facts.get("topics");
            topics = new String[names.size()];
            for (int place = 0; place < topics.length; place++) {
                topics[place] = names.get(place).asText();
            }
            start = from.position();
            from.position(start + 25 * count);
            keys = new Values(from, count, facts.get("keys"));
            values = new Values(from, count, facts.get("values"));
            headers = new Values(from, count, facts.get("headers"));
        }

        /** Returns the next record. */
        Raw next() {
            int at = row++;
            return new Raw(
                    topics[from.getInt(start + 4 * at)],
                    from.getInt(start + 4 * (count + at)),
                    from.getLong(start + 8 * (count + at)),
                    from.getLong(start + 8 * (2 * count + at)),
                    from.get(start + 24 * count + at),
                    keys.next(),
                    values.next(),
                    headers.next());
        }
    }

    /** A column of values of any length; without a size all are null. */
    private static final class Values {
        private final ByteBuffer from;
        private int nextLength;
        private int nextValue;

        Values(ByteBuffer from, int count, JsonNode size) {
            this.from = size.isNull() ? null : from;
            if (!size.isNull()) {
                nextLength = from.position();
                nextValue = nextLength + 4 * count;
                from.position(nextValue + size.asInt());
            }
        }

        byte[] next() {
            int length = from == null ? -1 : from.getInt(nextLength);
            if (length < 0) {
                nextLength += 4;
                return null;
            }
            var value = new byte[length];
            from.get(nextValue, value);
            nextLength += 4;
            nextValue += length;
            return value;
        }
    }

    /** Returns headers as one value: their number, then length and bytes of each name and value. */
    static byte[] packed(Headers headers) {
        var all = headers.toArray();
        if (all.length == 0) {
            return null;
        }
        var names = new byte[all.length][];
        int size = 4;
        for (int i = 0; i < all.length; i++) {
            names[i] = all[i].key().getBytes(StandardCharsets.UTF_8);
            size += 8 + names[i].length + (all[i].value() == null ? 0 : all[i].value().length);
        }
        var to = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN).putInt(all.length);
        for (int i = 0; i < all.length; i++) {
            to.putInt(names[i].length).put(names[i]);
            byte[] value = all[i].value();
            to.putInt(value == null ? -1 : value.length);
            if (value != null) {
                to.put(value);
            }
        }
        return to.array();
    }

    static Headers unpacked(byte[] packed) {
        var headers = new RecordHeaders();
        if (packed != null) {
            var from = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN);
            for (int left = from.getInt(); left > 0; left--) {
                String name = new String(bytes(from, from.getInt()), StandardCharsets.UTF_8);
                int length = from.getInt();
                headers.add(name, length < 0 ? null : bytes(from, length));
            }
        }
        return headers;
    }

    private static byte[] bytes(ByteBuffer from, int length) {
        var found = new byte[length];
        from.get(found);
        return found;
    }
}
