/*
 * Prints what Apache's transformations and predicates do, one JSON object a line, for tests to
 * compare with ours.
 *
 * Compile with Descriptions.java, then run:
 *   java -Duser.timezone=UTC -Duser.language=en -Duser.country=US -cp <jars>:<classes> TransformCorpus <seed> <cases>
 *
 * The first line is {"java":<feature version>}, the others
 *   {"class","options","record","result"|"holds"|"error","stage"}
 * "record" and "result" are {"topic","partition","offset","timestamp","key","value","headers"}; key and
 * value are [schema, value], headers [[name, schema, value], ...], "offset" is null for a source record
 * and "result" for a dropped one. "holds" is what a predicate says. "error" is [class, message], its
 * "stage" configure or apply. Schemas and values are described by schemaText and valueText; all is ASCII.
 */

import java.math.BigDecimal;
import java.math.BigInteger;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TimeZone;

import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.ValueToKey;
import org.apache.kafka.connect.transforms.predicates.Predicate;

public class TransformCorpus extends Descriptions {
    static final String PACKAGE = "org.apache.kafka.connect.transforms.";
    static final long DAY = 86_400_000L;
    static final List<String> NAMES = List.of("a", "b", "c", "d", "x.y", "\u00e9");
    static final List<String> TYPES = List.of("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string");

    static Random random;

    public static void main(String[] args) throws Exception {
        random = new Random(Long.parseLong(args[0]));
        int cases = Integer.parseInt(args[1]);
        System.out.println("{\"java\":" + Runtime.version().feature() + "}");
        for (int i = 0; i < cases; i++) {
            side("Cast", castOptions());
            oneCast();
            oneCast();
            one("DropHeaders", options("headers", names(1)));
            side("ExtractField", extractOptions());
            one("Filter", Map.of());
            side("Flatten", maybe(options(), 3, "delimiter", pick("_", ".", "", "--")));
            side("HeaderFrom", headerFromOptions());
            side("HoistField", options("field", pick("a", "whole", "\u00e9")));
            side("InsertField", insertOptions());
            one("InsertHeader", options("header", pick("h", "a", ""), "value.literal", pick("42", "x", "", "null", "[1,2]", "true", "1.5", "{\"a\":1}")));
            side("MaskField", maybe(nulls(options("fields", names(1))), 2, "replacement", pick("42", "-1.5", "x", "300", "1e3", " 7", "99999999999999999999")));
            side("ReplaceField", replaceOptions());
            side("SetSchemaMetadata", nulls(maybe(maybe(options(), 2, "schema.name", pick("new", "org.example.New")), 2, "schema.version", pick("7", "-1"))));
            timestampConverter();
            timestampConverter();
            one("TimestampRouter", maybe(maybe(options(), 2, "topic.format", pick("${topic}_${timestamp}", "x", "${timestamp}${timestamp}-${topic}${topic}")), 2, "timestamp.format", pattern()));
            one("ValueToKey", valueToKeyOptions());
            one("predicates.HasHeaderKey", options("name", pick("a", "b", "c")));
            one("predicates.RecordIsTombstone", Map.of());
            regex();
        }
        for (Map<String, String> wrong : WRONG_OPTIONS)
            run(wrong.get("class"), without(wrong, "class"), record());
        System.out.flush();
    }

    // ---- options

    static Map<String, String> castOptions() {
        if (random.nextInt(3) == 0)
            return options("spec", pick(TYPES.toArray(new String[0])));
        List<String> specs = new ArrayList<>();
        for (String name : shuffled().subList(0, 1 + random.nextInt(4)))
            specs.add(name + ":" + (random.nextInt(5) == 0 ? " INT32 " : pick(TYPES.toArray(new String[0]))));
        return nulls(options("spec", String.join(",", specs)));
    }

    static Map<String, String> extractOptions() {
        Map<String, String> options = nulls(options("field", pick("a", "b", "x.y", "a.b", "c.a.b", "`x.y`", "`x.y`.a", "a.`x.y`", "a.", "nope", "d.nope", "`a", "`a`b`.c", "`a\\`.b`.c")));
        return maybe(options, 2, "field.syntax.version", pick("V1", "V2", "v2", "V2", "V3"));
    }

