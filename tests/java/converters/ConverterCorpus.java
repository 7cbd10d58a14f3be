/*
 * Prints what Apache's converters do, one JSON object a line, for tests to compare with ours.
 *
 * Compile with Descriptions.java, then run: java -Duser.timezone=UTC -cp <jars>:<classes> ConverterCorpus <seed> <cases>
 *
 * Lines: {"kind":"write","class","options","schema","value","bytes"|"error"}
 *        {"kind":"read","class","options","bytes","schema","value"|"error"}
 * "bytes" is base64 or null; "error" is [class, message]. Schemas and values are described by
 * schemaText and valueText; everything is ASCII.
 */

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

public class ConverterCorpus extends Descriptions {
    static final String JSON = "org.apache.kafka.connect.json.JsonConverter";
    static final String STRING = "org.apache.kafka.connect.storage.StringConverter";
    static final String HEADER = "org.apache.kafka.connect.storage.SimpleHeaderConverter";
    static final String RUNTIME = "org.apache.kafka.connect.converters.";
    static final long DAY = 86_400_000L;

    static Random random;
    static final Map<String, Object> instances = new HashMap<>();

    public static void main(String[] args) throws Exception {
        random = new Random(Long.parseLong(args[0]));
        int cases = Integer.parseInt(args[1]);
        System.out.println("{\"kind\":\"java\",\"version\":" + Runtime.version().feature() + "}");
        for (int i = 0; i < cases; i++) {
            writeJson();
            writeSchemalessJson();
            writeText();
            writeNumbers();
            readGuesses();
        }
        for (String text : ENVELOPES)
            for (Map<String, String> options : List.of(Map.<String, String>of(), Map.of("replace.null.with.default", "false")))
                read(JSON, options, text.getBytes(StandardCharsets.UTF_8));
        for (String text : PLAIN)
            read(JSON, Map.of("schemas.enable", "false"), text.getBytes(StandardCharsets.UTF_8));
        for (byte[] bytes : new byte[][] {null, {}, {(byte) 0xff}, {' '}, {(byte) 0xef, (byte) 0xbb, (byte) 0xbf, '1'}}) {
            read(JSON, Map.of("schemas.enable", "false"), bytes);
            read(JSON, Map.of(), bytes);
        }
        for (String type : VALUE_TYPES)
            for (String value : VALUES)
                read(JSON, Map.of("schema.content", type), value.getBytes(StandardCharsets.UTF_8));
        for (String text : GUESSES)
            read(HEADER, Map.of(), text.getBytes(StandardCharsets.UTF_8));
        for (String name : List.of("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray"))
            for (int size = -1; size <= 9; size++) {
                byte[] bytes = size < 0 ? null : new byte[size];
                if (bytes != null)
                    random.nextBytes(bytes);
                read(RUNTIME + name + "Converter", Map.of(), bytes);
                if (size == 1)
                    for (byte b = 0; b < 3; b++)
                        read(RUNTIME + name + "Converter", Map.of(), new byte[] {b});
            }
        List<Schema> own = List.of(Schema.BOOLEAN_SCHEMA, Schema.INT16_SCHEMA, Schema.INT32_SCHEMA, Schema.INT64_SCHEMA,
                Schema.FLOAT32_SCHEMA, Schema.FLOAT64_SCHEMA, Schema.BYTES_SCHEMA);
        List<String> names = List.of("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray");
        for (int repeat = 0; repeat < 3; repeat++)
            for (int i = 0; i < names.size(); i++)
                write(RUNTIME + names.get(i) + "Converter", Map.of(), own.get(i), value(own.get(i)));
        for (String encoding : List.of("UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32", "windows-1252"))
            for (String text : List.of("", "abc", "z\u00fc\u20ac", "\ud83d\ude00", "a\ud800b")) {
                write(STRING, Map.of("converter.encoding", encoding), Schema.STRING_SCHEMA, text);
                read(STRING, Map.of("converter.encoding", encoding), text.getBytes(StandardCharsets.UTF_8));
            }
        System.out.flush();
    }

    // ---- cases

    static void writeJson() throws Exception {
        Schema schema = schema(3, true, true);
        Map<String, String> options = new LinkedHashMap<>();
        if (random.nextInt(4) == 0) options.put("decimal.format", "NUMERIC");
        if (random.nextInt(4) == 0) options.put("replace.null.with.default", "false");
        if (random.nextInt(4) == 0) options.put("schemas.enable", "false");
        Object value = random.nextInt(12) == 0 ? null : value(schema);
        byte[] bytes = write(JSON, options, schema, value);
        if (bytes != null)
            read(JSON, options, bytes);
    }

    static void writeSchemalessJson() throws Exception {
        Map<String, String> options = random.nextBoolean() ? Map.of() : Map.of("schemas.enable", "false");
        byte[] bytes = write(JSON, options, null, schemaless(3));
        if (bytes != null)
            read(JSON, options, bytes);
    }

    static void writeText() throws Exception {
        Schema schema = schema(2, false, false);
        Object value = random.nextInt(12) == 0 ? null : value(schema);
        write(STRING, Map.of(), schema, value);
        byte[] bytes = write(HEADER, Map.of(), schema, value);
        if (bytes != null)
            read(HEADER, Map.of(), bytes);
    }

    static void writeNumbers() throws Exception {
        Schema schema = List.of(Schema.OPTIONAL_INT8_SCHEMA, Schema.INT16_SCHEMA, Schema.INT32_SCHEMA, Schema.INT64_SCHEMA,
                Schema.FLOAT32_SCHEMA, Schema.FLOAT64_SCHEMA, Schema.BOOLEAN_SCHEMA, Schema.STRING_SCHEMA,
                Schema.BYTES_SCHEMA).get(random.nextInt(9));
        Object value = random.nextInt(12) == 0 ? null : value(schema);
        for (String name : List.of("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray")) {
            byte[] bytes = write(RUNTIME + name + "Converter", Map.of(), schema, value);
            if (bytes != null)
                read(RUNTIME + name + "Converter", Map.of(), bytes);
        }
    }

    static void readGuesses() throws Exception {
        String alphabet = "0123456789+-.eE:,{}[]\"\\ abtrueTZnl";
        StringBuilder text = new StringBuilder();
        for (int i = random.nextInt(8); i >= 0; i--)
            text.append(alphabet.charAt(random.nextInt(alphabet.length())));
        read(HEADER, Map.of(), text.toString().getBytes(StandardCharsets.UTF_8));
    }

    static byte[] write(String name, Map<String, String> options, Schema schema, Object value) throws Exception {
        String line = "{\"kind\":\"write\",\"class\":" + quoted(name) + ",\"options\":" + optionsText(options)
                + ",\"schema\":" + schemaText(schema) + ",\"value\":" + valueText(value);
        byte[] bytes = null;
        try {
            Object converter = converter(name, options);
            bytes = converter instanceof Converter
                    ? ((Converter) converter).fromConnectData("topic", schema, value)
                    : ((HeaderConverter) converter).fromConnectHeader("topic", "header", schema, value);
            line += ",\"bytes\":" + base64(bytes);
        } catch (RuntimeException e) {
            line += errorText(e);
        }
        System.out.println(line + "}");
        return bytes;
    }

    static void read(String name, Map<String, String> options, byte[] bytes) throws Exception {
        String line = "{\"kind\":\"read\",\"class\":" + quoted(name) + ",\"options\":" + optionsText(options)
                + ",\"bytes\":" + base64(bytes);
        try {
            Object converter = converter(name, options);
            SchemaAndValue read = converter instanceof Converter
                    ? ((Converter) converter).toConnectData("topic", bytes)
                    : ((HeaderConverter) converter).toConnectHeader("topic", "header", bytes);
            if (read == null)
                read = SchemaAndValue.NULL;
            line += ",\"schema\":" + schemaText(read.schema()) + ",\"value\":" + valueText(read.value());
        } catch (RuntimeException e) {
            line += errorText(e);
        }
        System.out.println(line + "}");
    }

    static Object converter(String name, Map<String, String> options) throws Exception {
        String key = name + options;
        Object known = instances.get(key);
        if (known == null) {
            known = Class.forName(name).getDeclaredConstructor().newInstance();
            if (known instanceof Converter)
                ((Converter) known).configure(options, false);
            else
                ((HeaderConverter) known).configure(options);
            instances.put(key, known);
        }
        return known;
    }

    // ---- random schemas and values

