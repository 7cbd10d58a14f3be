#!/usr/bin/env python3
"""Kafka's classes by release: the table that ships with pyconnect, and what a release changed.

    scripts/kafka_releases.py table 3.9.2=DIR 4.0.2=DIR …    write the table of `plugins check`
    scripts/kafka_releases.py compare 4.3.1=DIR 4.4.0=DIR    print what the newer one lacks and adds

A directory holds the jars of a release, as `libs` of its archive does.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "agent"))

from pyconnect_clients.plugin_jars import kafka_api  # noqa: E402
from pyconnect_clients.plugin_jars.class_file import ClassFile  # noqa: E402
from pyconnect_clients.plugin_jars.kafka_api import KafkaApi, parse_table  # noqa: E402

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
    """Return the text that `kafka_api.parse_table` reads."""
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


def main(arguments: Sequence[str]) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("table", "compare"))
    parser.add_argument("releases", nargs="+", metavar="RELEASE=DIR", help="oldest first")
    given = parser.parse_args(arguments)
    releases = {
        release: Path(path) for release, _, path in (r.partition("=") for r in given.releases)
    }
    if missing := [str(path) for path in releases.values() if not path.is_dir()]:
        parser.error(f"not a directory: {', '.join(missing)}")
    text = table(releases)
    if given.action == "compare":
        print("\n".join(differences(parse_table(text))))
        return 0
    target = Path(kafka_api.__file__).with_name(kafka_api.TABLE)
    target.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {len(text.splitlines())} lines, {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
