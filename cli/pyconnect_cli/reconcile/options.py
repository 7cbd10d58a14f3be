"""Options that every reconciliation job takes, and the class of its verbs."""

from __future__ import annotations

from pyconnect_cli.parsing.options import CRON_OPTIONS, OptionGroups, OptionSpec
from pyconnect_cli.verbs import CronVerb

REPORT_OPTIONS = (
    OptionSpec(("--report",), "directory of the report; it must be new or empty", "DIR"),
    OptionSpec(("--spec",), "spec file whose members replace the resolved ones", "FILE"),
    OptionSpec(("--ranges",), "report.json whose offset ranges are read again", "FILE"),
    OptionSpec(("--since",), "start time of the records (ISO 8601, or an age such as 2h)", "TIME"),
    OptionSpec(("--since-last",), "only records after the last report with it that agreed"),
    OptionSpec(("--stable-only",), "check of only the offsets that no open transaction holds back"),
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
    OptionSpec(("--conf",), "setting of Spark", "KEY=VALUE", repeatable=True),
    OptionSpec(("--packages",), "Maven coordinates of packages for Spark", "LIST", repeatable=True),
    OptionSpec(("--jars",), "jar files for Spark", "LIST", repeatable=True),
    OptionSpec(("--properties-file",), "properties file with settings of Spark", "FILE"),
)


class ReconcileVerb(CronVerb):
    """A job: options of Spark, of the report and for cron."""

    shared_specs: OptionGroups = (
        ("Report", REPORT_OPTIONS),
        ("Schema registry", REGISTRY_OPTIONS),
        ("Spark", SPARK_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


ROW_OPTIONS = (
    OptionSpec(
        ("--value",),
        "format of the topic's values: bytes, text, json, connect-json, avro or json-schema",
        "FORM",
    ),
    OptionSpec(("--column",), "field to compare (default: all)", "NAME:TYPE", repeatable=True),
    OptionSpec(("--upsert",), "comparison of only the last version of each key"),
    OptionSpec(
        ("--allow-duplicates",),
        "repeated rows do not count as differences (at-least-once delivery)",
    ),
)
DATA_OPTIONS = (
    OptionSpec(
        ("--topic",), "topic to compare instead of the connector's", "TOPIC", repeatable=True
    ),
    OptionSpec(("--files",), "file, directory or pattern to compare", "PATH", repeatable=True),
    OptionSpec(
        ("--format",), "format of the files: text, json, csv, parquet, avro or orc", "FORMAT"
    ),
    OptionSpec(("--table",), "database table to compare; needs --jdbc-url", "TABLE"),
    OptionSpec(("--jdbc-url",), "JDBC URL of the table's database", "URL"),
    OptionSpec(
        ("--jdbc-properties",),
        "properties file with user, password and driver of the database",
        "FILE",
    ),
)


class CompareVerb(ReconcileVerb):
    """A job that compares rows."""

    shared_specs = (("Rows", ROW_OPTIONS), *ReconcileVerb.shared_specs)


class DataVerb(CompareVerb):
    """A job that compares a topic with files or a table."""

    shared_specs = (("Data", DATA_OPTIONS), *CompareVerb.shared_specs)