    static Schema schema(int depth, boolean temporals, boolean bytes) {
        SchemaBuilder builder = builder(depth, temporals, bytes);
        if (random.nextInt(3) == 0)
            builder.optional();
        boolean logical = builder.name() != null;
        if (!logical && random.nextInt(4) == 0)
            builder.name(random.nextBoolean() ? "org.example.Name" : text());
        if (!logical && random.nextInt(6) == 0)
            builder.version(random.nextInt(100) - 10);
        if (random.nextInt(8) == 0)
            builder.doc(text());
        for (int i = random.nextInt(8); i > 6; i--)
            builder.parameter("p" + i, text());
        // Java arrays are equal to nothing else, and the schema of a struct never equals a builder.
        Schema built = builder.build();
        if (random.nextInt(5) == 0 && !hasBytes(built) && built.type() != Schema.Type.STRUCT)
            builder.defaultValue(value(built));
        return builder.build();
    }

    static boolean hasBytes(Schema schema) {
        switch (schema.type()) {
            case BYTES: return !Decimal.LOGICAL_NAME.equals(schema.name());
            case ARRAY: return hasBytes(schema.valueSchema());
            case MAP: return hasBytes(schema.keySchema()) || hasBytes(schema.valueSchema());
            case STRUCT: return schema.fields().stream().anyMatch(f -> hasBytes(f.schema()));
            default: return false;
        }
    }

    static SchemaBuilder builder(int depth, boolean temporals, boolean bytes) {
        switch (random.nextInt(depth > 0 ? 17 : 13)) {
            case 0: return SchemaBuilder.int8();
            case 1: return SchemaBuilder.int16();
            case 2: return SchemaBuilder.int32();
            case 3: return SchemaBuilder.int64();
            case 4: return SchemaBuilder.float32();
            case 5: return SchemaBuilder.float64();
            case 6: return SchemaBuilder.bool();
            case 7: return SchemaBuilder.string();
            case 8: return bytes ? SchemaBuilder.bytes() : SchemaBuilder.string();
            case 9: return Decimal.builder(random.nextInt(14) - 3);
            case 10: return temporals ? org.apache.kafka.connect.data.Date.builder() : SchemaBuilder.int32();
            case 11: return temporals ? Time.builder() : SchemaBuilder.float32();
            case 12: return temporals ? Timestamp.builder() : SchemaBuilder.float64();
            case 13: return SchemaBuilder.array(schema(depth - 1, temporals, bytes));
            case 14: return SchemaBuilder.map(SchemaBuilder.string().build(), schema(depth - 1, temporals, bytes));
            case 15: return SchemaBuilder.map(key(depth - 1), schema(depth - 1, temporals, bytes));
            default:
                SchemaBuilder struct = SchemaBuilder.struct();
                Set<String> names = new HashSet<>();
                for (int i = random.nextInt(5); i > 0; i--) {
                    String name = random.nextInt(4) > 0 ? "f" + i : text();
                    if (!name.isEmpty() && names.add(name))
                        struct.field(name, schema(depth - 1, temporals, bytes));
                }
                return struct;
        }
    }

    static Schema key(int depth) {
        switch (random.nextInt(depth > 0 ? 6 : 4)) {
            case 0: return Schema.INT64_SCHEMA;
            case 1: return Schema.OPTIONAL_STRING_SCHEMA;
            case 2: return Schema.INT8_SCHEMA;
            case 3: return Schema.BOOLEAN_SCHEMA;
            case 4: return SchemaBuilder.array(Schema.STRING_SCHEMA).build();
            default: return SchemaBuilder.struct().field("k", Schema.INT32_SCHEMA).build();
        }
    }

    static Object value(Schema schema) {
        if (schema.isOptional() && random.nextInt(4) == 0)
            return null;
        if (schema.name() != null)
            switch (schema.name()) {
                case Decimal.LOGICAL_NAME:
                    int scale = Integer.parseInt(schema.parameters().get("scale"));
                    return new BigDecimal(new BigInteger(random.nextInt(90) + 1, random).multiply(sign()), scale);
                case org.apache.kafka.connect.data.Date.LOGICAL_NAME:
                    return new Date((random.nextInt(60000) - 30000) * DAY);
                case Time.LOGICAL_NAME:
                    return new Date((long) random.nextInt((int) DAY));
                case Timestamp.LOGICAL_NAME:
                    return new Date((random.nextLong() >>> 1) % 250_000_000_000_000L - 60_000_000_000_000L);
                default:
            }
        switch (schema.type()) {
            case INT8: return (byte) integer(8);
            case INT16: return (short) integer(16);
            case INT32: return (int) integer(32);
            case INT64: return integer(64);
            case FLOAT32: return single();
            case FLOAT64: return dual();
            case BOOLEAN: return random.nextBoolean();
            case STRING: return text();
            case BYTES:
                byte[] bytes = new byte[random.nextInt(9)];
                random.nextBytes(bytes);
                return bytes;
            case ARRAY:
                List<Object> list = new ArrayList<>();
                for (int i = random.nextInt(4); i > 0; i--)
                    list.add(value(schema.valueSchema()));
                return list;
            case MAP:
                Map<Object, Object> map = new LinkedHashMap<>();
                for (int i = random.nextInt(4); i > 0; i--)
                    map.put(value(schema.keySchema()), value(schema.valueSchema()));
                return map;
            default:
                Struct struct = new Struct(schema);
                for (Field field : schema.fields())
                    if (!(field.schema().defaultValue() != null && random.nextInt(3) == 0))
                        struct.put(field, value(field.schema()));
                return struct;
        }
    }

