"""How Jackson binds a document, and what it says when it cannot.

Layer: rest, pure. Shared by the bindings of request bodies; every failure is a `BodyError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyconnect_agent.rest.json_reader import BodyError, JsonReader, Token

Bound = TypeVar("Bound")

_KINDS = {
    Token.START_OBJECT: "Object value",
    Token.START_ARRAY: "Array value",
    Token.STRING: "String value",
    Token.INTEGER: "Integer value",
    Token.FLOAT: "Floating-point value",
    Token.TRUE: "Boolean value",
    Token.FALSE: "Boolean value",
}
SCALARS = frozenset({Token.STRING, Token.INTEGER, Token.FLOAT, Token.TRUE, Token.FALSE})


def bind_document(
    body: bytes, bind: Callable[[JsonReader, Token], Bound], *, bound_as: str
) -> Bound | None:
    """Bind the one value of a document; an empty one and null are None."""
    reader = JsonReader(body)
    token = reader.next()
    if token is Token.END_OF_INPUT:
        return None
    bound = None if token is Token.NULL else bind(reader, token)
    following = reader.next()
    if following is not Token.END_OF_INPUT:
        raise reader.error(
            f"Trailing token (of type {following.value}) found after value (bound as "
            f"`{bound_as}`): not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`"
        )
    return bound


def not_an_object(reader: JsonReader, token: Token, java_class: str) -> BodyError:
    """Return what another value than an object is, where `java_class` is to be made of it."""
    match token:
        case Token.STRING:
            return no_string_constructor(reader, java_class, f"`{java_class}` value")
        case Token.TRUE | Token.FALSE:
            argument, value = "boolean/Boolean", f"boolean value ({reader.text})"
        case Token.INTEGER:
            argument, value = "int/Int", f"Number value ({reader.text})"
        case Token.FLOAT:
            argument, value = "double/Double", f"Number value ({reader.text})"
        case _:
            return cannot_deserialize(reader, token, java_class)
    return reader.error(
        f"Cannot construct instance of `{java_class}` (although at least one Creator exists): no "
        f"{argument}-argument constructor/factory method to deserialize from {value}"
    )


def unknown_member(
    reader: JsonReader, member: str, java_class: str, known: Sequence[str], position: int
) -> BodyError:
    """Return that an object for `java_class` has a member it does not know."""
    count = "one known property" if len(known) == 1 else f"{len(known)} known properties"
    names = ", ".join(f'"{name}"' for name in known)
    return reader.error(
        f'Unrecognized field "{member}" (class {java_class}), not marked as ignorable '
        f"({count}: {names})",
        position,
    )


def cannot_deserialize(reader: JsonReader, token: Token, java_type: str) -> BodyError:
    """Return that a value of this kind does not become a `java_type`."""
    return reader.error(
        f"Cannot deserialize value of type `{java_type}` from {_KINDS[token]} "
        f"(token `JsonToken.{token.value}`)"
    )


def no_string_constructor(reader: JsonReader, java_class: str, coerced_to: str) -> BodyError:
    """Return that a string does not become a `java_class`."""
    if not reader.text.strip():
        return reader.error(
            f'Cannot coerce empty String ("") to {coerced_to} (but could if coercion was enabled '
            "using `CoercionConfig`)"
        )
    return reader.error(
        f"Cannot construct instance of `{java_class}` (although at least one Creator exists): no "
        "String-argument constructor/factory method to deserialize from String value "
        f"('{reader.text}')"
    )


class Reference:
    """Adds where in the document a value stands to the errors raised while it is bound."""

    _PREFIX = " (through reference chain: "

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, BodyError):
            return
        message, found, chain = str(error).rpartition(self._PREFIX)
        if found:
            text = f"{message}{found}{self._name}->{chain}"
        else:
            text = f"{error}{self._PREFIX}{self._name})"
        raise BodyError(text) from error