    static Map<String, String> valueToKeyOptions() {
        if (!ValueToKey.CONFIG_DEF.names().contains("field.syntax.version")) // before Kafka 4.4
            return nulls(options("fields", names(1)));
        Map<String, String> options = nulls(options("fields", pick(names(1), "a", "a.b", "c.a.b,a", "`x.y`", "x.y,`x.y`.a", "a.`x.y`", "a.", "d.nope", "`a")));
        return maybe(options, 2, "field.syntax.version", pick("V1", "V2", "v2", "V2", "V3"));
    }

    static Map<String, String> headerFromOptions() {
        List<String> fields = shuffled().subList(0, 1 + random.nextInt(2));
        List<String> headers = new ArrayList<>(List.of("h", "g").subList(0, random.nextInt(8) == 0 ? 1 : fields.size()));
        return nulls(options("fields", String.join(",", fields), "headers", String.join(",", headers), "operation", pick("move", "copy")));
    }

    static Map<String, String> insertOptions() {
        Map<String, String> options = options();
        for (String name : List.of("topic", "partition", "timestamp", "static"))
            maybe(options, 2, name + ".field", name + pick("", "!", "?"));
        maybe(options, 4, "offset.field", "offset" + pick("", "!", "?"));
        maybe(options, 12, "topic.field", "a");
        if (random.nextInt(5) > 0)
            options.put("static.value", "fixed");
        return nulls(options);
    }

    static Map<String, String> replaceOptions() {
        Map<String, String> options = nulls(options());
        maybe(options, 2, "exclude", names(0));
        maybe(options, 2, "include", names(0));
        return maybe(options, 2, "renames", pick("a:b", "a:new", "a:b,b:a", "b:x.y,c:z", "a:new,a:newer", "a", "a:b:c", "a:b:", ":b", "c:\u00e9"));
    }

    static void timestampConverter() {
        String format = pattern();
        Map<String, String> options = nulls(options("target.type", pick("string", "unix", "Date", "Time", "Timestamp")));
        maybe(options, 2, "unix.precision", pick("seconds", "milliseconds", "microseconds", "nanoseconds"));
        boolean whole = random.nextInt(4) == 0;
        if (!whole)
            options.put("field", "ts");
        if (random.nextInt(6) > 0)
            options.put("format", format);
        SchemaBuilder builder = (SchemaBuilder) pick(SchemaBuilder.string(), SchemaBuilder.string(), SchemaBuilder.int64(), SchemaBuilder.int64(), Timestamp.builder(),
                org.apache.kafka.connect.data.Date.builder(), Time.builder(), SchemaBuilder.int32());
        if (random.nextBoolean())
            builder.optional();
        if (random.nextInt(4) == 0)
            builder.defaultValue(timestamp(builder.build(), format));
        Schema schema = builder.build();
        Object value = schema.isOptional() && random.nextInt(4) == 0 ? null : timestamp(schema, format);
        boolean schemaless = random.nextInt(3) == 0;
        if (schemaless && schema.type() == Schema.Type.INT32 && schema.name() == null)
            value = true;
        if (schemaless)
            schema = null;
        Schema side = schema;
        Object data = value;
        if (!whole && schemaless) {
            Map<String, Object> map = new LinkedHashMap<>();
            map.put("a", 1L);
            if (random.nextInt(6) > 0)
                map.put("ts", value);
            data = random.nextInt(10) == 0 ? null : map;
        } else if (!whole) {
            SchemaBuilder struct = SchemaBuilder.struct().name("s").version(2).doc("d").field("a", Schema.OPTIONAL_INT64_SCHEMA);
            boolean present = random.nextInt(6) > 0;
            if (present)
                struct.field("ts", schema);
            if (random.nextBoolean())
                struct.optional();
            side = struct.build();
            Struct filled = new Struct(side);
            if (present)
                filled.put("ts", value);
            data = side.isOptional() && random.nextInt(5) == 0 ? null : filled;
        }
        ConnectRecord<?> like = record();
        boolean key = random.nextBoolean();
        run("TimestampConverter$" + (key ? "Key" : "Value"), options, key
                ? copy(like, side, data, like.valueSchema(), like.value()) : copy(like, like.keySchema(), like.key(), side, data));
    }

