#!/usr/bin/env python3
"""Other people's Java connectors on an agent beside a Java worker: writes a table of the docs.

    scripts/connectors_tried.py [PART…]      only locations whose coordinates have such a part

Each location is fetched with its dependencies by Maven (`mvn`), without Kafka's own jars, which no
archive of a connector has. A Java worker and an agent are started with that location alone: both
list its plugins, answer with the settings of each connector and validate three configs of it: with
the least keys, with a topic, and with `-7` in each key. What differs is in the table.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "agent"), str(ROOT / "cli")]

from platformdirs import user_cache_path  # noqa: E402

from pyconnect_clients.plugin_jars.kafka_links import kafka_api, read_links  # noqa: E402
from pyconnect_clients.plugin_jars.locations import class_path_of  # noqa: E402
from pyconnect_sandbox.errors import SandboxError  # noqa: E402
from pyconnect_sandbox.jars import find_runtime  # noqa: E402
from tests.java.plugin_answers import definition, is_our_own, on_both, without_our_own  # noqa: E402
from tests.support.agents.rest_client import Answer, call_url  # noqa: E402
from tests.support.names import unique_name  # noqa: E402
from tests.support.servers.kafka import Servers  # noqa: E402

CATALOG = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs/reference/java-connectors-tried.md"
MARK = "|---|---|---|---|---|---|\n"
FETCH_S = 900
MOST = 300
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tried</groupId><artifactId>tried</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A plugin location, by Maven's coordinates."""

    plugin: str
    run: str = "not run"
    """What ran on an agent."""

    @property
    def name(self) -> str:
        return self.plugin.partition(":")[2].replace(":", "-")

    def fetch(self) -> Path:
        """Return the directory of its jars, the only one in its own; fetched on first use."""
        group, artifact, version = self.plugin.split(":")
        directory = user_cache_path("pyconnect") / "connectors-tried" / self.name / "plugin"
        if directory.exists():
            return directory
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            pom, jars = Path(scratch, "pom.xml"), Path(scratch, "jars")
            pom.write_text(POM.format(*map(escape, (group, artifact, version))))
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            options = ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            subprocess.run([*command, *options], check=True, timeout=FETCH_S)
            for jar in jars.iterdir():
                if _is_kafkas(jar) and not jar.name.startswith(artifact):
                    jar.unlink()
            jars.rename(directory)
        return directory


def _is_kafkas(jar: Path) -> bool:
    own = ("kafka-clients-", "kafka_2", "connect-api-", "connect-json-", "connect-runtime-")
    return jar.name.startswith((*own, "connect-transforms-"))


@dataclass(slots=True, kw_only=True)
class Tried:
    """What came of a location; a row of the table."""

    location: Location
    kafka: str
    connectors: int = 0
    plugins: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def row(self) -> str:
        differ = " ".join("; ".join(self.differences).split()).replace("|", "/")[:MOST] or "equal"
        return (
            f"| {self.location.plugin} | {self.kafka} | {self.connectors} |"
            f" {self.plugins - self.connectors} | {differ} | {self.location.run} |"
        )


def kafka_releases(directory: Path) -> str:
    """Return the releases of Kafka that have all that a location links against."""
    links = read_links(class_path_of(directory))
    runs = links.releases(kafka_api())
    if links.absent(kafka_api()) or not runs:
        return "none"
    return runs[0] if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"


def try_location(servers: Servers, bootstrap: str, location: Location) -> Tried:
    """Start both workers with one location and compare their answers."""
    directory = location.fetch()
    tried = Tried(location=location, kafka=kafka_releases(directory))
    properties = {"plugin.path": str(directory.parent), "plugin.discovery": "hybrid_warn"}
    name = unique_name("tried")
    try:
        java = servers.java_worker(bootstrap, f"{name}-java", properties=properties)
    except SandboxError as error:
        tried.differences.append(f"the Java worker does not start: {error}")
        return tried
    agent = servers.agent(bootstrap, f"{name}-agent", properties=properties)
    try:
        compare(tried, java.url, agent.url)
    finally:
        agent.stop()
        java.stop()
    return tried


def compare(tried: Tried, java: str, agent: str) -> None:
    listed = on_both(java, agent, "GET", "/connector-plugins?connectorsOnly=false")
    own = [
        {
            name: each
            for each in answer.json()
            if not _is_everywhere(name := each["class"], tried.location)
        }
        for answer in listed
    ]
    for name in sorted(own[0].keys() ^ own[1].keys()):
        where = "Java worker" if name in own[0] else "agent"
        tried.differences.append(f"{name} is on the {where} only")
    both = [name for name in own[0] if name in own[1]]
    tried.plugins = len(both)
    for name in both:
        one, other = own[0][name], own[1][name]
        if one != other:
            tried.differences.append(f"{name}: {one} and {other}")
        if one["type"] not in ("source", "sink"):
            continue
        tried.connectors += 1
        tried.differences += connector_differences(name, java, agent)


