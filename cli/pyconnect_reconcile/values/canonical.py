r"""The canonical form of values, as columns of Spark: type and value, nothing rounded or converted.

A value is a *token*, a text. Two values are equal if and only if their tokens are:

    null       null
    text       the text; `MARK s TEXT` where the text begins as another token does
    number     `MARK DIGITS`: the exact decimal, `100` and `0.5`, beyond 1,000 places `1E2000`
               also `NaN`, `Infinity` and `-Infinity`
    boolean    `MARK t`, `MARK f`
    instant    `MARK i MICROS` since the epoch
    date, time `MARK d DAYS` since the epoch, `MARK c MICROS` since midnight
    bytes      `MARK b HEX`
    array, object   `MARK j JSON`: members sorted, leaves as tokens

JSON texts are not parsed for that: one regular expression that steps over the strings of a text
turns numbers and booleans into marked strings. Parsers then lose nothing: every leaf is a string.
The tests hold a reference in plain Python against this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyconnect_reconcile.data_sides import MARK
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.values.releases import canonical_json, is_utf8, member_of_first

HASHES = ("first", "second")
"""A row as two 64-bit hashes, which pass through exchanges in place of payloads; `first` alone
buckets rows. Together they have 128 bits, so that different rows do not look equal.
"""
SEEDS = (17, 7_046_029_254_386_353_131)
INTEGRAL: Mapping[str, int] = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_ESCAPED = "\\u0001"
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_END = r"(?=[\s,\]}]|\z)"
_LEAF = (
    r"(?s)\G((?:[^\"\-0-9tfNI]++|" + _STRING + r")*+)"
    r"(?:(-?(?:0|[1-9][0-9]*+))(?:(\.[0-9]*[1-9])0*+|\.0++)?|(?:(t)rue|(f)alse)"
    r"|(NaN|-?Infinity))" + _END
)
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?$"
_WITH_EXPONENT = r"[0-9][eE][+-]?[0-9]+\s*(?:[,\]}]|\z)"
_TOKENS = r"(?s)" + _STRING + r"|[^\"0-9\-]++|-?[0-9][0-9.eE+\-]*+|-"
_LONE_SURROGATE = (
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_NULL_MEMBER = r"(?s)\G((?:[^\"n]++|null|" + _STRING + r"(?!:null[,}]))*+)" + _STRING + ":null,?"
_LAST_COMMA = r"(?s)\G((?:[^\",]++|" + _STRING + r"|,(?!\}))*+),(?=\})"
_TEXT_AS_OTHERS = r'(?<!\\)"(?=[\[{]|\\u00(?:01|5[bB]|7[bB]))'
_ENDLESS = r"[eE][+-]?[0-9]{10,}\s*(?:[,\]}]|\z)"
_PLACES = 1000
_END_MARK = f'"{_ESCAPED}end"'


def number_text(text: Column) -> Column:
    """Return the exact decimal of a number's text, which may have an exponent."""
    plain = sql.when(text.contains("."), _trimmed("rtrim", ".", _trimmed("rtrim", "0", text)))
    return (
        sql.when(text.rlike("[eE][+-]?[0-9]") | (sql.length(text) >= _PLACES), _expanded(text))
        .when(text.rlike("^-0(?:[.]0*)?$"), "0")
        .otherwise(sql.coalesce(plain, text))
    )


def _trimmed(function: str, character: str, text: Column) -> Column:
    return sql.call_function(function, sql.lit(character), text)


