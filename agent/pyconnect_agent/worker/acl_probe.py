"""`python -m pyconnect_agent.worker.acl_probe`: ask brokers for the permissions of a worker.

Composition root. For Apache's workers, which do not report permissions: the command line passes
their properties and connectors as JSON on stdin and gets the document of `GET /agent/acls` on
stdout. The program starts no worker and loads no plugin; references to secrets stay unresolved.

Input: `properties` (of worker.properties), `phase`, and `connectors`, each with the fields of
`ConnectorFacts`. Exit code 2: the properties are not those of a
distributed worker; the reason is on stderr.
"""

from __future__ import annotations

import json
import logging
import sys

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_api.errors import ConfigException
from pyconnect_clients.acls.needs import ConnectorFacts

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
    connectors = [ConnectorFacts(**entry) for entry in question["connectors"]]
    json.dump(WorkerAcls(config).report(question["phase"], connectors), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