    static Object timestamp(Schema schema, String format) {
        long moment = random.nextInt(3) == 0 ? random.nextInt(200_000) - 100_000
                : random.nextInt(4) > 0 ? (long) (random.nextDouble() * 3_000_000_000_000L) - 500_000_000_000L
                : -12_000_000_000_000L + (long) (random.nextDouble() * 250_000_000_000_000L);
        if (schema.name() != null)
            switch (schema.name()) {
                case Timestamp.LOGICAL_NAME: return new Date(moment);
                case Time.LOGICAL_NAME: return new Date(Math.floorMod(moment, DAY));
                default: return new Date(Math.floorDiv(moment, DAY) * DAY);
            }
        if (schema.type() == Schema.Type.INT64)
            return random.nextInt(6) == 0 ? random.nextLong() : random.nextBoolean() ? moment : moment * pick(1000L, 1_000L, 1L);
        if (schema.type() == Schema.Type.INT32)
            return (int) moment;
        if (random.nextInt(8) == 0)
            return pick("", "x", "2024-02-30", "2024-13-01 25:61:61", " 2024-01-02 03:04:05", "2024-1-2 3:4:5", "24-01-02", "2024-01-02T03:04:05.678Z tail", "20240102030405");
        SimpleDateFormat written = new SimpleDateFormat(format);
        written.setTimeZone(TimeZone.getTimeZone("UTC"));
        String text = written.format(new Date(moment));
        return random.nextInt(3) > 0 ? text : altered(text);
    }

    static String altered(String text) {
        StringBuilder altered = new StringBuilder(text);
        int place = random.nextInt(text.length());
        switch (random.nextInt(5)) {
            case 0: return altered.deleteCharAt(place).toString();
            case 1: return altered.insert(place, "0123456789 -:Z".charAt(random.nextInt(14))).toString();
            case 2: return altered.replace(place, place + 1, text.substring(place, place + 1).toUpperCase()).toString();
            case 3: return text.substring(0, place);
            default:
                altered.setCharAt(place, "0123456789".charAt(random.nextInt(10)));
                return altered.toString();
        }
    }

    static void oneCast() {
        Schema schema = random.nextInt(3) == 0 ? null : schema(0);
        Object value = schema == null ? schemaless(0) : value(schema);
        Schema side = schema;
        Object data = value;
        boolean whole = random.nextBoolean();
        if (!whole && schema == null) {
            data = new LinkedHashMap<>(Collections.singletonMap("a", value));
        } else if (!whole) {
            side = SchemaBuilder.struct().field("a", schema).build();
            data = new Struct(side).put("a", value);
        }
        ConnectRecord<?> like = record();
        run("Cast$Value", options("spec", (whole ? "" : "a:") + pick(TYPES.toArray(new String[0]))), copy(like, like.keySchema(), like.key(), side, data));
    }

    static String pattern() {
        return pick("yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSSX", "yyyy-MM-dd HH:mm:ss", "yyyyMMddHHmmssSSS", "yyMMdd", "y/M/d H:m:s.S", "EEE, d MMM yyyy HH:mm:ss z",
                "EEEE d MMMM yyyy GG hh:mm:ss a", "yyyy-DDD kk", "YYYY-'W'ww-u", "h 'o''clock' a, K", "yyyy-MM-dd'T'HH:mm:ssZ", "dd.MM.yy, HH:mm:ss.SSS XXX", "yyyy.MM.dd G zzzz",
                "MMM dd yyyy HH:mm:ss:SSS XX", "'100%' yyyyy", "LLLL LLL LL yyyy", "SSSSSS s", "yyy YY Y y", "W F w ww D uu EEEEE MMMMM", "GGGG aaa ZZZ zz X");
    }

