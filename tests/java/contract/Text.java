package told;

import java.util.Map;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.storage.StringConverter;

/** A converter and header converter that notes what is done with it. */
public class Text extends StringConverter implements Monitorable {
    private Notes notes;
    private boolean hasFailed;

    @Override
    public void configure(Map<String, ?> config, boolean isKey) {
        super.configure(config, isKey);
        notes = new Notes(config);
    }

    @Override
    public void configure(Map<String, ?> config) {
        super.configure(config);
        notes = new Notes(config);
    }

    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        notes.add("Text with metrics " + (metrics != null));
    }

    @Override
    public byte[] fromConnectData(String topic, Schema schema, Object value) {
        notes.addLoader(this);
        if ("bad".equals(value)) {
            throw new DataException("thrown by fromConnectData");
        }
        return super.fromConnectData(topic, schema, value);
    }

    @Override
    public SchemaAndValue toConnectData(String topic, byte[] value) {
        if (value != null && new String(value).equals("broken")) {
            throw new AssertionError("thrown by toConnectData");
        }
        if (value != null && new String(value).equals("interrupt") && !hasFailed) {
            hasFailed = true;
            Thread.currentThread().interrupt();
            throw new RetriableException("thrown by toConnectData");
        }
        return super.toConnectData(topic, value);
    }

    @Override
    public void close() {
        notes.add("Text closed");
    }
}
