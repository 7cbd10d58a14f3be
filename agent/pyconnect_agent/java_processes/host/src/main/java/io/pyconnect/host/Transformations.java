package io.pyconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import org.apache.kafka.connect.connector.ConnectRecord;

/**
 * Transformations of a connector in Python. A chain is a segment of the connector's; each question
 * has records for one of them, and its answer what has become of each record ({@link Crossing}).
 */
final class Transformations implements Link.Receiver {
    private final Link link;
    private final List<Chain<?>> chains = new ArrayList<>();
    private final Crossing crossing = new Crossing();
    private final Host.Worker thread = new Host.Worker("transformations");

    Transformations(Link link, JsonNode job, Loaders loaders) {
        this.link = link;
        job.get("segments").forEach(each -> chains.add(new Chain<>(each, loaders, link)));
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        if (kind == Link.TRANSFORM) {
            var question = payload.order(ByteOrder.BIG_ENDIAN);
            thread.run(() -> link.send(Link.TRANSFORMED, id, answer(question)));
            return;
        }
        // No operation is repeated any more.
        chains.forEach(Chain::stop);
        if (Host.json(payload).get("method").asText().equals("stop")) {
            thread.answer(link, id, Executors.callable(this::end));
        }
    }

    @Override
    public void end() {
        chains.forEach(chain -> chain.end(() -> {}));
    }

    private byte[] answer(ByteBuffer question) {
        var parts = (List<?>) Crossing.read(question);
        return transformed(
                chains.get(((Long) parts.get(0)).intValue()),
                (List<?>) parts.get(2),
                (List<?>) parts.get(1));
    }

    private <R extends ConnectRecord<R>> byte[] transformed(
            Chain<R> chain, List<?> rows, List<?> known) {
        var answer = crossing.new Batch();
        var outcomes = chain.transformAll(rows, row -> this.<R>record(row, known));
        for (var row : rows) {
            var outcome = outcomes.next();
            if (outcome instanceof Chain.Failed failed) {
                answer.addOutcome(failed.describe(0));
            } else if (outcome == null) {
                answer.addOutcome(null);
            } else {
                add(answer, (ConnectRecord<?>) outcome, row, known);
            }
        }
        return answer.finish(chain.takeCounts());
    }

    private void add(Crossing.Batch answer, ConnectRecord<?> made, Object row, List<?> known) {
        try {
            // By its content: a transformation may have changed the record that it got.
            if (made.equals(crossing.record((List<?>) row, known))) {
                answer.addOutcome(true);
            } else {
                answer.add(made);
            }
        } catch (RuntimeException odd) {
            answer.addOutcome(failed(odd).describe(0));
        }
    }

    @SuppressWarnings("unchecked")
    private <R extends ConnectRecord<R>> R record(Object row, List<?> known) throws Chain.Failed {
        try {
            return row == null ? null : (R) crossing.record((List<?>) row, known);
        } catch (RuntimeException odd) {
            throw failed(odd);
        }
    }

    private static Chain.Failed failed(Exception odd) {
        return new Chain.Failed("TRANSFORMATION", Crossing.class.getName(), odd, 0, null);
    }
}
