"""Which plugins this worker has, by name, and which release of Apache's it follows.

Metadata only, no plugin code. Corresponds to ``PluginDesc``, ``PluginType``,
``PluginUtils.computeAliases`` and the look-ups of ``DelegatingClassLoader`` and ``Plugins`` in
Kafka Connect; error texts are theirs. `pyconnect_agent.plugins` finds and loads plugins.

Ranges of versions (KIP-891) have the syntax of Maven: ``[4,5)`` from 4 up to but not including 5,
``[4.3,]`` from 4.3 on, ``(,4]`` up to 4; several ranges are joined by commas. A plain version means
exactly that version.

`agent.connect.release` of the worker names the release of Apache Kafka Connect. `GET /` reports it,
because clients of Connect turn their features on and off by the version. Every plugin that stands
in for a class of Apache's reports it too, because it does what that class does in this release.

| 4.4.0, beyond 4.3.1 | where |
|---|---|
| `ValueToKey` takes paths into nested data | `plugins/loading.py` |
| more settings of clients are known | `core/config/client_keys.py` |
| a validation says less of what config providers supply | `core/config/validation.py` |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property, total_ordering
from typing import Any, Self

_RANGE = re.compile(r"([\[(])([^\[\](),]*)(?:(,)([^\[\](),]*))?([\])])")
_QUALIFIERS = {
    "alpha": 0, "a": 0, "dev": 0, "beta": 1, "b": 1, "milestone": 2, "m": 2, "rc": 3, "cr": 3,
    "snapshot": 4, "": 5, "ga": 5, "final": 5, "release": 5, "sp": 6, "post": 7,
}  # fmt: skip
_UNKNOWN_QUALIFIER = 6


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version, compared by its numbers; a pre-release is before its release."""

    text: str

    def _key(self) -> tuple[tuple[int, int, str], ...]:
        parts = re.findall(r"\d+|[a-z]+", self.text.lower())
        zero = (_QUALIFIERS[""], 0, "")
        key: list[tuple[int, int, str]] = []
        for part in parts:
            if part.isdigit():
                key.append((_QUALIFIERS[""], int(part), ""))
                continue
            while key and key[-1] == zero:
                key.pop()
            key.append((_QUALIFIERS.get(part, _UNKNOWN_QUALIFIER), 0, part))
        while key and key[-1] == zero:
            key.pop()
        # The last element of every key, so that 1.0rc1 is below 1.0 and 1.0 below 1.0.1.
        return (*key, (_QUALIFIERS[""], -1, ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    lower: Version | None
    upper: Version | None
    includes_lower: bool
    includes_upper: bool

    def contains(self, version: Version) -> bool:
        above = self.lower is None or (
            self.lower < version or (self.includes_lower and self.lower == version)
        )
        below = self.upper is None or (
            version < self.upper or (self.includes_upper and self.upper == version)
        )
        return above and below


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions; its text form is the one that Connect shows."""

    text: str
    intervals: tuple[_Interval, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Return the range; a text that is not a range is that one version, shown as ``[v,v]``."""
        text = text.strip()
        intervals: list[_Interval] = []
        position = 0
        for found in _RANGE.finditer(text):
            if text[position : found.start()].strip(" ,"):
                break
            lower = Version(found[2].strip()) if found[2].strip() else None
            upper_text = found[4] if found[3] else found[2]
            upper = Version(upper_text.strip()) if upper_text.strip() else None
            intervals.append(
                _Interval(
                    lower=lower,
                    upper=upper,
                    includes_lower=found[1] == "[",
                    includes_upper=found[5] == "]",
                )
            )
            position = found.end()
        if intervals and not text[position:].strip(" ,"):
            return cls(text, tuple(intervals))
        exact = Version(text)
        interval = _Interval(lower=exact, upper=exact, includes_lower=True, includes_upper=True)
        return cls(f"[{text},{text}]", (interval,))

    def contains(self, version: str) -> bool:
        """Return whether ``version`` is in the range."""
        return any(interval.contains(Version(version)) for interval in self.intervals)

    def __str__(self) -> str:
        return self.text


class PluginKind(Enum):
    """The kind of a plugin; the value is Connect's name of it.

    CONNECTOR is a connector known only by its entry point: the worker has to import it, in a scan,
    to find out whether it is a source or a sink.
    """

    SINK = "sink"
    SOURCE = "source"
    CONNECTOR = "connector"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONFIG_PROVIDER = "configprovider"
    REST_EXTENSION = "rest_extension"
    CLIENT_CONFIG_OVERRIDE_POLICY = "connector_client_config_override_policy"

    @property
    def is_connector(self) -> bool:
        return self in (PluginKind.SINK, PluginKind.SOURCE, PluginKind.CONNECTOR)


_SUFFIXES = {
    PluginKind.SINK: "Connector",
    PluginKind.SOURCE: "Connector",
    PluginKind.CONNECTOR: "Connector",
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
    PluginKind.TRANSFORMATION: "Transformation",
    PluginKind.PREDICATE: "Predicate",
    PluginKind.CONFIG_PROVIDER: "ConfigProvider",
    PluginKind.REST_EXTENSION: "ConnectRestExtension",
    PluginKind.CLIENT_CONFIG_OVERRIDE_POLICY: "ConnectorClientConfigOverridePolicy",
}

UNDEFINED = "undefined"
"""Connect's text for a plugin without a version."""

LISTED_KINDS = (
    PluginKind.SINK,
    PluginKind.SOURCE,
    PluginKind.TRANSFORMATION,
    PluginKind.PREDICATE,
    PluginKind.CONVERTER,
    PluginKind.HEADER_CONVERTER,
)
"""The kinds in ``GET /connector-plugins``, in its order."""


class PluginNotFoundError(LookupError):
    """No plugin, or more than one, matches a name; the text is for the user."""


class PluginVersionNotFoundError(PluginNotFoundError):
    """The plugin exists, but not in a wanted version (KIP-891)."""

    def __init__(self, class_name: str, wanted: VersionRange, available: Iterable[str]) -> None:
        self.available = tuple(available)
        super().__init__(
            f"Plugin {class_name} not found that matches the version range {wanted}, "
            f"available versions: [{', '.join(self.available)}]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDesc:
    """One class in one role.

    ``class_name`` is shown by the REST API: Java's name for the built-in ones, else the dotted
    Python path. ``python_path`` is ``module:Class``. ``location`` says where the class comes from:
    the distribution, or the plugin directory, which is then put on ``sys.path`` to load it
    (``search_path``). ``extra_aliases`` are further names, such as an entry point's.

    A Java plugin (``is_java``) has no ``python_path``. Its ``search_path`` is the jar or directory
    in which it was found, None for one in Kafka's own jars. ``kafka`` is the release of Kafka, or a
    directory of one, whose jars its processes use; empty: the worker's usual one.
    """

    class_name: str
    python_path: str
    kind: PluginKind
    version: str | None
    location: str = "classpath"
    search_path: str | None = None
    extra_aliases: tuple[str, ...] = ()
    is_java: bool = False
    kafka: str = ""

    @property
    def simple_name(self) -> str:
        """The last part of the class name."""
        return re.split(r"[.$:]", self.class_name)[-1]

    @property
    def aliases(self) -> frozenset[str]:
        """Short names: the simple name, also without its kind's suffix, and the outer class's."""
        simple = self.simple_name
        position = simple.rfind(_SUFFIXES[self.kind])
        pruned = simple[:position] if position > 0 else simple
        nested = {self.class_name.rpartition(".")[2]} if "$" in self.class_name else set()
        return frozenset({simple, pruned} | nested | set(self.extra_aliases))

    def describe(self) -> str:
        """Return the text Connect shows of a plugin in errors."""
        version = self.version or UNDEFINED
        return (
            f"PluginDesc{{klass=class {self.class_name}, name='{self.class_name}', "
            f"version='{version}', encodedVersion={version}, type={self.kind.value}, "
            f"typeName='{self.kind.value}', location='{self.location}'}}"
        )

    def to_json(self) -> dict[str, object]:
        """Return a form for JSON, which :meth:`from_json` reads."""
        return asdict(self) | {"kind": self.kind.value, "extra_aliases": list(self.extra_aliases)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the plugin from the form of :meth:`to_json`."""
        kind, aliases = PluginKind(data["kind"]), tuple(data["extra_aliases"])
        return cls(**{**data, "kind": kind, "extra_aliases": aliases})


@dataclass(frozen=True)
class Catalog:
    """All plugins. Immutable; cached indexes are built on first use.

    `problems`: why Java plugins were left out.
    """

    plugins: tuple[PluginDesc, ...]
    problems: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, list[PluginDesc]]:
        """Plugins by full name: Java or Python, with a colon or a dot before the class."""
        index: dict[str, list[PluginDesc]] = {}
        for plugin in self.plugins:
            names = (plugin.class_name, plugin.python_path, plugin.python_path.replace(":", "."))
            for name in dict.fromkeys(filter(None, names)):
                index.setdefault(name, []).append(plugin)
        return index

    @cached_property
    def _class_by_alias(self) -> dict[str, str]:
        """Class names by those aliases that belong to one class only."""
        classes: dict[str, set[str]] = {}
        for plugin in self.plugins:
            for alias in plugin.aliases:
                classes.setdefault(alias, set()).add(plugin.class_name)
        return {alias: names.pop() for alias, names in classes.items() if len(names) == 1}

    @cached_property
    def python(self) -> Catalog:
        return Catalog(tuple(plugin for plugin in self.plugins if not plugin.is_java))

    @cached_property
    def java(self) -> Catalog:
        return Catalog(tuple(plugin for plugin in self.plugins if plugin.is_java))

    def of_kind(self, *kinds: PluginKind) -> tuple[PluginDesc, ...]:
        """Return the plugins of some kinds, sorted by class name and version."""
        chosen = [plugin for plugin in self.plugins if plugin.kind in kinds]
        chosen.sort(key=lambda plugin: (plugin.class_name, Version(plugin.version or "")))
        return tuple(chosen)

    def listed(self, *, connectors_only: bool) -> tuple[PluginDesc, ...]:
        """Return the entries of ``GET /connector-plugins``, in its order, each version once."""
        kinds = LISTED_KINDS[:2] if connectors_only else LISTED_KINDS
        seen: dict[tuple[str, PluginKind, str | None], PluginDesc] = {}
        for kind in kinds:
            for plugin in self.of_kind(kind):
                seen.setdefault((plugin.class_name, plugin.kind, plugin.version), plugin)
        return tuple(seen.values())

    def find(self, name: str) -> tuple[PluginDesc, ...]:
        """Return every plugin with this full name or alias."""
        class_name = name if name in self._by_name else self._class_by_alias.get(name, "")
        return tuple(self._by_name.get(class_name, ()))

    def versions(self, name: str, *kinds: PluginKind) -> tuple[str, ...]:
        """Return the known versions of a plugin, latest last."""
        known = {
            plugin.version or UNDEFINED
            for plugin in self.find(name)
            if not kinds or plugin.kind in kinds
        }
        return tuple(sorted(known, key=Version))

    def plugin(self, name: str, *kinds: PluginKind, version_range: str | None = None) -> PluginDesc:
        """Return the latest matching version of a plugin of one of ``kinds`` (any if none given).

        If Java and Python both have it, `_of_one_side` decides. Raises
        PluginVersionNotFoundError, or PluginNotFoundError whose text is only ``name``.
        """
        found = [plugin for plugin in self.find(name) if not kinds or plugin.kind in kinds]
        if not found:
            raise PluginNotFoundError(name)
        wanted = VersionRange.parse(version_range) if version_range else None
        if wanted is not None:
            matching = [item for item in found if item.version and wanted.contains(item.version)]
            if not matching:
                known = sorted(self.find(name), key=_by_version)
                raise PluginVersionNotFoundError(
                    found[0].class_name, wanted, [item.version or UNDEFINED for item in known]
                )
            found = matching
        return max(_of_one_side(found), key=_by_version)

    def connector(self, name: str, *, version_range: str | None = None) -> PluginDesc:
        """Return a connector; errors carry Connect's texts for ``connector.class``."""
        kinds = (PluginKind.SINK, PluginKind.SOURCE, PluginKind.CONNECTOR)
        try:
            return self.plugin(name, *kinds, version_range=version_range)
        except PluginVersionNotFoundError:
            raise
        except PluginNotFoundError as error:
            connectors = self.of_kind(*kinds)
            matches = [item for item in connectors if name in item.aliases]
            if matches:
                raise PluginNotFoundError(
                    f"More than one connector matches alias {name}. Please use full package and "
                    f"class name instead. Classes found: {_descriptions(matches)}"
                ) from error
            raise PluginNotFoundError(
                "Failed to find any class that implements Connector and which name matches "
                f"{name}, available connectors are: {_descriptions(connectors)}"
            ) from error

    def connector_version(self, config: Mapping[str, str | None]) -> str | None:
        """Return the version of the plugin that a raw config selects; None if unknown."""
        name = config.get("connector.class")
        try:
            wanted = config.get("connector.plugin.version")
            return self.connector(name, version_range=wanted).version if name else None
        except PluginNotFoundError:
            return None


def _of_one_side(found: Sequence[PluginDesc]) -> Sequence[PluginDesc]:
    """Return the Java plugins if one is from `plugin.path`, otherwise the Python ones if any.

    The operator has put a jar on the path. A class in Kafka's own jars gives way to the Python one
    that stands in for it.
    """
    python = [plugin for plugin in found if not plugin.is_java]
    from_path = any(plugin.is_java and plugin.search_path is not None for plugin in found)
    if python and not from_path:
        return python
    return [plugin for plugin in found if plugin.is_java] or python


def _by_version(plugin: PluginDesc) -> tuple[Version, bool, str]:
    """Return Kafka Connect's sort key: the version, then Kafka's own last, then the location."""
    is_kafkas = plugin.is_java and plugin.search_path is None
    return Version(plugin.version or ""), is_kafkas, plugin.location if plugin.is_java else ""


def _descriptions(plugins: Iterable[PluginDesc]) -> str:
    return ", ".join(plugin.describe() for plugin in plugins)


CONNECT_VERSION = "4.3.1"
"""The default release."""
RELEASE_4_4 = "4.4.0"
RELEASES = (CONNECT_VERSION, RELEASE_4_4)
RELEASE_KEY = "agent.connect.release"


def spoken_release(properties: Mapping[str, str | None]) -> str:
    """Return the release in a worker's unchecked properties."""
    return (properties.get(RELEASE_KEY) or CONNECT_VERSION).strip()


class ApachesPlugin:
    """A plugin that stands in for a class of Apache's."""

    release = CONNECT_VERSION
    """The release of the worker, which sets it on each instance."""

    def version(self) -> str:
        return self.release
