package told;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Makes new records for sinks, notes what is done with it, and cannot be closed. */
public class Change<R extends ConnectRecord<R>> implements Transformation<R>, Monitorable {
    private Notes notes;

    @Override
    public void configure(Map<String, ?> config) {
        notes = new Notes(config);
    }

    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        notes.add("Change with metrics " + (metrics != null));
    }

    @Override
    @SuppressWarnings("unchecked")
    public R apply(R record) {
        notes.addLoader(this);
        if (record instanceof SinkRecord sink) {
            return (R)
                    new SinkRecord(
                            "changed",
                            sink.kafkaPartition(),
                            sink.keySchema(),
                            sink.key(),
                            sink.valueSchema(),
                            sink.value(),
                            sink.kafkaOffset());
        }
        return record;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void close() {
        throw new AssertionError("thrown by close");
    }
}