def _expanded(text: Column) -> Column:
    whole = sql.regexp_extract(text, "^-?([0-9]+)", 1)
    fraction = sql.regexp_extract(text, "[.]([0-9]+)", 1)
    exponent = sql.regexp_extract(text, "[eE]([+-]?[0-9]+)$", 1).cast("bigint")
    kept = _trimmed("rtrim", "0", sql.concat(whole, fraction))
    places = sql.coalesce(exponent, sql.lit(0)) + sql.length(whole) - sql.length(kept)
    # Sign, digits without zeros at the ends, exponent of the last.
    parts = sql.struct(
        sql.when(text.startswith("-"), "-").otherwise("").alias("sign"),
        _trimmed("ltrim", "0", kept).alias("digits"),
        places.cast("int").alias("exponent"),
    )

    def written(number: Column) -> Column:
        sign, digits, exponent = number["sign"], number["digits"], number["exponent"]
        point = sql.length(digits) + exponent
        before = sql.concat(sign, sql.left(digits, point), sql.lit("."))
        return (
            sql.when(digits == "", "0")
            .when(exponent.between(0, _PLACES), sql.concat(sign, digits, _zeros(exponent)))
            .when(~exponent.between(-_PLACES, -1), sql.concat(sign, digits, sql.lit("E"), exponent))
            .when(point > 0, sql.concat(before, sql.right(digits, -exponent)))
            .otherwise(sql.concat(sign, sql.lit("0."), _zeros(-point), digits))
        )

    return once(parts, written)


def once(value: Column, step: Step) -> Column:
    """Return the result of a step for a value that is computed once, however often it is used."""
    return sql.transform(sql.array(value), step)[0]


def _zeros(count: Column) -> Column:
    return sql.call_function("repeat", sql.lit("0"), count)


def with_marked(frame: DataFrame, text: Column, name: str) -> DataFrame:
    """Return the frame with JSON texts whose leaves are tokens; null where that is not possible.

    Parsers do not keep lone surrogates, bytes that are not UTF-8, and exponents of more than nine
    digits: such texts are null. A text that is not JSON does not become JSON.
    """
    return with_steps(frame, [name], [text.cast("string")], [_STEPS])


def _escaped(raw: Column) -> Column:
    begins = raw.contains('"{') | raw.contains('"[') | raw.contains('"\\u00')
    escaped = sql.regexp_replace(raw, _TEXT_AS_OTHERS, r'"\\u0001s')
    lone = raw.contains(r"\u") & raw.rlike(_LONE_SURROGATE)
    return sql.when(lone, None).when(begins, escaped).otherwise(raw)


def _rare_numbers(raw: Column) -> Column:
    long = (sql.length(raw) >= _PLACES - 1) & raw.rlike(f"[0-9]{{{_PLACES - 1}}}")

    def spelt_part(part: Column) -> Column:
        quoted = sql.concat(sql.lit(f'"{_ESCAPED}'), _expanded(part), sql.lit('"'))
        return sql.when(part.rlike(_NUMBER), quoted).otherwise(part)

    tokens = sql.regexp_extract_all(raw, sql.lit(_TOKENS), sql.lit(0))
    spelt = sql.array_join(sql.transform(tokens, spelt_part), "")
    return sql.when(raw.rlike(_WITH_EXPONENT) | long, spelt).otherwise(raw)


def _leaves(raw: Column) -> Column:
    marked = sql.regexp_replace(raw, _LEAF, r'$1"\\u0001$2$3$4$5$6"')
    return sql.replace(marked, sql.lit(_quoted("-0")), sql.lit(_quoted("0")))


def _readable(raw: Column) -> Column:
    # Spark's texts may hold any bytes; those that are not UTF-8 are this character by now.
    return sql.when(~(raw.contains("\ufffd") | raw.rlike(_ENDLESS)), raw)


_STEPS = (_escaped, _rare_numbers, _leaves, _readable)


def _quoted(token: str) -> str:
    return f'"{_ESCAPED}{token}"'


def document(marked: Column, member: str = "") -> Column:
    """Return the canonical JSON of a marked text, or of a member of it; null if it is not JSON."""
    # Spark ignores what follows a value: the parse must reach the mark behind the text.
    listed = sql.concat(sql.lit("["), marked, sql.lit(f",{_END_MARK}]"))
    whole = canonical_json(listed)
    found = whole
    if member:
        inner = member_of_first(listed, member)
        found = sql.concat(sql.lit("["), inner, sql.lit(f",{_END_MARK}]"))
    return sql.when(whole.endswith(f",{_END_MARK}]"), found)


