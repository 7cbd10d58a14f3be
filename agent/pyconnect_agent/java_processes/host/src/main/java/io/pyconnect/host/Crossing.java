package io.pyconnect.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Records in MessagePack, to and from transformations on the other side; {@code crossing.py} has
 * the form.
 *
 * <p>A schema crosses once in a batch, as a text. Both sides remember the schemas of texts.
 */
final class Crossing {
    private static final int MOST_SCHEMAS = 1000;

    private final Map<Schema, String> texts = new IdentityHashMap<>();
    private final Map<String, Schema> schemas = new HashMap<>();

    /** The records of one question, or the outcomes of one answer. */
    final class Batch {
        private final Writer rows = new Writer();
        private final List<String> known = new ArrayList<>();
        private final Map<Schema, Integer> places = new IdentityHashMap<>();
        private int count;

        /** Throws an exception for a value that would change; the record is then left out. */
        void add(ConnectRecord<?> record) {
            int before = rows.out.size;
            try {
                write(record, rows);
                count++;
            } catch (RuntimeException odd) {
                rows.out.size = before;
                throw odd;
            }
        }

        /** Adds an outcome that is no record: null, true or a failure. */
        void addOutcome(Object outcome) {
            rows.write(outcome, null);
            count++;
        }

        private void write(ConnectRecord<?> record, Writer row) {
            row.head(0xdd, 9);
            row.write(record.topic(), null);
            row.write(record.kafkaPartition(), null);
            row.write(place(record.keySchema(), places, known), null);
            row.write(record.key(), record.keySchema());
            row.write(place(record.valueSchema(), places, known), null);
            row.write(record.value(), record.valueSchema());
            row.write(record.timestamp(), null);
            row.head(0xdd, record.headers().size());
            for (var header : record.headers()) {
                row.head(0xdd, 3);
                row.write(header.key(), null);
                row.write(place(header.schema(), places, known), null);
                row.write(header.value(), header.schema());
            }
            row.write(origin(record), null);
        }

        /** {@code first}: of a question the number of its segment, of an answer the counts. */
        byte[] finish(Object first) {
            var whole = new Writer();
            whole.head(0xdd, 3);
            whole.write(first, null);
            whole.write(known, null);
            whole.head(0xdd, count);
            whole.out.writeBytes(rows.out.toByteArray());
            return whole.out.toByteArray();
        }
    }

    private static List<Object> origin(ConnectRecord<?> record) {
        var origin = new ArrayList<Object>();
        if (record instanceof SourceRecord source) {
            origin.add(source.sourcePartition());
            origin.add(source.sourceOffset());
        } else if (record instanceof SinkRecord sink) {
            origin.add(sink.kafkaOffset());
            origin.add(sink.timestampType().name());
            origin.add(sink.originalTopic());
            origin.add(sink.originalKafkaPartition());
            origin.add(sink.originalKafkaOffset());
        }
        return origin;
    }

    private Integer place(Schema schema, Map<Schema, Integer> places, List<String> known) {
        if (schema == null) {
            return null;
        }
        return places.computeIfAbsent(
                schema,
                each -> {
                    known.add(text(each));
                    return known.size() - 1;
                });
    }

    private String text(Schema schema) {
        var text = texts.get(schema);
        if (text == null) {
            text = new String(Json.bytes(described(schema)), UTF_8);
            if (texts.size() >= MOST_SCHEMAS) {
                texts.clear();
                schemas.clear();
            }
            texts.put(schema, text);
            schemas.putIfAbsent(text, schema);
        }
        return text;
    }