    static Object schemaless(int depth) {
        switch (random.nextInt(depth > 0 ? 9 : 6)) {
            case 0: return integer(64);
            case 1: return dual();
            case 2: return text();
            case 3: return random.nextBoolean();
            case 4: return null;
            case 5:
                byte[] bytes = new byte[random.nextInt(5)];
                random.nextBytes(bytes);
                return bytes;
            case 6:
                List<Object> list = new ArrayList<>();
                for (int i = random.nextInt(4); i > 0; i--)
                    list.add(schemaless(depth - 1));
                return list;
            default:
                Map<Object, Object> map = new LinkedHashMap<>();
                boolean strings = random.nextInt(3) > 0;
                for (int i = random.nextInt(4); i > 0; i--)
                    map.put(strings || random.nextBoolean() ? text() : (Object) (integer(32) | 2L), schemaless(depth - 1));
                return map;
        }
    }

    static BigInteger sign() {
        return random.nextBoolean() ? BigInteger.ONE : BigInteger.ONE.negate();
    }

    static long integer(int bits) {
        switch (random.nextInt(4)) {
            case 0: return random.nextInt(5) - 2;
            case 1: return random.nextBoolean() ? -1L << (bits - 1) : ~(-1L << (bits - 1));
            default: return random.nextLong() >> (64 - bits);
        }
    }

    static double dual() {
        double[] special = {0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE,
            Double.MAX_VALUE, Double.MIN_NORMAL, 1e-3, 9.999e-4, 1e7, 9999999.999, 1e23, 2e23, 0.1, 1.0 / 3, 2.0E-3, 100.0};
        switch (random.nextInt(4)) {
            case 0: return special[random.nextInt(special.length)];
            case 1: return random.nextInt(100000) / 100.0;
            case 2: return random.nextGaussian() * Math.pow(10, random.nextInt(24) - 12);
            default: return Double.longBitsToDouble(random.nextLong());
        }
    }

    static float single() {
        float[] special = {0.0f, -0.0f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.MIN_VALUE,
            Float.MAX_VALUE, Float.MIN_NORMAL, 1e-3f, 9.999e-4f, 1e7f, 9999999f, 1e10f, 0.1f, 3.1415927f, 16777216f, 2e-3f};
        switch (random.nextInt(4)) {
            case 0: return special[random.nextInt(special.length)];
            case 1: return random.nextInt(10000) / 100.0f;
            case 2: return (float) (random.nextGaussian() * Math.pow(10, random.nextInt(20) - 10));
            default: return Float.intBitsToFloat(random.nextInt());
        }
    }

    static String text() {
        String[] parts = {"a", "Z9", " ", "\"", "\\", "/", "\n", "\t", "\b", "\f", "\r", "\0", "\u001f", "\u001b", "\u007f", "\u0080",
            "\u00fc", "\u20ac", "\u2028", "\ufeff", "\uffff", "\ud83d\ude00", "\ud800", "\udc00", "<&>'", "null", "1", "{", ",", ":"};
        StringBuilder built = new StringBuilder();
        for (int i = random.nextInt(4); i > 0; i--)
            built.append(parts[random.nextInt(parts.length)]);
        return built.toString();
    }

    // ---- hand-made texts to read