def typed_document(column: Column, kind: DataType) -> Column:
    """Return the canonical JSON of a column of a type, in the form of `document`."""
    listed = sql.to_json(sql.array(_with_tokens(column, kind)), {"ignoreNullFields": "false"})

    def ended(listed: Column) -> Column:
        open_list = listed.substr(sql.lit(1), sql.length(listed) - 1)
        return sql.concat(open_list, sql.lit(f",{_END_MARK}]"))

    return canonical_json(once(listed, ended))


def without_nulls(text: Column) -> Column:
    """Return canonical JSON without null members: structs cannot distinguish null from absent."""
    fewer = sql.regexp_replace(text, _NULL_MEMBER, "$1")
    fewer = sql.regexp_replace(fewer, _LAST_COMMA, "$1")
    return sql.when(text.contains(":null"), fewer).otherwise(text)


def nested(text: Column) -> Column:
    """Return the token of an array or object whose leaves are tokens.

    A text that Spark does not parse, such as one with a repeated member, is not changed.
    """
    found = sql.coalesce(canonical_json(text), text)
    return sql.concat(sql.lit(f"{MARK}j"), found)


def _marked(text: Column) -> Column:
    """Return the result of `with_marked` for a text that is not a column of a frame."""
    for step in _STEPS:
        text = once(text, step)
    return text


def nested_text(text: Column) -> Column:
    """Return the token of a column that has nested JSON as a text."""
    marked = _marked(text)
    is_json = text.rlike(r"^\s*[\[{]") & document(marked).isNotNull()
    return sql.when(is_json, nested(marked)).otherwise(text_token(text))


def json_text(text: Column) -> Column:
    """Return the token of the value of a JSON text; JSON's null differs from SQL's null.

    A text that is not JSON is a text.
    """
    marked = _marked(text)
    whole = sql.when(document(marked).isNotNull(), marked)
    found = sql.when(text.rlike(r"^\s*[\[{]"), nested(whole)).otherwise(
        sql.get_json_object(whole, "$")
    )
    null = sql.when(sql.trim(text) == "null", f"{MARK}jnull")
    return sql.coalesce(null, found, text_token(text))


Step = Callable[[Column], Column]


def with_steps(
    frame: DataFrame, names: Sequence[str], found: Sequence[Column], steps: Sequence[Sequence[Step]]
) -> DataFrame:
    """Return the frame with columns of these names, each after its steps.

    Each step is a column of its own, as Spark computes an expression again wherever it is used. A
    filter must not be pushed below the last step: Spark would copy the expressions of all steps
    into it, and the plan would take minutes. Spark pushes no filter below a partition id.
    """
    frame = frame.withColumns(dict(zip(names, found, strict=True)))
    for number in range(max(map(len, steps), default=0)):
        frame = frame.withColumns(
            {
                name: each[number](sql.col(name))
                for name, each in zip(names, steps, strict=True)
                if number < len(each)
            }
        )
    return frame.withColumns(
        {name: sql.when(sql.spark_partition_id() >= 0, sql.col(name)) for name in names}
    )


def token_names(count: int) -> list[str]:
    """Return the names of the columns with the tokens of `count` compared columns."""
    return [f"pyconnect_token_{number}" for number in range(count)]


def token(column: Column, kind: DataType) -> Column:
    """Return the token of a column of a type; ReconcileError for a type without tokens."""
    found, steps = token_steps(column, kind)
    for step in steps:
        found = step(found)
    return found


