"""What a repair's process is asked to do, and the file of its plan, which is the backup, too."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.report.contents import SCHEMA_VERSION
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
        """Return the report and its findings; ReconcileError if they are not as written."""
        try:
            report = json.loads((self.report / "report.json").read_text("utf-8"))
            text = (self.report / "findings" / "findings.ndjson").read_text("utf-8")
            lines = list(map(json.loads, filter(None, text.split("\n"))))
        except (OSError, ValueError) as exc:
            raise ReconcileError(
                f"{self.report}: the report cannot be read: {exc}", hint="audit again"
            ) from exc
        if (version := report.get("schema_version")) != SCHEMA_VERSION:
            raise ReconcileError(
                f"{self.report}: the report is of schema version {version}, not {SCHEMA_VERSION}",
                hint="audit again with this version",
            )
        if len(lines) != report["findings_kept"]:
            raise ReconcileError(
                f"{self.report}: the report has {len(lines):,} of its"
                f" {count_of(report['findings_kept'], 'finding')}: a file was cut or changed",
                hint="audit again",
            )
        return report, lines

    def read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the head of the plan and its changes; ReconcileError if they were edited."""
        try:
            text, _, digest = self.rows.read_text("utf-8").rpartition("\n")
        except (OSError, ValueError) as exc:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair cannot be read: {exc}"
            ) from exc
        if sha256(text.encode()).hexdigest() != digest:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair is not as it was written: the file was cut or"
                " changed, and nothing is done by it",
                hint="restore the file, or audit again and repair by the new report",
            )
        head, *lines = map(json.loads, text.split("\n"))
        if head["version"] != VERSION:
            raise ReconcileError(
                f"{self.rows}: the plan is of version {head['version']}, not {VERSION}",
                hint="repair and undo with the pyconnect that made the plan",
            )
        return head, lines

    def write(self, documents: Sequence[object]) -> None:
        """Write the plan; it is on the disk before anything changes, for its owner only.

        A line for each document, then the SHA-256 of these lines.
        """
        text = "\n".join(map(json.dumps, documents))
        try:
            descriptor = os.open(self.rows, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(f"{text}\n{sha256(text.encode()).hexdigest()}")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as exc:
            raise ReconcileError(
                f"{self.rows}: the plan of the repair cannot be written: {exc.strerror}",
                hint="set XDG_STATE_HOME to a directory with room that you can write",
            ) from exc

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
