#!/usr/bin/env python3
"""Kafka's releases: the table of classes that ships with pyconnect, and what a release changed.

    scripts/kafka_releases.py table 3.9.2=DIR 4.0.2=DIR …    write the table of `plugins check`
    scripts/kafka_releases.py compare 4.3.1=DIR 4.4.0=DIR    print what the newer one lacks and adds
    scripts/kafka_releases.py answers 4.3.1=DIR 4.4.0=DIR    print what its workers answer otherwise

`answers` starts a broker and a worker of each release. It asks both for the requests, plugins,
settings and validations that the tests of conformity compare. `compare` and `answers` are the list
of work for a new release.

A directory holds the jars of a release, as `libs` of its archive does.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from difflib import ndiff
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "agent"), str(ROOT / "cli")]

from pyconnect_clients.plugin_jars import kafka_links  # noqa: E402
from pyconnect_clients.plugin_jars.class_file import ClassFile  # noqa: E402
from pyconnect_clients.plugin_jars.kafka_links import KafkaApi, parse_table  # noqa: E402

JARS = ("kafka-clients", "connect-api", "connect-json", "connect-runtime", "connect-transforms")


def public_classes(libs: Path) -> Iterator[ClassFile]:
    for name in JARS:
        for path in libs.rglob(f"{name}-[0-9]*.jar"):
            with zipfile.ZipFile(path) as jar:
                for entry in jar.namelist():
                    if not entry.startswith("org/apache/kafka/") or not entry.endswith(".class"):
                        continue
                    found = ClassFile(jar.read(entry))
                    if found.head.is_public and ".shaded." not in found.head.name:
                        yield found


def table(releases: Mapping[str, Path]) -> str:
    """Return the text that `kafka_links.parse_table` reads."""
    classes: dict[str, dict[str, int]] = {}
    for index, libs in enumerate(releases.values()):
        for found in public_classes(libs):
            members = classes.setdefault(found.head.name, {})
            for name in (f":{' '.join(found.head.parents)}", *found.members(visible=True)):
                members[name] = members.get(name, 0) | 1 << index
    lines = [" ".join(releases)]
    for name in sorted(classes):
        lines.append(name)
        lines += [f"{mask:x} {member}" for member, mask in sorted(classes[name].items())]
    return "\n".join(lines)


def differences(api: KafkaApi) -> Iterator[str]:
    """Yield what the last release lacks (-) and adds (+), of two."""
    marks = {1: "-", 2: "+"}
    for name, members in sorted(api.classes.items()):
        mark = marks.get(api.releases_with(name))
        if mark is not None:
            yield f"{mark} {name}"
            continue
        for member, mask in sorted(members.items()):
            if mask in marks and not member.startswith(":"):
                yield f"{marks[mask]} {name}.{member}"


def worker_differences(releases: Mapping[str, Path], directory: Path) -> Iterator[str]:
    """Yield the requests that Java workers of two releases answer differently, with the answers."""
    from pyconnect_sandbox.jars import find_runtime
    from tests.java.kafka_4_4 import runtime_with_file_connectors
    from tests.java.plugin_answers import comparable, on_both
    from tests.java.test_conformity import CONFIG_CASES
    from tests.support.rest_scenarios import SCENARIOS
    from tests.support.servers.kafka import Servers

    older, newer = releases.values()
    runtime = replace(find_runtime(), libs=older)
    new_runtime = runtime_with_file_connectors(find_runtime(), directory, newer)
    with (
        closing(Servers(runtime, directory)) as old,
        closing(Servers(new_runtime, directory)) as new,
    ):
        bootstrap = old.broker().bootstrap_servers
        urls = [each.java_worker(bootstrap, f"g{n}").url for n, each in enumerate((old, new))]
        listed = on_both(*urls, "GET", "/connector-plugins?connectorsOnly=false")[1].json()
        requests: list[tuple[str, str, object]] = [
            *(
                (each.method, each.target, each.body)
                for each in SCENARIOS
                # The one has the commit, the other the loggers of classes.
                if each.target.partition("?")[0] not in ("/", "/admin/loggers")
            ),
            ("GET", "/connector-plugins?connectorsOnly=false", None),
            *(
                ("GET", f"/connector-plugins/{quote(each['class'])}/config", None)
                for each in listed
            ),
            *(
                ("PUT", f"/connector-plugins/{each.connector_class}/config/validate", each.config)
                for each in CONFIG_CASES
            ),
        ]
        for method, target, body in requests:
            answers = zip(on_both(*urls, method, target, body), releases, strict=True)
            was, is_now = (comparable(answer, release) for answer, release in answers)
            if was != is_now:
                yield f"{method} {target} {body or ''}"
                yield from (f"  {line}" for line in ndiff(was, is_now) if line[0] in "-+")


def main(arguments: Sequence[str]) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("table", "compare", "answers"))
    parser.add_argument("releases", nargs="+", metavar="RELEASE=DIR", help="oldest first")
    given = parser.parse_args(arguments)
    releases = {
        release: Path(path) for release, _, path in (r.partition("=") for r in given.releases)
    }
    if missing := [str(path) for path in releases.values() if not path.is_dir()]:
        parser.error(f"not a directory: {', '.join(missing)}")
    if given.action == "answers":
        with TemporaryDirectory() as directory:
            for line in worker_differences(releases, Path(directory)):
                print(line, flush=True)
        return 0
    text = table(releases)
    if given.action == "compare":
        print("\n".join(differences(parse_table(text))))
        return 0
    target = Path(kafka_links.__file__).with_name(kafka_links.TABLE)
    target.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {len(text.splitlines())} lines, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