    private Map<String, Object> described(Schema schema) {
        var found = new LinkedHashMap<String, Object>();
        found.put("type", schema.type().getName());
        found.put("optional", schema.isOptional());
        found.put("name", schema.name());
        found.put("version", schema.version());
        found.put("doc", schema.doc());
        found.put("parameters", schema.parameters());
        if (schema.defaultValue() != null) {
            var value = new Writer();
            value.write(schema.defaultValue(), schema);
            found.put("default", value.out.toByteArray());
        }
        switch (schema.type()) {
            case STRUCT -> {
                var fields = new ArrayList<List<Object>>();
                schema.fields().forEach(f -> fields.add(List.of(f.name(), described(f.schema()))));
                found.put("fields", fields);
            }
            case MAP -> {
                found.put("keys", described(schema.keySchema()));
                found.put("values", described(schema.valueSchema()));
            }
            case ARRAY -> found.put("values", described(schema.valueSchema()));
            default -> {}
        }
        return found;
    }

    /** Returns a record of a question from Python. */
    @SuppressWarnings("unchecked")
    ConnectRecord<?> record(List<?> row, List<?> known) {
        var origin = (List<?>) row.get(8);
        if (origin.size() == 2) {
            var partition = (Map<String, ?>) origin.get(0);
            var offset = (Map<String, ?>) origin.get(1);
            return changed(new SourceRecord(partition, offset, null, null, null), row, known);
        }
        var bare =
                new SinkRecord(
                        null,
                        0,
                        null,
                        null,
                        null,
                        null,
                        (Long) origin.get(0),
                        null,
                        TimestampType.valueOf((String) origin.get(1)),
                        null,
                        (String) origin.get(2),
                        Math.toIntExact((Long) origin.get(3)),
                        (Long) origin.get(4));
        return changed(bare, row, known);
    }

    /** Returns a record like {@code before} of what {@code crossing.py} has encoded. */
    <R extends ConnectRecord<R>> R changed(R before, List<?> fields, List<?> known) {
        var keySchema = schema(fields.get(2), known);
        var valueSchema = schema(fields.get(4), known);
        var headers = new ConnectHeaders();
        for (var each : (List<?>) fields.get(7)) {
            var header = (List<?>) each;
            var schema = schema(header.get(1), known);
            headers.add((String) header.get(0), value(header.get(2), schema), schema);
        }
        var partition = (Long) fields.get(1);
        return before.newRecord(
                (String) fields.get(0),
                partition == null ? null : (Integer) Math.toIntExact(partition),
                keySchema,
                value(fields.get(3), keySchema),
                valueSchema,
                value(fields.get(5), valueSchema),
                (Long) fields.get(6),
                headers);
    }

    private Schema schema(Object place, List<?> known) {
        if (place == null) {
            return null;
        }
        var text = (String) known.get(((Long) place).intValue());
        return schemas.computeIfAbsent(
                text,
                each -> {
                    try {
                        return built(Context.offset(Json.read(each.getBytes(UTF_8))));
                    } catch (java.io.IOException invalid) {
                        throw new DataException(invalid);
                    }
                });
    }

    @SuppressWarnings("unchecked")
    private Schema built(Map<String, Object> described) {
        var type = Schema.Type.valueOf(((String) described.get("type")).toUpperCase());
        var values = (Map<String, Object>) described.get("values");
        var builder =
                switch (type) {
                    case MAP ->
                            SchemaBuilder.map(
                                    built((Map<String, Object>) described.get("keys")),
                                    built(values));
                    case ARRAY -> SchemaBuilder.array(built(values));
                    default -> new SchemaBuilder(type);
                };
        if (type == Schema.Type.STRUCT) {
            for (var each : (List<List<Object>>) described.get("fields")) {
                builder.field((String) each.get(0), built((Map<String, Object>) each.get(1)));
            }
        }
        if ((Boolean) described.get("optional")) {
            builder.optional();
        }
        if (described.get("name") != null) {
            builder.name((String) described.get("name"));
        }
        if (described.get("version") != null) {
            builder.version(((Long) described.get("version")).intValue());
        }
        if (described.get("doc") != null) {
            builder.doc((String) described.get("doc"));
        }
        if (described.get("parameters") != null) {
            ((Map<String, String>) described.get("parameters")).forEach(builder::parameter);
        }
        if (described.get("default") != null) {
            var bytes = Base64.getDecoder().decode((String) described.get("default"));
            builder.defaultValue(value(read(ByteBuffer.wrap(bytes)), builder));
        }
        return builder.build();
    }