    static void regex() {
        String expression = pick("(.*)-(\\d+)", "a|ab", "ab|a", "[a-z]+", "(?<first>\\w+)[._-](?<second>.*)", "\\Qa.b\\E.*", "(?i)ORDERS.*", "\\p{Alpha}+\\p{Digit}*", "[\\w&&[^0-9]]+.*",
                "(a)(b)?.*", "(?:orders|a)(?i)-X|.*Q", "[^a-c[x-z]]+.*", "orders-[0-9]{1,3}+", "(.)\\1.*", "\\w*+", "(.*)(.)(.)(.)(.)(.)(.)(.)(.)(.)1", "((((((((((.*))))))))))", ".*?", "\\p{Lu}.*|\\P{Lu}+",
                "[a-z&&[def]]rders.*", "a(?=b).*", "(?x) orders - .* # comment", "^orders.*$", "\\x6frders\\u002d.*", "[]a]+", "[", "(", "*a", "a{2", "\\y", "[z-a]", "(?<n>a)\\k<n>.*", "\\S+\\z");
        String replacement = pick("$1", "x", "new-$0", "${second}.${first}", "\\$1", "$2-$1", "$11", "$", "\\", "$9", "", "${n}", "$a", "a\\\\b");
        String topic = pick("orders-12", "ab", "a", "aab", "a.b", "orders_2", "Orders-X", "a-x", "a-X", "zzQ", "0orders", "abcdefghij1", "d", "erders", "");
        ConnectRecord<?> like = record();
        ConnectRecord<?> renamed = like.newRecord(topic, like.kafkaPartition(), like.keySchema(), like.key(), like.valueSchema(), like.value(), like.timestamp());
        run("RegexRouter", options("regex", expression, "replacement", replacement), renamed);
        run("predicates.TopicNameMatches", options("pattern", expression), renamed);
    }

    static final List<Map<String, String>> WRONG_OPTIONS = List.of(
        options("class", "Cast$Value"), options("class", "Cast$Value", "spec", ""), options("class", "Cast$Value", "spec", "int32,a:int8"),
        options("class", "Cast$Value", "spec", "a:int128"), options("class", "Cast$Value", "spec", "bytes"), options("class", "Cast$Value", "spec", "a:struct"),
        options("class", "Cast$Value", "spec", "a:b:int8"), options("class", "Cast$Value", "spec", "a:"), options("class", "Cast$Value", "spec", "int7"),
        options("class", "Cast$Value", "spec", "a:int8", "replace.null.with.default", "x"),
        options("class", "DropHeaders"), options("class", "DropHeaders", "headers", ""), options("class", "DropHeaders", "headers", "a,,b"), options("class", "DropHeaders", "headers", "a,a"),
        options("class", "ExtractField$Value"), options("class", "HeaderFrom$Value"), options("class", "HeaderFrom$Value", "fields", "", "headers", "h", "operation", "copy"),
        options("class", "HeaderFrom$Value", "fields", "a", "headers", "h,g", "operation", "copy"), options("class", "HeaderFrom$Value", "fields", "a", "headers", "h", "operation", "Copy"),
        options("class", "HoistField$Value"), options("class", "InsertField$Value"), options("class", "InsertField$Value", "static.value", "x"),
        options("class", "InsertHeader"), options("class", "InsertHeader", "header", "h"),
        options("class", "MaskField$Value"), options("class", "MaskField$Value", "fields", ""), options("class", "MaskField$Value", "fields", "a", "replacement", ""),
        options("class", "MaskField$Value", "fields", "a,,b"), options("class", "MaskField$Value", "fields", "a,a"),
        options("class", "RegexRouter"), options("class", "RegexRouter", "regex", "a"), options("class", "ReplaceField$Value", "renames", "a:b,c"), options("class", "ReplaceField$Value", "exclude", "a,,b"),
        options("class", "ReplaceField$Value", "include", "a,a"), options("class", "ReplaceField$Value", "renames", ""),
        options("class", "SetSchemaMetadata$Value"), options("class", "SetSchemaMetadata$Value", "schema.version", "x"),
        options("class", "TimestampConverter$Value"), options("class", "TimestampConverter$Value", "target.type", "date"),
        options("class", "TimestampConverter$Value", "target.type", "string"), options("class", "TimestampConverter$Value", "target.type", "string", "format", " "),
        options("class", "TimestampConverter$Value", "target.type", "string", "format", "bogus"), options("class", "TimestampConverter$Value", "target.type", "unix", "format", "yyyy'"),
        options("class", "TimestampConverter$Value", "target.type", "unix", "format", "XXXX"),
        options("class", "TimestampConverter$Value", "target.type", "unix", "unix.precision", "days"),
        options("class", "TimestampRouter", "timestamp.format", "foo"), options("class", "ValueToKey"), options("class", "ValueToKey", "fields", ""), options("class", "ValueToKey", "fields", "a,a"),
        options("class", "predicates.HasHeaderKey"), options("class", "predicates.HasHeaderKey", "name", ""), options("class", "predicates.TopicNameMatches"),
        options("class", "predicates.TopicNameMatches", "pattern", ""));

