"""A `PluginSource` over a table of classes, and a few classes to put into it."""

import re
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.config.plugin_source import PluginClass
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind
from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConfigType,
    Connector,
    ConnectRecord,
    Importance,
    LambdaValidator,
    NonNullValidator,
    Predicate,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    Transformation,
)


class HoistField(Transformation[ConnectRecord]):
    """A transformation with Apache's settings that does nothing."""

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record

    def config(self) -> ConfigDef:
        return ConfigDef().define("field", ConfigType.STRING)


class InsertHeader(HoistField):
    """A transformation with Apache's settings that does nothing."""

    def config(self) -> ConfigDef:
        definition = ConfigDef()
        for name in ("header", "value.literal"):
            definition.define(
                name, ConfigType.STRING, validator=NonNullValidator(), importance=Importance.HIGH
            )
        return definition


class TopicNameMatches(Predicate[ConnectRecord]):
    """A predicate with Apache's settings that never holds."""

    def test(self, record: ConnectRecord) -> bool:
        return False

    def config(self) -> ConfigDef:
        return ConfigDef().define(
            "pattern", ConfigType.STRING, validator=LambdaValidator(_check_pattern, "pattern")
        )


def _check_pattern(name: str, value: object) -> None:
    try:
        re.compile(str(value))
    except re.error as error:
        raise ConfigException(f"{name}: {error}") from error


class _TestConnector(Connector):
    def start(self, props: Mapping[str, str]) -> None: ...

    def stop(self) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{}]

    def config(self) -> ConfigDef:
        return ConfigDef().define("secret", ConfigType.PASSWORD, default=None)

    def version(self) -> str:
        return "1.0"


class PlainSource(_TestConnector, SourceConnector):
    """A source connector that overrides no optional method."""

    def task_class(self) -> type[SourceTask]:
        return SourceTask


class PlainSink(_TestConnector, SinkConnector):
    """A sink connector that overrides no optional method."""

    def task_class(self) -> type[SinkTask]:
        return SinkTask


class TablePluginSource:
    """Plugins given as ``(name, kind, class)``, all of one version."""

    def __init__(
        self, table: Sequence[tuple[str, PluginKind, type]], version: str = "4.3.1"
    ) -> None:
        self._classes = {name: loaded for name, _, loaded in table}
        self._catalog = Catalog(
            tuple(
                PluginDesc(class_name=name, python_path=f"table:{name}", kind=kind, version=version)
                for name, kind, _ in table
            )
        )

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        return self._loaded(self._catalog.connector(name, version_range=version_range))

    def plugin(self, name: str, kind: PluginKind, version_range: str | None = None) -> PluginClass:
        return self._loaded(self._catalog.plugin(name, kind, version_range=version_range))

    def find(self, name: str) -> PluginClass:
        return self._loaded(self._catalog.plugin(name))

    def class_names(self, kind: PluginKind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(desc.class_name for desc in self._catalog.of_kind(kind)))

    def versions(self, name: str, kind: PluginKind) -> tuple[str, ...]:
        if kind is PluginKind.CONNECTOR:
            return self._catalog.versions(name, PluginKind.SOURCE, PluginKind.SINK)
        return self._catalog.versions(name, kind)

    def _loaded(self, desc: PluginDesc) -> PluginClass:
        return PluginClass(desc.class_name, self._classes[desc.class_name], desc.version)
