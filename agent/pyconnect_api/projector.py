"""Projects a value from the schema of its writer to the schema of a reader.

Corresponds to `org.apache.kafka.connect.data.SchemaProjector`; sinks use it for
`schema.compatibility`. Raises SchemaProjectorException when the schemas are not compatible.
"""

from decimal import Decimal

from pyconnect_api.errors import DataException, SchemaProjectorException
from pyconnect_api.java_text import decimal_to_float32
from pyconnect_api.schema import Schema, Type
from pyconnect_api.struct import Struct
from pyconnect_api.validation import hashable_key

_PROMOTIONS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def project(source: Schema, value: object, target: Schema) -> object:
    """Return the value in the form of the target schema.

    Numbers may widen along INT8, INT16, INT32, INT64, FLOAT32, FLOAT64; names and parameters must
    be equal. Fields that only the source has are dropped; those that only the target has get their
    default or stay unset. None of an optional source becomes the default of a required target.
    """
    _check_compatible(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaProjectorException(
                "Writer schema is optional, however, target schema does not provide a default "
                "value."
            )
        return target.default if value is None else _projected(source, value, target)
    return None if value is None else _projected(source, value, target)


def _projected(source: Schema, value: object, target: Schema) -> object:
    match target.type:
        case Type.STRUCT:
            if not isinstance(value, Struct):
                raise _unfit(value, source)
            return _projected_struct(source, value, target)
        case Type.ARRAY:
            if not isinstance(value, list | tuple):
                raise _unfit(value, source)
            of_source, of_target = _parts(source.value_schema, target.value_schema)
            return [project(of_source, element, of_target) for element in value]
        case Type.MAP:
            if not isinstance(value, dict):
                raise _unfit(value, source)
            source_key, target_key = _parts(source.key_schema, target.key_schema)
            source_value, target_value = _parts(source.value_schema, target.value_schema)
            return {
                hashable_key(project(source_key, key, target_key)): project(
                    source_value, entry, target_value
                )
                for key, entry in value.items()
            }
    if source.type is target.type or not isinstance(value, int | float):
        return value
    if target.type is Type.FLOAT32:
        return decimal_to_float32(Decimal(value))
    return float(value) if target.type is Type.FLOAT64 else value


def _projected_struct(source: Schema, value: Struct, target: Schema) -> Struct:
    projected = Struct(target)
    for field in target.fields:
        source_field = source.field(field.name)
        if source_field is not None:
            member = value.get(field.name)
            try:
                projected.put(field, project(source_field.schema, member, field.schema))
            except DataException as exc:
                raise SchemaProjectorException(f"Error projecting {field.name}: {exc}") from exc
        elif field.schema.default is not None and not field.schema.optional:
            projected.put(field, field.schema.default)
        elif not field.schema.optional:
            raise SchemaProjectorException(
                f"Required field `{field.name}` is missing from source schema: {source}"
            )
    return projected


def _check_compatible(source: Schema, target: Schema) -> None:
    types = (source.type, target.type)
    is_promotable = all(each in _PROMOTIONS for each in types) and (
        _PROMOTIONS.index(source.type) <= _PROMOTIONS.index(target.type)
    )
    if source.type is not target.type and not is_promotable:
        raise SchemaProjectorException(
            f"Schema type mismatch. source type: {source.type} and target type: {target.type}"
        )
    if source.name != target.name:
        raise SchemaProjectorException(
            f"Schema name mismatch. source name: {source.name} and target name: {target.name}"
        )
    if source.parameters != target.parameters:
        raise SchemaProjectorException(
            "Schema parameters not equal. source parameters: "
            f"{_parameters_text(source)} and target parameters: {_parameters_text(target)}"
        )


def _parameters_text(schema: Schema) -> str:
    if schema.parameters is None:
        return "null"
    return f"{{{', '.join(f'{key}={value}' for key, value in schema.parameters.items())}}}"


def _parts(source: Schema | None, target: Schema | None) -> tuple[Schema, Schema]:
    if source is None or target is None:
        raise SchemaProjectorException("A schema without the schema of its elements fits nothing")
    return source, target


def _unfit(value: object, schema: Schema) -> SchemaProjectorException:
    return SchemaProjectorException(
        f"A value of class {type(value).__qualname__} does not fit its schema {schema}"
    )
