package io.pyconnect.host;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Answers questions about plugins, none of which is started. */
final class QuestionsHost implements Host.Job {
    private final Link link;
    private final Questions questions;
    private final Host.Worker calls = new Host.Worker("questions");

    QuestionsHost(Link link, Loaders loaders) {
        this.link = link;
        this.questions = new Questions(loaders);
    }

    @Override
    public Object facts() {
        return null;
    }

    @Override
    public void receive(int kind, int id, ByteBuffer payload) throws IOException {
        var call = Host.json(payload);
        calls.answer(link, id, () -> questions.answer(call));
    }
}