def _is_everywhere(plugin: str, location: Location) -> bool:
    """Tell a plugin of every worker from those of a location."""
    own = re.search(":connect-(file|mirror):", location.plugin)
    if own and plugin.startswith(f"org.apache.kafka.connect.{own[1]}."):
        return False
    return is_our_own(plugin) or plugin.startswith(
        ("org.apache.kafka.connect.", "org.apache.kafka.common.")
    )


def connector_differences(name: str, java: str, agent: str) -> Iterator[str]:
    """Compare the settings of a connector and the validation of configs of it."""
    one, other = on_both(java, agent, "GET", f"/connector-plugins/{name}/config")
    if one.status != 200 or other.status != 200:
        if one.status != other.status:
            yield f"{name}: settings: {one.status} and {other.status}: {other.text[:200]}"
    else:
        ours = ("FileStreamSource", "FileStreamSink")
        keys = (call_url(agent, "GET", f"/connector-plugins/{each}/config").json() for each in ours)
        texts_of_ours = {key["name"] for key in chain.from_iterable(keys)}
        yield from (
            f"{name}: {mine or theirs}"
            for mine, theirs in zip_longest(
                _shown(one, texts_of_ours), _shown(other, texts_of_ours)
            )
            if mine != theirs
        )
    least = {"connector.class": name, "name": "tried", "tasks.max": "1"}
    # Few of a connector's settings may be this: errors of types and of its own validators.
    odd = {key["name"]: "-7" for key in one.json() if key["name"] not in texts_of_ours}
    for config in (least, {**least, "topics": "tried"}, {**odd, **least, "topics": "tried"}):
        target = f"/connector-plugins/{name}/config/validate"
        answers = on_both(java, agent, "PUT", target, config)
        one_found, other_found = map(validation, answers)
        if one_found != other_found:
            yield f"{name}: validation of {len(config)} keys: {_first(one_found, other_found)}"


def _shown(answer: Answer, texts_of_ours: Collection[str]) -> list[Mapping[str, object]]:
    """Return settings by name; the texts of those that every connector has are the worker's."""
    keys = sorted(answer.json(), key=lambda key: str(key["name"]))
    return [definition(key) if key["name"] in texts_of_ours else key for key in keys]


def validation(answer: Answer) -> tuple[object, ...]:
    """Return what a validation found, by key where it has keys. A key's value may be missing."""
    body = answer.json()
    if "configs" not in body:
        return answer.status, body
    found = {
        (info["definition"] or info["value"])["name"]: (
            definition(info["definition"]),
            info["value"] and without_our_own(info["value"]),
        )
        for info in body["configs"]
    }
    return answer.status, body["name"], body["error_count"], sorted(body["groups"]), found


def _first(one: object, other: object) -> str:
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
        return f"{one} and {other}"[:400]
    for mine, theirs in zip(one, other, strict=True):
        if isinstance(mine, dict) and isinstance(theirs, dict):
            keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
            if keys:
                return f"{keys}: {mine.get(keys[0])} and {theirs.get(keys[0])}"[:700]
        elif mine != theirs:
            return f"{mine} and {theirs}"[:400]
    return "nothing"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parts = parser.parse_args().parts
    with CATALOG.open("rb") as file:
        catalog = [Location(**each) for each in tomllib.load(file)["location"]]
    chosen = [each for each in catalog if not parts or any(part in each.plugin for part in parts)]
    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Servers(find_runtime(), Path(directory))) as servers,
    ):
        bootstrap = servers.broker().bootstrap_servers
        for location in chosen:
            try:
                tried = try_location(servers, bootstrap, location)
            except subprocess.CalledProcessError as error:
                print(f"{location.plugin}: {error}", flush=True)
                continue
            rows.append(tried.row)
            print(tried.row, flush=True)
    before, mark, table = PAGE.read_text().partition(MARK)
    by_plugin = {row.split()[1]: row for row in [*table.splitlines(), *rows]}
    known = [by_plugin[each.plugin] for each in catalog if each.plugin in by_plugin]
    PAGE.write_text(f"{before}{mark}" + "".join(f"{row}\n" for row in known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
