"""Import plugin classes (in child processes only), and list those of this distribution.

Kafka Connect isolates plugins by class loaders. Here each child process imports only from the
directories of the plugins that it uses, the connector's own first.

The list is metadata: none of the plugins is imported for it. Most also have the names of Java
classes.
"""

import importlib
import inspect
import sys
from types import ModuleType

from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, RELEASE_4_4, PluginDesc, PluginKind
from pyconnect_api.config_provider import ConfigProvider
from pyconnect_api.connector import Connector, SinkConnector, SourceConnector
from pyconnect_api.converter import Converter, HeaderConverter
from pyconnect_api.errors import ConnectException
from pyconnect_api.transform import Predicate, Transformation
from pyconnect_clients.installation import install_command, version

EXTRAS = {
    "pyconnect_connectors.sql": "sql",
    "pyconnect_connectors.lake": "lake",
    "pyconnect_agent.builtin.expressions": "expressions",
}
"""The extra that the plugins of a package or module need."""

_BUILTIN, _TESTKIT = "pyconnect_agent.builtin", "pyconnect_testkit"
_CONNECT = "org.apache.kafka.connect"
_STAND_INS = f"""
SOURCE {_CONNECT}.file.FileStreamSourceConnector {_BUILTIN}.connectors.file_stream
SINK {_CONNECT}.file.FileStreamSinkConnector {_BUILTIN}.connectors.file_stream
CONVERTER,HEADER_CONVERTER {_CONNECT}.json.JsonConverter {_BUILTIN}.converters.json
CONVERTER,HEADER_CONVERTER {_CONNECT}.storage.StringConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.ByteArrayConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.BooleanConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.ShortConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.IntegerConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.LongConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.FloatConverter {_BUILTIN}.converters.base
CONVERTER,HEADER_CONVERTER {_CONNECT}.converters.DoubleConverter {_BUILTIN}.converters.base
HEADER_CONVERTER {_CONNECT}.storage.SimpleHeaderConverter {_BUILTIN}.converters.base
CONVERTER io.confluent.connect.avro.AvroConverter {_BUILTIN}.converters.avro.converter
CONVERTER io.confluent.connect.json.JsonSchemaConverter {_BUILTIN}.converters.registry_json
CONVERTER io.confluent.connect.protobuf.ProtobufConverter {_BUILTIN}.converters.protobuf.converter
TRANSFORMATION {_CONNECT}.transforms.Cast$ {_BUILTIN}.transforms.cast
TRANSFORMATION {_CONNECT}.transforms.ExtractField$ {_BUILTIN}.transforms.fields
TRANSFORMATION {_CONNECT}.transforms.Flatten$ {_BUILTIN}.transforms.flatten
TRANSFORMATION {_CONNECT}.transforms.HeaderFrom$ {_BUILTIN}.transforms.headers
TRANSFORMATION {_CONNECT}.transforms.HoistField$ {_BUILTIN}.transforms.fields
TRANSFORMATION {_CONNECT}.transforms.InsertField$ {_BUILTIN}.transforms.insert_field
TRANSFORMATION {_CONNECT}.transforms.MaskField$ {_BUILTIN}.transforms.mask_field
TRANSFORMATION {_CONNECT}.transforms.ReplaceField$ {_BUILTIN}.transforms.replace_field
TRANSFORMATION {_CONNECT}.transforms.SetSchemaMetadata$ {_BUILTIN}.transforms.set_schema_metadata
TRANSFORMATION {_CONNECT}.transforms.TimestampConverter$ {_BUILTIN}.transforms.timestamp_converter
TRANSFORMATION {_CONNECT}.transforms.DropHeaders {_BUILTIN}.transforms.headers
TRANSFORMATION {_CONNECT}.transforms.Filter {_BUILTIN}.transforms.routers
TRANSFORMATION {_CONNECT}.transforms.InsertHeader {_BUILTIN}.transforms.headers
TRANSFORMATION {_CONNECT}.transforms.RegexRouter {_BUILTIN}.transforms.routers
TRANSFORMATION {_CONNECT}.transforms.TimestampRouter {_BUILTIN}.transforms.routers
TRANSFORMATION {_CONNECT}.transforms.ValueToKey {_BUILTIN}.transforms.fields
PREDICATE {_CONNECT}.transforms.predicates.HasHeaderKey {_BUILTIN}.predicates
PREDICATE {_CONNECT}.transforms.predicates.RecordIsTombstone {_BUILTIN}.predicates
PREDICATE {_CONNECT}.transforms.predicates.TopicNameMatches {_BUILTIN}.predicates
CONFIG_PROVIDER org.apache.kafka.common.config.provider.FileConfigProvider {_BUILTIN}.config_providers
CONFIG_PROVIDER org.apache.kafka.common.config.provider.DirectoryConfigProvider {_BUILTIN}.config_providers
CONFIG_PROVIDER org.apache.kafka.common.config.provider.EnvVarConfigProvider {_BUILTIN}.config_providers
SOURCE {_TESTKIT}.datagen.connector.DatagenSourceConnector {_TESTKIT}.datagen.connector
"""  # noqa: E501  a plugin, one line
"""Kinds, Java's name, module. A `$` at the end: one class for keys, one for values."""