    static final List<String> PLAIN = List.of(
        "null", " null ", "1", "-0", "007", "-012", "[00.5,\"00\"]", "1.5", "1e3", "1e400", "-1e400", "1e-400", "9223372036854775807",
        "9223372036854775808", "18446744073709551617", "\"x\"", "true", "[]", "{}", "{\"a\":1,\"a\":2}", "[1,\"a\",null,{\"b\":[]}]",
        "NaN", "Infinity", "'a'", "{a:1}", "[1,]", "{\"a\":1,}", "1 2", "{} x", "\"\\u00e9\\ud83d\\ude00\"", "\"\\ud800\"", "\"\\x\"",
        "\"a\tb\"", "//c\n1", "+1", ".5", "1.", "01.50", "[", "{\"a\"", "\"", "tru", "0.1", "123456789.123456789123456789", "0e5", "1E+2");

    static final List<String> VALUE_TYPES = Arrays.asList(
        "{\"type\":\"int8\"}", "{\"type\":\"int16\"}", "{\"type\":\"int32\"}", "{\"type\":\"int64\"}", "{\"type\":\"float\"}",
        "{\"type\":\"double\"}", "{\"type\":\"boolean\"}", "{\"type\":\"string\"}", "{\"type\":\"bytes\"}",
        "{\"type\":\"string\",\"optional\":true}", "{\"type\":\"int32\",\"default\":7}",
        "{\"type\":\"bytes\",\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\"}}",
        "{\"type\":\"int32\",\"name\":\"org.apache.kafka.connect.data.Date\",\"version\":1}",
        "{\"type\":\"int32\",\"name\":\"org.apache.kafka.connect.data.Time\",\"version\":1}",
        "{\"type\":\"int64\",\"name\":\"org.apache.kafka.connect.data.Timestamp\",\"version\":1}",
        "{\"type\":\"array\",\"items\":{\"type\":\"int8\"}}",
        "{\"type\":\"map\",\"keys\":{\"type\":\"string\"},\"values\":{\"type\":\"int32\"}}",
        "{\"type\":\"map\",\"keys\":{\"type\":\"int32\"},\"values\":{\"type\":\"string\",\"optional\":true}}",
        "{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"field\":\"a\"},{\"type\":\"string\",\"optional\":true,\"field\":\"b\"}]}");

    static final List<String> VALUES = Arrays.asList(
        "null", "0", "1", "-1", "127", "128", "300", "-32769", "86399999", "86400000", "2147483647", "2147483648", "9223372036854775808",
        "1.5", "-1.5", "1e2", "1.00", "3.4028236e38", "1e39", "16777217", "16777217.0000000000000001", "0.1", "7.038531e-26", "\"x\"", "\"12\"", "\"NaN\"",
        "\"Infinity\"", "\"-Infinity\"", "\"AY/J\"", "\"AY/JAA==\"", "\"AY/JAA\"", "\"!!\"", "\"\"", "true", "false", "[]", "[1,2]", "[300]", "[null]",
        "{}", "{\"k\":1}", "{\"k\":null}", "[[1,\"a\"],[2,null]]", "[[1]]", "[1]", "{\"a\":1}", "{\"a\":1,\"b\":null,\"c\":2}", "{\"b\":\"x\"}",
        "{\"a\":\"x\",\"b\":1}", "", "[[1,\"a\"],[1,\"b\"]]");

