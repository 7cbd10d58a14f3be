"""The plugins of this distribution, most of them under the names of Java classes.

Layer: plugins. Metadata only: nothing listed here is imported.
"""

from __future__ import annotations

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_agent.core.plugins.catalog import PluginDesc, PluginKind
from pyconnect_clients.installation import version

EXTRAS = {"pyconnect_connectors.sql": "sql", "pyconnect_connectors.lake": "lake"}
"""The extra that the plugins of a package need."""

_CONNECTORS = (
    ("SqlSource", "pyconnect_connectors.sql.source", PluginKind.SOURCE),
    ("SqlSink", "pyconnect_connectors.sql.sink", PluginKind.SINK),
    ("LakeSource", "pyconnect_connectors.lake.source", PluginKind.SOURCE),
    ("LakeSink", "pyconnect_connectors.lake.sink", PluginKind.SINK),
)
_BUILTIN = "pyconnect_agent.builtin"
_TESTKIT = "pyconnect_testkit"
_CONNECT = "org.apache.kafka.connect"
_BOTH_CONVERTERS = (PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER)
_NUMBERS = ("Boolean", "Short", "Integer", "Long", "Float", "Double")
_OF_KEY_OR_VALUE = (
    ("Cast", "cast"),
    ("ExtractField", "extract_field"),
    ("Flatten", "flatten"),
    ("HeaderFrom", "header_from"),
    ("HoistField", "hoist_field"),
    ("InsertField", "insert_field"),
    ("MaskField", "mask_field"),
    ("ReplaceField", "replace_field"),
    ("SetSchemaMetadata", "set_schema_metadata"),
    ("TimestampConverter", "timestamp_converter"),
)
_OF_RECORDS = (
    ("DropHeaders", "drop_headers"),
    ("Filter", "filter"),
    ("InsertHeader", "insert_header"),
    ("RegexRouter", "regex_router"),
    ("TimestampRouter", "timestamp_router"),
    ("ValueToKey", "value_to_key"),
)
_PREDICATES = (
    ("HasHeaderKey", "has_header_key"),
    ("RecordIsTombstone", "record_is_tombstone"),
    ("TopicNameMatches", "topic_name_matches"),
)

_DATAGEN = f"{_TESTKIT}.datagen.connector.DatagenSourceConnector"
_OTHER_NAMES = {
    _DATAGEN: (
        "Datagen",
        "DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
    ),
}
"""Further aliases: names of Confluent's connectors that these classes replace."""
_WITH_REGISTRY = (
    ("avro.AvroConverter", "avro.converter:AvroConverter"),
    ("json.JsonSchemaConverter", "registry_json.converter:JsonSchemaConverter"),
    ("protobuf.ProtobufConverter", "protobuf.converter:ProtobufConverter"),
)

_TABLE: tuple[tuple[str, str, tuple[PluginKind, ...]], ...] = (
    (
        f"{_CONNECT}.file.FileStreamSourceConnector",
        "connectors.file_stream:FileStreamSourceConnector",
        (PluginKind.SOURCE,),
    ),
    (
        f"{_CONNECT}.file.FileStreamSinkConnector",
        "connectors.file_stream:FileStreamSinkConnector",
        (PluginKind.SINK,),
    ),
    (f"{_CONNECT}.json.JsonConverter", "converters.json:JsonConverter", _BOTH_CONVERTERS),
    (
        f"{_CONNECT}.storage.StringConverter",
        "converters.string:StringConverter",
        _BOTH_CONVERTERS,
    ),
    (
        f"{_CONNECT}.converters.ByteArrayConverter",
        "converters.byte_array:ByteArrayConverter",
        _BOTH_CONVERTERS,
    ),
    *(
        (
            f"{_CONNECT}.converters.{name}Converter",
            f"converters.numbers:{name}Converter",
            _BOTH_CONVERTERS,
        )
        for name in _NUMBERS
    ),
    (
        f"{_CONNECT}.storage.SimpleHeaderConverter",
        "converters.simple_header:SimpleHeaderConverter",
        (PluginKind.HEADER_CONVERTER,),
    ),
    *(
        (f"io.confluent.connect.{name}", f"converters.{path}", (PluginKind.CONVERTER,))
        for name, path in _WITH_REGISTRY
    ),
    *(
        (
            f"{_CONNECT}.transforms.{name}${side}",
            f"transforms.{module}:{name}{side}",
            (PluginKind.TRANSFORMATION,),
        )
        for name, module in _OF_KEY_OR_VALUE
        for side in ("Key", "Value")
    ),
    *(
        (
            f"{_CONNECT}.transforms.{name}",
            f"transforms.{module}:{name}",
            (PluginKind.TRANSFORMATION,),
        )
        for name, module in _OF_RECORDS
    ),
    *(
        (
            f"{_CONNECT}.transforms.predicates.{name}",
            f"predicates.{module}:{name}",
            (PluginKind.PREDICATE,),
        )
        for name, module in _PREDICATES
    ),
    *(
        (
            f"org.apache.kafka.common.config.provider.{name}ConfigProvider",
            f"config_providers.{module}:{name}ConfigProvider",
            (PluginKind.CONFIG_PROVIDER,),
        )
        for name, module in (("File", "file"), ("Directory", "directory"), ("EnvVar", "env_var"))
    ),
)

_TESTKIT_TABLE = ((_DATAGEN, "datagen.connector:DatagenSourceConnector", (PluginKind.SOURCE,)),)


def builtin_plugins() -> tuple[PluginDesc, ...]:
    """Return the plugins that ship with the worker."""
    stand_ins = (
        PluginDesc(
            class_name=java_name,
            python_path=f"{package}.{path}",
            kind=kind,
            version=CONNECT_VERSION,
            # `CastValue` beside `Cast$Value`, of which Connect knows the full name only.
            extra_aliases=(path.partition(":")[2], *_OTHER_NAMES.get(java_name, ())),
        )
        for package, table in ((_BUILTIN, _TABLE), (_TESTKIT, _TESTKIT_TABLE))
        for java_name, path, kinds in table
        for kind in kinds
    )
    own = (
        PluginDesc(
            class_name=f"{module}.{name}Connector",
            python_path=f"{module}:{name}Connector",
            kind=kind,
            version=version(),
        )
        for name, module, kind in _CONNECTORS
    )
    return (*stand_ins, *own)
