package io.pyconnect.host;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;

/**
 * The numbers that plugins show by MBeans. Java's own are left out.
 *
 * <p>A value is {@code [domain, keys, attribute, labels, number]}: {@code keys} are those of the
 * bean's name in their order, {@code labels} those of a map's entry. Names are read as JMX shows
 * them; Python makes metrics of them.
 */
final class MBeans {
    private static final int MOST_VALUES = 5_000;
    private static final List<String> JAVAS =
            List.of("java.", "javax.", "jdk.", "sun.", "com.sun.", "JMImplementation");

    private static final AtomicBoolean IS_READ = new AtomicBoolean();

    private MBeans() {}

    /** Returns no values while an earlier call waits for a bean: its getters are plugin code. */
    static List<List<Object>> values() {
        var values = new ArrayList<List<Object>>();
        if (IS_READ.compareAndSet(false, true)) {
            try {
                // Without a plugin that has asked for it there is no server; it takes 10 MiB.
                for (var server : MBeanServerFactory.findMBeanServer(null)) {
                    for (var name : server.queryNames(null, null)) {
                        if (JAVAS.stream().noneMatch(name.getDomain()::startsWith)) {
                            add(values, server, name);
                        }
                    }
                }
            } finally {
                IS_READ.set(false);
            }
        }
        return values;
    }

    private static void add(List<List<Object>> values, MBeanServer server, ObjectName name) {
        try {
            var readable = new ArrayList<String>();
            for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                if (attribute.isReadable()) {
                    readable.add(attribute.getName());
                }
            }
            // An attribute that cannot be read is left out.
            for (Attribute read :
                    server.getAttributes(name, readable.toArray(String[]::new)).asList()) {
                add(values, name, read.getName(), Map.of(), read.getValue());
            }
        } catch (JMException | RuntimeException unreadable) {
            // The bean has been removed meanwhile, or cannot be described.
        }
    }

    private static void add(
            List<List<Object>> values,
            ObjectName name,
            String attribute,
            Map<String, String> labels,
            Object value) {
        if (value instanceof TabularData table) {
            // A map, as a bean of open types shows it.
            for (var row : table.values()) {
                var entry = (CompositeData) row;
                if (entry.containsKey("key") && entry.containsKey("value")) {
                    var label = Map.of("key", String.valueOf(entry.get("key")));
                    add(values, name, attribute, label, entry.get("value"));
                }
            }
        } else if (value instanceof Map<?, ?> map) {
            for (var entry : map.entrySet()) {
                var label = Map.of("key", String.valueOf(entry.getKey()));
                add(values, name, attribute, label, entry.getValue());
            }
        } else if (number(value) != null && values.size() < MOST_VALUES) {
            values.add(List.of(name.getDomain(), keys(name), attribute, labels, number(value)));
        }
    }

    /** Returns null for a value that is not a finite number or a boolean. */
    private static Number number(Object value) {
        if (value instanceof Boolean truth) {
            return truth ? 1 : 0;
        }
        return value instanceof Number number && Double.isFinite(number.doubleValue())
                ? number
                : null;
    }

    private static Map<String, String> keys(ObjectName name) {
        var keys = new LinkedHashMap<String, String>();
        for (var each : name.getKeyPropertyListString().split(",(?=[^,=]+=)")) {
            var key = each.substring(0, each.indexOf('='));
            var value = name.getKeyProperty(key);
            if (value != null) {
                keys.put(key, value.startsWith("\"") ? ObjectName.unquote(value) : value);
            }
        }
        return keys;
    }
}