_IN_4_4 = {"ValueToKey": "NestedValueToKey"}
"""Classes with a different module in Kafka 4.4."""
_OTHER_NAMES = {
    f"{_TESTKIT}.datagen.connector.DatagenSourceConnector": (
        "Datagen",
        "DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
    )
}
"""Further aliases: names of Confluent's connectors that these classes replace."""
_OWN = (
    ("SqlSourceConnector", "pyconnect_connectors.sql.source", PluginKind.SOURCE),
    ("SqlSinkConnector", "pyconnect_connectors.sql.sink", PluginKind.SINK),
    ("LakeSourceConnector", "pyconnect_connectors.lake.source", PluginKind.SOURCE),
    ("LakeSinkConnector", "pyconnect_connectors.lake.sink", PluginKind.SINK),
    ("Expression", f"{_BUILTIN}.expressions", PluginKind.TRANSFORMATION),
    ("ExpressionHolds", f"{_BUILTIN}.expressions", PluginKind.PREDICATE),
)


def builtin_plugins(release: str = CONNECT_VERSION) -> tuple[PluginDesc, ...]:
    """Return the plugins that ship with the worker; `release`: that of Kafka Connect."""
    replaced = _IN_4_4 if release == RELEASE_4_4 else {}
    found = []
    for line in _STAND_INS.strip().splitlines():
        kinds, name, module = line.split()
        for java_name in (f"{name}Key", f"{name}Value") if name.endswith("$") else (name,):
            class_name = java_name.rpartition(".")[2].replace("$", "")
            found += [
                PluginDesc(
                    class_name=java_name,
                    python_path=f"{module}:{replaced.get(class_name, class_name)}",
                    kind=PluginKind[kind],
                    version=release,
                    # The name of `CastValue` beside `Cast$Value`, of which Connect knows only the
                    # full name.
                    extra_aliases=(class_name, *_OTHER_NAMES.get(java_name, ())),
                )
                for kind in kinds.split(",")
            ]
    found += [
        PluginDesc(
            class_name=f"{module}.{name}",
            python_path=f"{module}:{name}",
            kind=kind,
            version=version(),
        )
        for name, module, kind in _OWN
    ]
    return tuple(found)


BASE_CLASSES: dict[PluginKind, type] = {
    PluginKind.SINK: SinkConnector,
    PluginKind.SOURCE: SourceConnector,
    PluginKind.CONNECTOR: Connector,
    PluginKind.CONVERTER: Converter,
    PluginKind.HEADER_CONVERTER: HeaderConverter,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
    PluginKind.CONFIG_PROVIDER: ConfigProvider,
}


def load(plugin: PluginDesc) -> type:
    """Return the class of ``plugin``; its directory joins ``sys.path`` for good.

    Raises ConnectException if it cannot be imported or is not of its kind.
    """
    if plugin.search_path is not None:
        activate(plugin.search_path)
    loaded = import_class(plugin.python_path)
    base = BASE_CLASSES.get(plugin.kind)
    if base is not None and not issubclass(loaded, base):
        raise ConnectException(
            f"Class {plugin.class_name} does not implement the {base.__name__} interface"
        )
    return loaded


def activate(directory: str) -> None:
    """Let this process import from a plugin directory.

    The first activated directory is the connector's and is searched before all others; later ones
    come after it and before the worker's own libraries.
    """
    if directory in sys.path:
        return
    sys.path.insert(len(_activated), directory)
    _activated.append(directory)
    importlib.invalidate_caches()


_activated: list[str] = []
"""The activated directories; only :func:`activate` adds to them, and none is removed."""


NEEDS_EXTRA = "install the extra `"


def import_class(path: str) -> type:
    """Return the class of ``module:Class`` or ``module.Class``; raises ConnectException.

    Nested classes are named ``module:Outer.Inner``.
    """
    module_name, colon, class_name = path.partition(":")
    if not colon:
        module_name, _, class_name = path.rpartition(".")
    found: object = import_plugin_module(module_name)
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if not inspect.isclass(found):
        raise ConnectException(f"There is no class {path}")
    return found


def import_plugin_module(name: str) -> ModuleType:
    """Return the module; raises ConnectException with the cause when importing it fails."""
    try:
        return importlib.import_module(name)
    # The import runs the plugin's code, which may raise any exception.
    except Exception as error:
        extra = EXTRAS.get(name) or EXTRAS.get(name.rpartition(".")[0])
        if extra is not None and isinstance(error, ModuleNotFoundError):
            raise ConnectException(
                f"{name} needs {error.name}, which is not installed; "
                f"{NEEDS_EXTRA}{extra}`: {install_command(extra)}"
            ) from error
        raise ConnectException(
            f"Failed to load plugin module {name} or one of its dependencies: "
            f"{type(error).__name__}: {error}"
        ) from error


def instantiate(plugin_class: type) -> object:
    """Return a new instance; raises ConnectException when the class cannot be constructed."""
    try:
        return plugin_class()
    # The constructor is the plugin's code, which may raise any exception.
    except Exception as error:
        raise ConnectException(
            f"Could not construct {plugin_class.__module__}.{plugin_class.__qualname__}: "
            f"{type(error).__name__}: {error}"
        ) from error
