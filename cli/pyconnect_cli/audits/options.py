"""Options that every reconciliation job takes, and the class of its verbs."""

from __future__ import annotations

from pyconnect_cli.parsing.options import CRON_OPTIONS, OptionSpec
from pyconnect_cli.verbs import ActingVerb

REPORT_OPTIONS = (
    OptionSpec(("--report",), "directory of the report; it must be new or empty", "DIR"),
    OptionSpec(("--spec",), "spec file whose members replace the resolved ones", "FILE"),
    OptionSpec(("--ranges",), "report.json whose offset ranges are read again", "FILE"),
    OptionSpec(("--since",), "start time of the records (ISO 8601, or an age such as 2h)", "TIME"),
    OptionSpec(
        ("--findings",), "maximum number of stored findings of each kind (default 1000)", "N"
    ),
    OptionSpec(("--hide-keys",), "hashes instead of the records' keys in the report"),
    OptionSpec(("--fail-unparsable",), "values that do not parse count as differences"),
    OptionSpec(("--print-spec",), "print the resolved spec without a run"),
)
REGISTRY_OPTIONS = (
    OptionSpec(("--registry",), "URL of the schema registry", "URL"),
    OptionSpec(
        ("--registry-properties",),
        "properties file of the access to the schema registry, with the keys of converters",
        "FILE",
    ),
)
SPARK_OPTIONS = (
    OptionSpec(("--master",), "master of Spark (default local[*])", "URL"),
    OptionSpec(("--remote",), "address of a Spark Connect server: sc://HOST:PORT", "URL"),
    OptionSpec(("--conf",), "setting of Spark; repeatable", "KEY=VALUE", repeatable=True),
    OptionSpec(("--packages",), "Maven coordinates of packages for Spark", "LIST", repeatable=True),
    OptionSpec(("--jars",), "jar files for Spark", "LIST", repeatable=True),
    OptionSpec(("--properties-file",), "properties file with settings of Spark", "FILE"),
)


class ReconcileVerb(ActingVerb):
    """A job: Spark's options, the report's, and what cron needs. It changes nothing."""

    changes = False
    shared_specs = (
        ("Report", REPORT_OPTIONS),
        ("Schema registry", REGISTRY_OPTIONS),
        ("Spark", SPARK_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )
