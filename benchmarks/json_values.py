"""FileStream connectors with JsonConverter beside Apache's Java worker, in turn on one broker.

    scripts/benchmark json_values [--lines N] [--runs N] [--only java|ours]

First schemaless, then with schemas: values are JSON texts of 99 bytes, the second time in an
envelope. All else is as in file_stream.py, whose tables it prints.
"""

import sys

from benchmarks import file_stream

CONVERTER = "value.converter=org.apache.kafka.connect.json.JsonConverter"


def main() -> None:
    given = sys.argv[1:]
    for title, enabled in (("schemaless", "false"), ("with schemas", "true")):
        print(f"\nJSON {title}")
        enable = f"value.converter.schemas.enable={enabled}"
        sys.argv[1:] = [*given, "--set", CONVERTER, "--set", enable]
        file_stream.main()