    /** Returns a value of a schema. */
    private static Object value(Object found, Schema schema) {
        if (found == null || schema == null) {
            return found;
        }
        if (schema.name() != null) {
            switch (schema.name()) {
                case Decimal.LOGICAL_NAME -> {
                    return Decimal.toLogical(schema, (byte[]) found);
                }
                case Date.LOGICAL_NAME -> {
                    return Date.toLogical(schema, ((Long) found).intValue());
                }
                case Time.LOGICAL_NAME -> {
                    return Time.toLogical(schema, ((Long) found).intValue());
                }
                case Timestamp.LOGICAL_NAME -> {
                    return Timestamp.toLogical(schema, (Long) found);
                }
                default -> {}
            }
        }
        return switch (schema.type()) {
            case INT8 -> ((Long) found).byteValue();
            case INT16 -> ((Long) found).shortValue();
            case INT32 -> ((Long) found).intValue();
            case FLOAT32 -> ((Number) found).floatValue();
            case FLOAT64 -> ((Number) found).doubleValue();
            case ARRAY -> {
                var items = new ArrayList<Object>();
                ((List<?>) found).forEach(each -> items.add(value(each, schema.valueSchema())));
                yield items;
            }
            case MAP -> {
                var map = new LinkedHashMap<Object, Object>();
                ((Map<?, ?>) found)
                        .forEach(
                                (key, each) ->
                                        map.put(
                                                value(key, schema.keySchema()),
                                                value(each, schema.valueSchema())));
                yield map;
            }
            case STRUCT -> {
                var struct = new Struct(schema);
                var fields = schema.fields();
                for (int i = 0; i < fields.size(); i++) {
                    struct.put(fields.get(i), value(((List<?>) found).get(i), fields.get(i).schema()));
                }
                yield struct;
            }
            default -> found;
        };
    }

    /** Reads a value of MessagePack: whole numbers are Long, all others Double. */
    static Object read(ByteBuffer from) {
        int kind = from.get() & 0xff;
        if (kind < 0x80 || kind >= 0xe0) {
            return (long) (byte) kind;
        } else if (kind < 0x90) {
            return map(from, kind & 0x0f);
        } else if (kind < 0xa0) {
            return list(from, kind & 0x0f);
        } else if (kind < 0xc0) {
            return new String(bytes(from, kind & 0x1f), UTF_8);
        }
        return switch (kind) {
            case 0xc0 -> null;
            case 0xc2 -> false;
            case 0xc3 -> true;
            case 0xc4 -> bytes(from, from.get() & 0xff);
            case 0xc5 -> bytes(from, from.getShort() & 0xffff);
            case 0xc6 -> bytes(from, from.getInt());
            case 0xca -> (double) from.getFloat();
            case 0xcb -> from.getDouble();
            case 0xcc -> (long) (from.get() & 0xff);
            case 0xcd -> (long) (from.getShort() & 0xffff);
            case 0xce -> from.getInt() & 0xffffffffL;
            case 0xcf -> {
                long number = from.getLong();
                if (number < 0) {
                    throw new DataException("A whole number has more than 64 bits");
                }
                yield number;
            }
            case 0xd0 -> (long) from.get();
            case 0xd1 -> (long) from.getShort();
            case 0xd2 -> (long) from.getInt();
            case 0xd3 -> from.getLong();
            case 0xd9 -> new String(bytes(from, from.get() & 0xff), UTF_8);
            case 0xda -> new String(bytes(from, from.getShort() & 0xffff), UTF_8);
            case 0xdb -> new String(bytes(from, from.getInt()), UTF_8);
            case 0xdc -> list(from, from.getShort() & 0xffff);
            case 0xdd -> list(from, from.getInt());
            case 0xde -> map(from, from.getShort() & 0xffff);
            case 0xdf -> map(from, from.getInt());
            default -> throw new DataException("Not a value: " + kind);
        };
    }

    private static byte[] bytes(ByteBuffer from, int length) {
        var found = new byte[length];
        from.get(found);
        return found;
    }