def token_steps(column: Column, kind: DataType) -> tuple[Column, list[Step]]:
    """Return a column, and the steps that make it the token of a column of this type."""
    if isinstance(kind, StructType | ArrayType | MapType):
        shown = sql.to_json(_with_tokens(column, kind), {"ignoreNullFields": "false"})
        text = sql.when(column.isNotNull(), shown)
        return text, [nested]
    text = column.cast("string")
    match kind:
        case StringType():
            return text, [text_token]
        case DecimalType():
            return text, [number_token]
        case FloatType() | DoubleType():
            return text, [partial(shortest, kind.simpleString()), number_token]
        case BooleanType():
            return sql.when(column, f"{MARK}t").when(~column, f"{MARK}f"), []
        case ByteType() | ShortType() | IntegerType() | LongType():
            return sql.concat(sql.lit(MARK), text), []
        case TimestampType() | TimestampNTZType():
            moment = column
            if isinstance(kind, TimestampNTZType):
                moment = sql.to_utc_timestamp(column.cast("timestamp"), "UTC")
            micros = sql.unix_micros(moment).cast("string")
            return sql.concat(sql.lit(f"{MARK}i"), micros), []
        case NullType():
            return sql.lit(None).cast("string"), []
        case DateType():
            return sql.concat(sql.lit(f"{MARK}d"), sql.unix_date(column).cast("string")), []
        case BinaryType():
            return sql.concat(sql.lit(f"{MARK}b"), sql.hex(column)), []
    raise ReconcileError(
        f"columns of type {kind.simpleString()} cannot be compared",
        hint="name the columns that are compared: --column NAME",
    )


def text_token(text: Column) -> Column:
    marked = text.substr(1, 1).isin("{", "[", MARK)
    return sql.when(marked, sql.concat(sql.lit(f"{MARK}s"), text)).otherwise(text)


def number_token(text: Column) -> Column:
    """Return the token of the text of a number."""
    return sql.concat(sql.lit(MARK), number_text(text))


def shortest(kind: str, text: Column) -> Column:
    """Return the text of a float or a double with only the digits that it needs.

    Java before version 19 writes more digits, also where one digit is enough.
    """
    held = text.cast(kind)
    longest, form = (18, "%.15e") if kind == "double" else (10, "%.7e")
    shorter, one = sql.format_string(form, held), sql.format_string("%.0e", held)
    needless = (sql.length(text) >= longest) & (shorter.cast(kind) == held)
    least = (sql.length(text) >= longest) | text.rlike("E-(32|4)[0-9]$")
    least = least & (one.cast(kind) == held)
    return sql.when(least, one).when(needless, shorter).otherwise(text)


def _with_tokens(column: Column, kind: DataType) -> Column:
    """Return a nested column with tokens in place of its leaves, which `to_json` keeps."""
    match kind:
        case StructType():
            fields = [
                _with_tokens(column[field.name], field.dataType).alias(field.name) for field in kind
            ]
            return sql.when(column.isNotNull(), sql.struct(*fields))
        case ArrayType():
            return sql.transform(column, lambda each: _with_tokens(each, kind.elementType))
        case MapType():
            named = sql.transform(
                sql.map_entries(column),
                lambda each: sql.struct(
                    _nested_text(each["key"].cast("string")).alias("key"),
                    _with_tokens(each["value"], kind.valueType).alias("value"),
                ),
            )
            return sql.map_from_entries(named)
        case StringType():
            return _nested_text(column)
    return token(column, kind)


def _nested_text(text: Column) -> Column:
    """Return the token of a text; JSON has one character for all bytes that are not UTF-8."""
    raw = sql.concat(sql.lit(f"{MARK}b"), sql.hex(text.cast("binary")))
    return sql.when(is_utf8(text), text_token(text)).otherwise(raw)


def member_name(name: str) -> str:
    """Return the name of a member in a marked text."""
    return f"{MARK}s{name}" if name[:1] in {"{", "[", MARK} and name else name


def hashes(columns: Sequence[Column]) -> list[Column]:
    """Return the two hashes of a row's columns, xxHash64 with two seeds; null and empty differ."""
    parts = [part for column in columns for part in (column.isNull(), column)]
    return [
        # The seed of Spark's xxhash64 is fixed; a literal in front stands for another.
        sql.xxhash64(sql.lit(seed), *parts).alias(name)
        for seed, name in zip(SEEDS, HASHES, strict=True)
    ]
