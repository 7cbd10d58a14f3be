package io.pyconnect.host;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.sink.SinkTaskContext;

/**
 * The consumer of the Python process, for sinks that take Kafka's consumer out of the context by
 * reflection: Apache's Iceberg sink commits its offsets in a transaction with the consumer's group
 * metadata. It has what such a sink asks for; every other method is refused.
 */
final class SinkConsumer implements InvocationHandler {
    private final Link link;
    private SinkTaskContext context;

    SinkConsumer(Link link) {
        this.link = link;
    }

    /** Sets the context, whose class needs the consumer first. */
    void belongTo(SinkTaskContext context) {
        this.context = context;
    }

    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> consumer() {
        return (Consumer<byte[], byte[]>)
                Proxy.newProxyInstance(
                        SinkConsumer.class.getClassLoader(), new Class<?>[] {Consumer.class}, this);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        var name = method.getName();
        int count = method.getParameterCount();
        if (name.equals("groupMetadata")) {
            var found = link.ask("groupMetadata", Map.of());
            var instance = found.path("instance");
            return new ConsumerGroupMetadata(
                    found.path("group").asText(),
                    found.path("generation").asInt(),
                    found.path("member").asText(),
                    instance.isNull() ? Optional.empty() : Optional.of(instance.asText()));
        } else if (name.equals("assignment")) {
            return context.assignment();
        } else if (name.equals("committed") && arguments[0] instanceof Collection<?> partitions) {
            return committed(partitions);
        } else if (name.equals("seek") && count == 2 && arguments[1] instanceof Long offset) {
            context.offset((TopicPartition) arguments[0], offset);
            return null;
        } else if (name.equals("toString")) {
            return "the consumer of the worker";
        } else if (name.equals("hashCode")) {
            return System.identityHashCode(proxy);
        } else if (name.equals("equals")) {
            return proxy == arguments[0];
        }
        throw new UnsupportedOperationException(
                "The consumer of a sink task is in another process, which does not answer " + name);
    }

    /** As Kafka's consumer: with null for a partition that has no committed offset. */
    private Map<TopicPartition, OffsetAndMetadata> committed(Collection<?> partitions) {
        var asked = new ArrayList<List<Object>>();
        for (var each : partitions) {
            var partition = (TopicPartition) each;
            asked.add(List.of(partition.topic(), partition.partition()));
        }
        var result = new HashMap<TopicPartition, OffsetAndMetadata>();
        for (var each : link.ask("committed", Map.of("partitions", asked))) {
            var offset = each.get(2);
            result.put(
                    new TopicPartition(each.get(0).asText(), each.get(1).asInt()),
                    offset.isNull() ? null : new OffsetAndMetadata(offset.asLong()));
        }
        return result;
    }
}
