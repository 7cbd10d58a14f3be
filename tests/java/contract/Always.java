package told;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** A predicate that is always true, and notes what is done with it. */
public class Always<R extends ConnectRecord<R>> implements Predicate<R>, Monitorable {
    private Notes notes;

    @Override
    public void configure(Map<String, ?> config) {
        notes = new Notes(config);
    }

    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        notes.add("Always with metrics " + (metrics != null));
    }

    @Override
    public boolean test(R record) {
        notes.addLoader(this);
        return true;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void close() {
        notes.add("Always closed");
    }
}
