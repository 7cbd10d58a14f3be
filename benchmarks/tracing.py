"""What tracing costs a task: processor time of a record without it, and with one in 1,000 sampled.

    scripts/benchmark tracing [--sample 1000] [--every 20] [--runs 15] [--batches 40]

A run converts batches of 500 records with JSON and hands them to the at-least-once sender, or gets
them from a consumer and puts them; brokers are left out, so the share is larger than in a worker.
A collector in another thread gets the spans, and its time counts too. Runs with and without tracing
take turns. Traced runs have more spans than the sample has, so that their cost is above the noise
of a busy machine; the cost for the sample is in proportion. Exit 1: tracing costs more than the
limit (--limit, 3 %).
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from pyconnect_agent.builtin.converters.base import SimpleHeaderConverter
from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_agent.tasks.plugins import Converters
from pyconnect_agent.tasks.source.pipeline import compose_run
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import SourceRecord
from tests.agent.tasks.sink.sink_loop import P0, Sink
from tests.agent.tasks.source.source_loop import Source
from tests.support.fakes.fake_clients import FakeMessage
from tests.support.servers.otlp_collector import otlp_collector

SIZE = 500
VALUE = {"id": 123456, "name": "A. Customer", "amount": "19.90", "count": 3, "country": "de"}


def source_run(batches: int) -> Callable[[Tracing | None], None]:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false", "converter.type": "value"}, False)
    convert = compose_run(
        Converters(key=converter, value=converter, header=SimpleHeaderConverter())
    )
    polled = [
        SourceRecord({"file": "f"}, {"position": n}, topic="t", value=VALUE) for n in range(SIZE)
    ]

    def run(tracing: Tracing | None) -> None:
        source = Source()
        source.producer.auto_deliver = True
        source.sender.tracing = tracing
        for _ in range(batches):
            source.sender.send_run(convert(polled, polled))
            source.sender.batch_sent()
            source.committer.offer(source.sender.submitted.committable_offsets())
            source.producer.sent.clear()

    return run


def sink_run(batches: int) -> Callable[[Tracing | None], None]:
    def run(tracing: Tracing | None) -> None:
        sink = Sink(tracing=tracing)
        sink.assign({P0: 0})
        for batch in range(batches):
            first = batch * SIZE
            sink.consumer.polls = [
                [FakeMessage("t", 0, offset, b"v" * 99) for offset in range(first, first + SIZE)]
            ]
            sink.loop.step()
            sink.task.calls.clear()

    return run


def measured(run: Callable[[Tracing | None], None], tracing: Tracing | None, count: int) -> float:
    """Return microseconds of processor time a record."""
    began_s = time.process_time()
    run(tracing)
    return (time.process_time() - began_s) * 1e6 / count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=1000, help="the cost is for one record in N")
    parser.add_argument("--every", type=int, default=20, help="one record in N while measured")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--limit", type=float, default=3.0, help="in percent")
    options = parser.parse_args()
    count = options.batches * SIZE
    dear = []
    print(f"| task | untraced, µs a record | cost of one in {options.sample} | middle half |")
    print("|---|---|---|---|")
    with otlp_collector() as collector:
        tracing = Tracing(f"{collector.url}/v1/traces", every=options.every, connector="c", task=0)
        for name, run in (
            ("source", source_run(options.batches)),
            ("sink", sink_run(options.batches)),
        ):
            pairs = [
                (measured(run, None, count), measured(run, tracing, count))
                for _ in range(options.runs + 1)
            ][1:]
            share = options.every / options.sample
            costs = sorted(share * (traced / plain - 1) for plain, traced in pairs)
            cost = statistics.median(costs)
            plain = min(plain for plain, _ in pairs)
            middle = f"{costs[len(costs) // 4]:+.1%} to {costs[3 * len(costs) // 4]:+.1%}"
            print(f"| {name} | {plain:.2f} | {cost:+.1%} | {middle} |")
            if cost * 100 > options.limit:
                dear.append(name)
        tracing.close()
        print(f"\nspans received: {len(collector.spans)}")
    if dear:
        sys.exit(f"error: tracing costs more than {options.limit:g} %: {', '.join(dear)}")


if __name__ == "__main__":
    main()