    private static List<Object> list(ByteBuffer from, int count) {
        var found = new ArrayList<Object>(count);
        for (int left = count; left > 0; left--) {
            found.add(read(from));
        }
        return found;
    }

    private static Map<Object, Object> map(ByteBuffer from, int count) {
        var found = new LinkedHashMap<Object, Object>();
        for (int left = count; left > 0; left--) {
            var key = read(from);
            found.put(key, read(from));
        }
        return found;
    }

    /** As ByteArrayOutputStream, without its locks. */
    private static final class Bytes {
        private byte[] data = new byte[1 << 10];
        private int size;

        void write(int each) {
            if (size == data.length) {
                data = Arrays.copyOf(data, 2 * size);
            }
            data[size++] = (byte) each;
        }

        void writeBytes(byte[] bytes) {
            if (size + bytes.length > data.length) {
                data = Arrays.copyOf(data, Math.max(2 * data.length, size + bytes.length));
            }
            System.arraycopy(bytes, 0, data, size, bytes.length);
            size += bytes.length;
        }

        byte[] toByteArray() {
            return Arrays.copyOf(data, size);
        }
    }

    private static final class Writer {
        final Bytes out = new Bytes();

        void head(int kind, int number) {
            out.write(kind);
            for (int shift = 24; shift >= 0; shift -= 8) {
                out.write(number >> shift);
            }
        }

        private void number(int kind, long number) {
            head(kind, (int) (number >> 32));
            for (int shift = 24; shift >= 0; shift -= 8) {
                out.write((int) (number >> shift));
            }
        }

        void write(Object value, Schema schema) {
            if (value == null) {
                out.write(0xc0);
            } else if (value instanceof String text) {
                var bytes = text.getBytes(UTF_8);
                head(0xdb, bytes.length);
                out.writeBytes(bytes);
            } else if (value instanceof Struct struct) {
                struct(struct);
            } else if (value instanceof Boolean truth) {
                out.write(truth ? 0xc3 : 0xc2);
            } else if (value instanceof Double || value instanceof Float) {
                number(0xcb, Double.doubleToRawLongBits(((Number) value).doubleValue()));
            } else if (value instanceof BigDecimal decimal && schema != null) {
                write(Decimal.fromLogical(schema, decimal), null);
            } else if (value instanceof java.util.Date date && schema != null) {
                date(date, schema);
            } else if (value instanceof Number && !(value instanceof BigDecimal || value instanceof BigInteger)) {
                number(0xd3, ((Number) value).longValue());
            } else if (value instanceof byte[] bytes) {
                head(0xc6, bytes.length);
                out.writeBytes(bytes);
            } else if (value instanceof ByteBuffer bytes) {
                write(Utils.toArray(bytes), null);
            } else if (value instanceof Collection<?> items) {
                var of = schema == null ? null : schema.valueSchema();
                head(0xdd, items.size());
                items.forEach(each -> write(each, of));
            } else if (value instanceof Map<?, ?> map) {
                head(0xdf, map.size());
                map.forEach(
                        (key, each) -> {
                            write(key, schema == null ? null : schema.keySchema());
                            write(each, schema == null ? null : schema.valueSchema());
                        });
            } else {
                throw new DataException(
                        "A " + value.getClass().getName() + " without a schema cannot be given to"
                                + " a Python process");
            }
        }

        private void struct(Struct struct) {
            var fields = struct.schema().fields();
            head(0xdd, fields.size());
            for (var field : fields) {
                write(struct.getWithoutDefault(field.name()), field.schema());
            }
        }

        private void date(java.util.Date date, Schema schema) {
            var name = String.valueOf(schema.name());
            switch (name) {
                case Date.LOGICAL_NAME -> write(Date.fromLogical(schema, date), null);
                case Time.LOGICAL_NAME -> write(Time.fromLogical(schema, date), null);
                case Timestamp.LOGICAL_NAME -> write(Timestamp.fromLogical(schema, date), null);
                default -> throw new DataException("A date has the schema " + name);
            }
        }
    }
}
