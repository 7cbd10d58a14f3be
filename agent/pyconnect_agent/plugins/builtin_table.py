"""The plugins of this distribution, most of them under the names of Java classes.

Layer: plugins. Metadata only: nothing listed here is imported.
"""

from __future__ import annotations

from pyconnect_agent.core.apache_release import CONNECT_VERSION, RELEASE_4_4
from pyconnect_agent.core.plugins.catalog import PluginDesc, PluginKind
from pyconnect_clients.installation import version

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
CONVERTER io.confluent.connect.json.JsonSchemaConverter {_BUILTIN}.converters.registry_json.converter
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
"""Classes that have another one in Kafka 4.4."""
_OTHER_NAMES = {
    f"{_TESTKIT}.datagen.connector.DatagenSourceConnector": (
        "Datagen",
        "DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
    ),
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
                    # `CastValue` beside `Cast$Value`, of which Connect knows the full name only.
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
