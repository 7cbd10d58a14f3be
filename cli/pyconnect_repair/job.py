"""What a repair's process is asked to do, and the file of its plan, which is the backup, too."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Spec, TopicSide, question_of
from pyconnect_reconcile.topics.cluster_view import ClusterView

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The spec of this process; `config` is a connector's, `report` the directory of a plan's."""

    audit: Spec
    config: Mapping[str, str]
    rows: Path
    report: Path

    @property
    def origin(self) -> TopicSide:
        """The side that has what the other one lacks."""
        assert isinstance(self.audit.left, TopicSide)
        return self.audit.left

    def found(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the report and its findings, if they answer the audit's question."""
        report = json.loads((self.report / "report.json").read_text("utf-8"))
        lines = (self.report / "findings" / "findings.ndjson").read_text("utf-8").split("\n")
        return report, list(map(json.loads, filter(None, lines)))

    def read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the head of the plan and its changes."""
        try:
            head, *lines = map(json.loads, filter(None, self.rows.read_text("utf-8").split("\n")))
        except (OSError, ValueError) as exc:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair cannot be read: {exc}"
            ) from exc
        return head, lines

    def write(self, documents: Sequence[object]) -> None:
        """Write the plan; it is on the disk before anything changes, for its owner only."""
        descriptor = os.open(self.rows, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            for document in documents:
                stream.write(json.dumps(document) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def require_same(self, question: str) -> None:
        """Raise ReconcileError unless the audit asks what the report answers."""
        if question != question_of(self.audit):
            raise ReconcileError(
                "the report answers another question than an audit would now: a configuration has"
                " changed, or the audit had options",
                hint="give the audit's options again, or audit again and repair by the new report",
            )

    def require_topic_ids(self, side: TopicSide, ids: Mapping[str, str]) -> None:
        """Raise ReconcileError if a topic of the side is another one than that of the report."""
        for topic in ClusterView(self.audit.clusters[side.cluster]).snapshot(side.topics).topics:
            if ids.get(topic.topic) != topic.topic_id:
                raise ReconcileError(
                    f"{topic.topic} was deleted and created again since the report",
                    hint="audit again",
                )
