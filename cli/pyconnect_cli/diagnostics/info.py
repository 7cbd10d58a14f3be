"""`pyconnect info`: the cluster at a glance."""

from __future__ import annotations

from collections import Counter

import typer

from pyconnect_cli.acting.workers import assigned_workers, urls_with
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.session import session_of

app = typer.Typer(help="Show the cluster: version, workers, states.")


@app.command()
def info(context: typer.Context) -> None:
    """Show the cluster: version, workers, states."""
    session = session_of(context)
    worker = session.client.worker_info()
    views = session.client.connector_views()
    connectors = Counter(view.state for view in views.values())
    tasks = Counter(
        task.state for view in views.values() if view.status for task in view.status.tasks
    )
    workers = urls_with(session, assigned_workers(view.status for view in views.values()))
    document = {
        "version": worker.version,
        "commit": worker.commit,
        "kafka_cluster_id": worker.kafka_cluster_id,
        "workers": workers,
        "connectors": dict(sorted(connectors.items())),
        "tasks": dict(sorted(tasks.items())),
    }
    lines = key_value_lines(
        {
            "version": f"{worker.version} ({worker.commit})",
            "kafka cluster": worker.kafka_cluster_id,
            "workers": ", ".join(workers),
            "connectors": _counts(connectors),
            "tasks": _counts(tasks),
        }
    )
    session.output.document(document, text="\n".join(lines))


def _counts(counts: Counter[str]) -> str:
    if not counts:
        return "none"
    parts = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"{counts.total()} ({parts})"
