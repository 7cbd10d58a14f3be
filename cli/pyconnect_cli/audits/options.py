"""Options that every reconciliation job takes, and the class of its verbs."""

from __future__ import annotations

from pyconnect_cli.parsing.options import CRON_OPTIONS, OptionSpec
from pyconnect_cli.verbs import ActingVerb

REPORT_OPTIONS = (
    OptionSpec(("--report",), "directory of the report, new or empty", "DIR"),
    OptionSpec(("--spec",), "a spec whose members replace what is resolved", "FILE"),
    OptionSpec(("--ranges",), "read the ranges of this report.json again", "FILE"),
    OptionSpec(("--since",), "only records since this time (ISO 8601, or 2h ago: 2h)", "TIME"),
    OptionSpec(("--findings",), "keep so many findings of each kind (default 1000)", "N"),
    OptionSpec(("--hide-keys",), "hashes in place of the records' keys"),
    OptionSpec(("--fail-unparsable",), "values that do not parse are differences"),
    OptionSpec(("--print-spec",), "print the resolved spec and run nothing"),
)
REGISTRY_OPTIONS = (
    OptionSpec(("--registry",), "schema registry of Avro values", "URL"),
    OptionSpec(("--registry-properties",), "access to it, as converters name it", "FILE"),
)
SPARK_OPTIONS = (
    OptionSpec(("--master",), "Spark's master (default local[*])", "URL"),
    OptionSpec(("--remote",), "a Spark Connect server: sc://HOST:PORT", "URL"),
    OptionSpec(("--conf",), "a setting of Spark", "KEY=VALUE", repeatable=True),
    OptionSpec(("--packages",), "Maven coordinates for Spark", "LIST", repeatable=True),
    OptionSpec(("--jars",), "jars for Spark", "LIST", repeatable=True),
    OptionSpec(("--properties-file",), "settings of Spark", "FILE"),
)


class ReconcileVerb(ActingVerb):
    """A job: Spark's options, the report's, and what cron needs."""

    shared_specs = (
        ("Report", REPORT_OPTIONS),
        ("Schema registry", REGISTRY_OPTIONS),
        ("Spark", SPARK_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )
