/** Describes schemas, values, options and errors as JSON of ASCII, for the programs that print a corpus. */

import java.math.BigDecimal;
import java.util.Base64;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;

class Descriptions {
    static String schemaText(Schema schema) {
        if (schema == null)
            return "null";
        StringBuilder text = new StringBuilder("{\"type\":\"" + schema.type() + "\",\"optional\":" + schema.isOptional()
                + ",\"name\":" + quoted(schema.name()) + ",\"version\":" + schema.version() + ",\"doc\":" + quoted(schema.doc()));
        if (schema.parameters() != null)
            text.append(",\"parameters\":").append(optionsText(schema.parameters()));
        switch (schema.type()) {
            case MAP:
                text.append(",\"keys\":").append(schemaText(schema.keySchema()));
            case ARRAY:
                text.append(",\"values\":").append(schemaText(schema.valueSchema()));
                break;
            case STRUCT:
                text.append(",\"fields\":[").append(schema.fields().stream()
                        .map(f -> "[" + quoted(f.name()) + "," + schemaText(f.schema()) + "]")
                        .collect(Collectors.joining(","))).append("]");
                break;
            default:
        }
        if (schema.defaultValue() != null)
            text.append(",\"default\":").append(valueText(schema.defaultValue()));
        return text.append("}").toString();
    }

    static String valueText(Object value) {
        if (value == null)
            return "null";
        if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long)
            return "{\"int\":" + value + "}";
        if (value instanceof Float)
            return "{\"float\":\"" + Integer.toHexString(Float.floatToIntBits((Float) value)) + "\"}";
        if (value instanceof Double)
            return "{\"double\":\"" + Long.toHexString(Double.doubleToLongBits((Double) value)) + "\"}";
        if (value instanceof Boolean)
            return "{\"boolean\":" + value + "}";
        if (value instanceof String)
            return "{\"string\":" + quoted((String) value) + "}";
        if (value instanceof byte[])
            return "{\"bytes\":" + base64((byte[]) value) + "}";
        if (value instanceof BigDecimal)
            return "{\"unscaled\":" + ((BigDecimal) value).unscaledValue() + ",\"scale\":" + ((BigDecimal) value).scale() + "}";
        if (value instanceof Date)
            return "{\"date\":" + ((Date) value).getTime() + "}";
        if (value instanceof List)
            return "{\"list\":[" + ((List<?>) value).stream().map(Descriptions::valueText).collect(Collectors.joining(",")) + "]}";
        if (value instanceof Map)
            return "{\"map\":[" + ((Map<?, ?>) value).entrySet().stream()
                    .map(e -> "[" + valueText(e.getKey()) + "," + valueText(e.getValue()) + "]")
                    .collect(Collectors.joining(",")) + "]}";
        Struct struct = (Struct) value;
        return "{\"struct\":[" + struct.schema().fields().stream().map(f -> valueText(struct.getWithoutDefault(f.name())))
                .collect(Collectors.joining(",")) + "]}";
    }

    static String optionsText(Map<String, String> options) {
        return "{" + options.entrySet().stream().map(e -> quoted(e.getKey()) + ":" + quoted(e.getValue()))
                .collect(Collectors.joining(",")) + "}";
    }

    static String errorText(RuntimeException e) {
        return ",\"error\":[" + quoted(e.getClass().getName()) + "," + quoted(e.getMessage()) + "]";
    }

    static String base64(byte[] bytes) {
        return bytes == null ? "null" : "\"" + Base64.getEncoder().encodeToString(bytes) + "\"";
    }

    static String quoted(String text) {
        if (text == null)
            return "null";
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray())
            if (c < ' ' || c > '~' || c == '"' || c == '\\')
                quoted.append(String.format("\\u%04x", (int) c));
            else
                quoted.append(c);
        return quoted.append('"').toString();
    }
}
