package io.pyconnect.tests;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Adds a mark to texts; some of them ask for something else. */
public class Marked<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
    private static final ConfigDef CONFIG =
            new ConfigDef()
                    .define(
                            "mark",
                            ConfigDef.Type.STRING,
                            ConfigDef.NO_DEFAULT_VALUE,
                            new ConfigDef.NonEmptyString(),
                            ConfigDef.Importance.HIGH,
                            "What is added.");
    private String mark;
    private int attempts;

    @Override
    public void configure(Map<String, ?> config) {
        mark = (String) CONFIG.parse(config).get("mark");
    }

    @Override
    public R apply(R record) {
        var text = String.valueOf(record.value());
        if (text.startsWith("bad")) {
            throw new DataException("thrown by Marked");
        } else if (text.startsWith("again") && ++attempts % 3 != 0) {
            throw new RetriableException("thrown by Marked");
        } else if (text.startsWith("halt")) {
            Runtime.getRuntime().halt(42);
        } else if (text.startsWith("gone")) {
            return null;
        } else if (text.startsWith("in place")) {
            record.headers().addString("mark", mark);
            return record;
        } else if (text.startsWith("same")) {
            return record;
        }
        return record.newRecord(
                record.topic(),
                record.kafkaPartition(),
                record.keySchema(),
                record.key(),
                record.valueSchema() == null ? null : Schema.STRING_SCHEMA,
                text + mark,
                record.timestamp(),
                record.headers());
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public String version() {
        return "2.1";
    }

    @Override
    public void close() {}

    /** Not public: no scan lists the classes that extend it. */
    abstract static class Plain<R extends ConnectRecord<R>> implements Predicate<R> {
        @Override
        public void configure(Map<String, ?> config) {}

        @Override
        public ConfigDef config() {
            return new ConfigDef();
        }

        @Override
        public void close() {}
    }

    /** Holds for texts without the word "plain". */
    public static class NotPlain<R extends ConnectRecord<R>> extends Plain<R> {
        @Override
        public boolean test(R record) {
            return !String.valueOf(record.value()).contains("plain");
        }
    }
}