    static Map<String, String> options(String... pairs) {
        Map<String, String> options = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2)
            options.put(pairs[i], pairs[i + 1]);
        return options;
    }

    static Map<String, String> without(Map<String, String> options, String name) {
        Map<String, String> rest = new LinkedHashMap<>(options);
        rest.remove(name);
        return rest;
    }

    static Map<String, String> maybe(Map<String, String> options, int oneIn, String name, String value) {
        if (random.nextInt(oneIn) == 0)
            options.put(name, value);
        return options;
    }

    static Map<String, String> nulls(Map<String, String> options) {
        return maybe(options, 3, "replace.null.with.default", "false");
    }

    @SafeVarargs
    static <T> T pick(T... choices) {
        return choices[random.nextInt(choices.length)];
    }

    static List<String> shuffled() {
        List<String> names = new ArrayList<>(NAMES);
        Collections.shuffle(names, random);
        return names;
    }

    static String names(int fewest) {
        return String.join(",", shuffled().subList(0, fewest + random.nextInt(3)));
    }

    // ---- records

    static void side(String name, Map<String, String> options) {
        boolean key = random.nextInt(3) == 0;
        ConnectRecord<?> record = record();
        if (key)
            record = copy(record, record.valueSchema(), record.value(), record.keySchema(), record.key());
        run(name + (key ? "$Key" : "$Value"), options, record);
    }

    static void one(String name, Map<String, String> options) {
        run(name, options, record());
    }

    static ConnectRecord<?> record() {
        ConnectHeaders headers = new ConnectHeaders();
        for (int i = random.nextInt(3); i > 0; i--) {
            Schema schema = random.nextBoolean() ? null : Schema.OPTIONAL_STRING_SCHEMA;
            headers.add(pick("a", "b", "h"), pick("x", null, "\u00e9"), schema);
        }
        Schema keySchema = pick(null, Schema.OPTIONAL_STRING_SCHEMA);
        Object key = pick("k", null);
        Schema valueSchema = sideSchema();
        Object value = sideValue(valueSchema);
        String topic = pick("topic", "orders-12", "a.b");
        Long timestamp = random.nextInt(6) == 0 ? null : Long.valueOf((long) (random.nextDouble() * 3_000_000_000_000L) - 500_000_000_000L);
        if (random.nextBoolean())
            return new SinkRecord(topic, random.nextInt(3), keySchema, key, valueSchema, value, random.nextInt(1000), timestamp, TimestampType.CREATE_TIME, headers);
        return new SourceRecord(null, null, topic, random.nextInt(3) == 0 ? null : Integer.valueOf(random.nextInt(3)), keySchema, key, valueSchema, value, timestamp, headers);
    }

    static ConnectRecord<?> copy(ConnectRecord<?> like, Schema keySchema, Object key, Schema valueSchema, Object value) {
        return like.newRecord(like.topic(), like.kafkaPartition(), keySchema, key, valueSchema, value, like.timestamp());
    }

    static Schema sideSchema() {
        int choice = random.nextInt(12);
        return choice < 5 ? null : choice < 10 ? struct(random.nextInt(3) == 0 ? 2 : 1) : schema(0);
    }

    static Object sideValue(Schema schema) {
        if (random.nextInt(12) == 0)
            return null;
        if (schema != null)
            return schema.type() == Schema.Type.STRUCT ? filled(schema, 12) : value(schema);
        return random.nextInt(4) == 0 ? schemaless(1) : map(2);
    }

    static Schema struct(int depth) {
        SchemaBuilder builder = SchemaBuilder.struct();
        describe(builder);
        if (random.nextInt(3) == 0)
            builder.optional();
        for (String name : shuffled().subList(0, 1 + random.nextInt(5)))
            builder.field(name, depth > 0 && random.nextInt(5) == 0 ? struct(depth - 1) : schema(depth));
        return builder.build();
    }

    static void describe(SchemaBuilder builder) {
        if (builder.name() == null && random.nextInt(3) == 0)
            builder.name("org.example.Name").version(3);
        if (random.nextInt(6) == 0)
            builder.doc("described");
        if (random.nextInt(6) == 0)
            builder.parameter("p", "q");
    }

    static Schema schema(int depth) {
        SchemaBuilder builder = builder(depth);
        describe(builder);
        if (random.nextInt(3) == 0)
            builder.optional();
        boolean bytes = builder.type() == Schema.Type.BYTES && !Decimal.LOGICAL_NAME.equals(builder.name());
        if (random.nextInt(3) == 0 && builder.type().isPrimitive() && !bytes)
            builder.defaultValue(required(builder));
        return builder.build();
    }

    static SchemaBuilder builder(int depth) {
        switch (random.nextInt(depth > 0 ? 16 : 13)) {
            case 0: return SchemaBuilder.int8();
            case 1: return SchemaBuilder.int16();
            case 2: return SchemaBuilder.int32();
            case 3: return SchemaBuilder.int64();
            case 4: return SchemaBuilder.float32();
            case 5: return SchemaBuilder.float64();
            case 6: return SchemaBuilder.bool();
            case 7: return SchemaBuilder.string();
            case 8: return SchemaBuilder.bytes();
            case 9: return Decimal.builder(random.nextInt(6) - 1);
            case 10: return org.apache.kafka.connect.data.Date.builder();
            case 11: return Time.builder();
            case 12: return Timestamp.builder();
            case 13: return SchemaBuilder.array(Schema.OPTIONAL_INT32_SCHEMA);
            case 14: return random.nextInt(4) == 0 ? SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.INT32_SCHEMA) : SchemaBuilder.string();
            default: return SchemaBuilder.array(Schema.STRING_SCHEMA);
        }
    }

    static Object value(Schema schema) {
        return schema.isOptional() && random.nextInt(3) == 0 ? null : required(schema);
    }

    static Object required(Schema schema) {
        if (schema.name() != null)
            switch (schema.name()) {
                case Decimal.LOGICAL_NAME:
                    int scale = Integer.parseInt(schema.parameters().get("scale"));
                    return new BigDecimal(new BigInteger(random.nextInt(80) + 1, random).multiply(random.nextBoolean() ? BigInteger.ONE : BigInteger.ONE.negate()), scale);
                case org.apache.kafka.connect.data.Date.LOGICAL_NAME: return new Date((random.nextInt(60000) - 30000) * DAY);
                case Time.LOGICAL_NAME: return new Date((long) random.nextInt((int) DAY));
                case Timestamp.LOGICAL_NAME: return new Date((random.nextLong() >>> 1) % 250_000_000_000_000L - 12_000_000_000_000L);
                default:
            }
        switch (schema.type()) {
            case INT8: return (byte) integer(8);
            case INT16: return (short) integer(16);
            case INT32: return (int) integer(32);
            case INT64: return integer(64);
            case FLOAT32: return (float) dual();
            case FLOAT64: return dual();
            case BOOLEAN: return random.nextBoolean();
            case STRING: return text();
            case BYTES: return bytes();
            case ARRAY: return schema.valueSchema().type() == Schema.Type.STRING ? List.of("x") : new ArrayList<>(Arrays.asList(1, null));
            case MAP: return Map.of("k", 5);
            default:
                return filled(schema, 0);
        }
    }

    static Object schemaless(int depth) {
        switch (random.nextInt(depth > 0 ? 11 : 8)) {
            case 0: return integer(64);
            case 1: return dual();
            case 2: return text();
            case 3: return random.nextBoolean();
            case 4: return bytes();
            case 5: return random.nextInt(4) == 0 ? new BigDecimal(new BigInteger(20, random), 2) : text();
            case 6: return random.nextInt(4) == 0 ? new Date(random.nextInt()) : integer(64);
            case 7: return null;
            case 8: return new ArrayList<>(Arrays.asList(1L, "x", null));
            default: return map(depth - 1);
        }
    }

    static Map<String, Object> map(int depth) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (String name : shuffled().subList(0, random.nextInt(6)))
            map.put(name, schemaless(depth));
        return map;
    }

    static Struct filled(Schema schema, int missingOneIn) {
        Struct struct = new Struct(schema);
        for (Field field : schema.fields())
            if (missingOneIn == 0 || random.nextInt(missingOneIn) > 0)
                struct.put(field, value(field.schema()));
        return struct;
    }

    static long integer(int bits) {
        switch (random.nextInt(4)) {
            case 0: return random.nextInt(5) - 2;
            case 1: return random.nextBoolean() ? -1L << (bits - 1) : ~(-1L << (bits - 1));
            default: return random.nextLong() >> (64 - bits);
        }
    }

    static double dual() {
        double[] special = {0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, Double.MAX_VALUE, 0.5, -0.9, 1.5, -1.5, 2147483648.0, -2147483649.0, 1e10, 9.3e18, 300.7, 2.0E-3, 2.2E-322, 2e23};
        switch (random.nextInt(3)) {
            case 0: return special[random.nextInt(special.length)];
            case 1: return random.nextInt(100000) / 100.0;
            default: return random.nextGaussian() * Math.pow(10, random.nextInt(24) - 12);
        }
    }

    static String text() {
        return pick("", "x", "1", "-12", "+7", "300", "70000", "3000000000", "99999999999999999999", "1.5", "-1e3", ".5", "1.", "1f", "2.5D", " 4 ", "0x1p3", "0x.8P1", "NaN", "-Infinity", "NaNf",
                "true", "TRUE", "yes", "1_000", "1e400", "16777217", "1.00000017881393432617187499", "\u0663", "\u00e9", "null", "1e", "- 1", "0x10");
    }

    static byte[] bytes() {
        byte[] bytes = new byte[random.nextInt(5)];
        random.nextBytes(bytes);
        return bytes;
    }

    // ---- running

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void run(String name, Map<String, String> options, ConnectRecord record) {
        String line = "{\"class\":" + quoted(PACKAGE + name) + ",\"options\":" + optionsText(options) + ",\"record\":" + recordText(record);
        String stage = "configure";
        try {
            Object plugin = Class.forName(PACKAGE + name).getDeclaredConstructor().newInstance();
            if (plugin instanceof Predicate) {
                ((Predicate) plugin).configure(options);
                stage = "apply";
                line += ",\"holds\":" + ((Predicate) plugin).test(record);
            } else {
                ((Transformation) plugin).configure(options);
                stage = "apply";
                line += ",\"result\":" + recordText(((Transformation) plugin).apply(record));
            }
        } catch (RuntimeException e) {
            line += errorText(e) + ",\"stage\":\"" + stage + "\"";
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        System.out.println(line + "}");
    }

    // ---- descriptions

    static String recordText(ConnectRecord<?> record) {
        if (record == null)
            return "null";
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers())
            headers.add("[" + quoted(header.key()) + "," + schemaText(header.schema()) + "," + valueText(header.value()) + "]");
        return "{\"topic\":" + quoted(record.topic()) + ",\"partition\":" + record.kafkaPartition()
                + ",\"offset\":" + (record instanceof SinkRecord ? String.valueOf(((SinkRecord) record).kafkaOffset()) : "null") + ",\"timestamp\":" + record.timestamp()
                + ",\"key\":[" + schemaText(record.keySchema()) + "," + valueText(record.key()) + "],\"value\":[" + schemaText(record.valueSchema()) + "," + valueText(record.value())
                + "],\"headers\":[" + String.join(",", headers) + "]}";
    }
}
