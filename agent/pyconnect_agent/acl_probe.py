"""`python -m pyconnect_agent.acl_probe`: ask brokers for the permissions of a worker's clients.

Composition root. For Apache's workers, which do not report permissions: the command line passes
their properties and connectors as JSON on stdin and gets the document of `GET /agent/acls` on
stdout. The program starts no worker and loads no plugin; references to secrets stay unresolved.

Input: `properties` (of worker.properties), `phase`, and `connectors`, each with `name`, `type`,
`config`, `tasks`, `fenced_tasks` and `topics`. Exit code 2: the properties are not those of a
distributed worker; the reason is on stderr.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from pyconnect_agent.core.clients.acl_needs import ConnectorAclFacts
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_api.errors import ConfigException

EXIT_CONFIG = 2


def main() -> int:
    """Answer one question; returns the exit code."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    question = json.load(sys.stdin)
    try:
        config = DistributedConfig.parse(question["properties"])
    except ConfigException as error:
        print(error, file=sys.stderr)  # noqa: T201 - the answer to who started this
        return EXIT_CONFIG
    connectors = [_facts(entry) for entry in question["connectors"]]
    json.dump(WorkerAcls(config).report(question["phase"], connectors), sys.stdout)
    return 0


def _facts(entry: Mapping[str, Any]) -> ConnectorAclFacts:
    return ConnectorAclFacts(
        name=entry["name"],
        type=entry["type"],
        config=entry["config"],
        tasks=entry["tasks"],
        fenced_tasks=entry["fenced_tasks"],
        topics=tuple(entry["topics"]),
    )


if __name__ == "__main__":
    sys.exit(main())