    static final List<String> ENVELOPES = Arrays.asList(
        "{}", "{\"schema\":null}", "{\"schema\":null,\"payload\":1,\"x\":2}", "{\"payload\":1,\"schema\":null}", "1", "null", "[]", "{\"a\":1,\"b\":2}",
        "{\"schema\":null,\"payload\":{\"a\":[1,2.5,\"x\",null]}}", "{\"schema\":null,\"payload\":007}", " {\"schema\" : null , \"payload\" : 1 } ",
        "{\"schema\":null,\"payload\":1}x", "{\"schema\":{},\"payload\":1}", "{\"schema\":1,\"payload\":1}", "{\"schema\":{\"type\":1},\"payload\":1}",
        "{\"schema\":{\"type\":\"int128\"},\"payload\":1}", "{\"schema\":{\"type\":\"int32\"},\"payload\":1}",
        "{\"schema\":{\"type\":\"int32\",\"optional\":1},\"payload\":null}", "{\"schema\":{\"type\":\"int32\",\"optional\":true},\"payload\":null}",
        "{\"schema\":{\"type\":\"int32\",\"default\":5},\"payload\":null}", "{\"schema\":{\"type\":\"int32\",\"default\":null},\"payload\":1}",
        "{\"schema\":{\"type\":\"int32\",\"optional\":true,\"default\":null},\"payload\":1}", "{\"schema\":{\"type\":\"int32\",\"default\":\"x\"},\"payload\":1}",
        "{\"schema\":{\"type\":\"int32\",\"version\":\"1\",\"name\":2,\"doc\":3},\"payload\":1}", "{\"schema\":{\"type\":\"int32\",\"version\":1.5},\"payload\":1}",
        "{\"schema\":{\"type\":\"int32\",\"parameters\":{\"a\":1}},\"payload\":1}", "{\"schema\":{\"type\":\"int32\",\"parameters\":{}},\"payload\":1}",
        "{\"schema\":{\"type\":\"int32\",\"parameters\":[]},\"payload\":1}", "{\"schema\":{\"type\":\"int32\",\"parameters\":{\"a\":\"b\"}},\"payload\":1}",
        "{\"schema\":{\"type\":\"array\"},\"payload\":[]}", "{\"schema\":{\"type\":\"array\",\"items\":null},\"payload\":[]}",
        "{\"schema\":{\"type\":\"map\",\"keys\":{\"type\":\"string\"}},\"payload\":{}}", "{\"schema\":{\"type\":\"map\",\"values\":{\"type\":\"string\"}},\"payload\":{}}",
        "{\"schema\":{\"type\":\"map\",\"keys\":null,\"values\":{\"type\":\"string\"}},\"payload\":{}}",
        "{\"schema\":{\"type\":\"struct\"},\"payload\":{}}", "{\"schema\":{\"type\":\"struct\",\"fields\":[]},\"payload\":{}}",
        "{\"schema\":{\"type\":\"struct\",\"fields\":[1]},\"payload\":{}}", "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int8\"}]},\"payload\":{}}",
        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int8\",\"field\":\"a\"},{\"type\":\"int8\",\"field\":\"a\"}]},\"payload\":{}}",
        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int8\",\"default\":3,\"field\":\"a\"},{\"type\":\"int8\",\"optional\":true,\"default\":4,\"field\":\"b\"}]},\"payload\":{\"b\":null}}",
        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int8\",\"field\":\"\"}]},\"payload\":{}}");

    static final List<String> GUESSES = Arrays.asList(
        "", " ", "null", " null ", "true", "True", " false", "1", "+1", "-1", "127", "128", "-129", "32768", "2147483648", "9223372036854775807",
        "9223372036854775808", "-9223372036854775809", "1.0", "1e3", "1.5", "3.14159265", "1e39", "1e400", "1e-400", "-0.0", "-", "+", "1.", ".5", "1e", "0x10",
        "1_000", "NaN", "12 ", " 12", "1 2", "100000000000000000000", "1e20", "1.5e20", "2020-02-29", "2020-02-30", "23:59:59.999Z", "24:00:00.000Z",
        "2020-02-29T12:34:56.789Z", "12\\:34\\:56.789Z", "[]", "{}", "[1]", "[1,2,3]", "[1,300,70000,5000000000]", "[1,2.5]", "[1.5,1e300]", "[1,\"a\"]", "[\"a\",\"b\"]", "[a]", "[1,]", "[,1]",
        "[1,,2]", "[1 2]", "[1", "[1,null]", "[null]", "[null,null]", "[true,false]", "[true,1]", "[[1],[2]]", "[[1],[\"a\"]]", "[ 1 , 2 ]", " [1]", "[1] ", "[\"2020-02-29\"]",
        "[2020-02-29]", "[12:34:56.789Z]", "[\"12:34:56.789Z\"]", "{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":\"c\"}", "{\"a\":null}", "{1:2}", "{1:2,3:4}", "{a:1}", "{\"a\"}", "{\"a\":}", "{null:1}",
        "{\"a\":1 \"b\":2}", "{\"a\":1\"b\":2}", "{\"a\":1,}", "{,}", "{\"a\":[1,2],\"b\":[3]}", "{\"a\":{\"b\":{}}}", "{\"a\\\"b\":\"c\\\\d\"}", "\"a\"", "\"", "a", "a,b", "a\\,b", "\u00fc", "true}", "[true}", "{\"a\":true]",
        "[1.5,2]", "[\"a\",null]", "[100000000000000000000]", "[100000000000000000000,1]", "{\"a\":1.5,\"b\":2}", "[\"\"]", "{\"\":\"\"}", "[\" a \"]", "1,2", "8080:tcp", "[1]x", "[1]{}", "{}{}", "12:34:56.789Zx", "2020-02-29,", "1:2:3", "true,", "null]");
}
