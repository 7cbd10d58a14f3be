package io.pyconnect.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads and writes the JSON of frames. Jackson's ObjectMapper is not used: its five hundred classes
 * take 6 MiB of each process and a third of the time until it runs.
 */
final class Json {
    private static final JsonFactory JSON =
            new JsonFactoryBuilder().rootValueSeparator((String) null).build();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private Json() {}

    static JsonNode read(byte[] text) throws IOException {
        try (var parser = JSON.createParser(text)) {
            return parser.nextToken() == null ? MissingNode.getInstance() : node(parser);
        }
    }

    /** Writes maps, collections, scalars, bytes (Base64), enums (name), all others as text. */
    static byte[] bytes(Object value) {
        var target = new ByteArrayOutputStream();
        try (var json = writer(target)) {
            write(json, value);
        } catch (IOException invalid) {
            throw new UncheckedIOException(invalid);
        }
        return target.toByteArray();
    }

    /** Returns a generator that writes nothing between its values. */
    static JsonGenerator writer(OutputStream target) throws IOException {
        return JSON.createGenerator(target);
    }

    /** Returns the value as Kafka's JsonConverter does without a schema: whole numbers are Long. */
    static Object plain(JsonNode node) {
        switch (node.getNodeType()) {
            case OBJECT -> {
                var map = new LinkedHashMap<String, Object>();
                node.properties().forEach(each -> map.put(each.getKey(), plain(each.getValue())));
                return map;
            }
            case ARRAY -> {
                var list = new ArrayList<Object>();
                node.forEach(each -> list.add(plain(each)));
                return list;
            }
            case STRING -> {
                return node.textValue();
            }
            case BOOLEAN -> {
                return node.booleanValue();
            }
            case NUMBER -> {
                return node.isIntegralNumber() ? (Object) node.longValue() : node.doubleValue();
            }
            default -> {
                return null;
            }
        }
    }

    private static JsonNode node(JsonParser parser) throws IOException {
        switch (parser.currentToken()) {
            case START_OBJECT -> {
                var object = NODES.objectNode();
                while (parser.nextToken() != JsonToken.END_OBJECT) {
                    var name = parser.currentName();
                    parser.nextToken();
                    object.set(name, node(parser));
                }
                return object;
            }
            case START_ARRAY -> {
                var array = NODES.arrayNode();
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    array.add(node(parser));
                }
                return array;
            }
            case VALUE_STRING -> {
                return NODES.textNode(parser.getText());
            }
            case VALUE_NUMBER_INT -> {
                return parser.getNumberType() == JsonParser.NumberType.BIG_INTEGER
                        ? NODES.numberNode(parser.getBigIntegerValue())
                        : NODES.numberNode(parser.getLongValue());
            }
            case VALUE_NUMBER_FLOAT -> {
                return NODES.numberNode(parser.getDoubleValue());
            }
            case VALUE_TRUE, VALUE_FALSE -> {
                return NODES.booleanNode(parser.getBooleanValue());
            }
            default -> {
                return NODES.nullNode();
            }
        }
    }

    static void write(JsonGenerator json, Object value) throws IOException {
        if (value instanceof String text) {
            json.writeString(wellFormed(text));
        } else if (value instanceof Map<?, ?> map) {
            json.writeStartObject();
            for (var entry : map.entrySet()) {
                json.writeFieldName(wellFormed(String.valueOf(entry.getKey())));
                write(json, entry.getValue());
            }
            json.writeEndObject();
        } else if (value instanceof Collection<?> items) {
            json.writeStartArray();
            for (var item : items) {
                write(json, item);
            }
            json.writeEndArray();
        } else if (value instanceof byte[] bytes) {
            json.writeBinary(bytes);
        } else if (value instanceof ByteBuffer bytes) {
            json.writeBinary(Utils.toArray(bytes));
        } else if (value == null) {
            json.writeNull();
        } else {
            writeScalar(json, value);
        }
    }

    private static void writeScalar(JsonGenerator json, Object value) throws IOException {
        if (value instanceof Boolean truth) {
            json.writeBoolean(truth);
        } else if (value instanceof Double number) {
            json.writeNumber(number);
        } else if (value instanceof Float number) {
            json.writeNumber(number);
        } else if (value instanceof BigDecimal number) {
            json.writeNumber(number);
        } else if (value instanceof BigInteger number) {
            json.writeNumber(number);
        } else if (value instanceof Number number) {
            json.writeNumber(number.longValue());
        } else if (value instanceof Enum<?> constant) {
            json.writeString(constant.name());
        } else {
            json.writeString(wellFormed(value.toString()));
        }
    }

    /** Replaces halves of surrogate pairs, which a text that was cut may have: no JSON holds them. */
    private static String wellFormed(String text) {
        for (int at = 0; at < text.length(); at++) {
            if (Character.isSurrogate(text.charAt(at))) {
                return new String(text.getBytes(UTF_8), UTF_8);
            }
        }
        return text;
    }
}
