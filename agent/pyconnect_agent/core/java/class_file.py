"""The head of a Java class file: its name, access flags, and what it extends and implements.

Layer: core. Corresponds to sections 4.1 and 4.4 of the Java Virtual Machine Specification. Fields,
methods and attributes are not read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from struct import Struct

_MAGIC = 0xCAFEBABE
_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4}
_SIZES |= {18: 4, 19: 2, 20: 2}
"""Bytes behind the tag of a constant; texts have their own length."""
_NOT_CONCRETE = 0x0200 | 0x0400  # interface, abstract
_PUBLIC = 0x0001
_HEAD, _TAIL, _U2 = Struct(">IHHH"), Struct(">HHHH"), Struct(">H")


@dataclass(frozen=True, slots=True)
class ClassHead:
    """Names have dots; a nested class has `$`. ``super_name`` of java.lang.Object is empty."""

    name: str
    super_name: str
    interfaces: tuple[str, ...]
    access: int

    @property
    def is_public(self) -> bool:
        return bool(self.access & _PUBLIC)

    @property
    def is_concrete(self) -> bool:
        """Whether it is a public class that is neither abstract nor an interface."""
        return self.is_public and not self.access & _NOT_CONCRETE


def read_class_head(content: bytes) -> ClassHead:
    """Return the head of a class file; raises ValueError when the content is not one."""
    try:
        return _read(content)
    except (IndexError, KeyError, UnicodeDecodeError, struct.error) as error:
        raise ValueError(f"not a class file: {type(error).__name__} {error}") from error


def _read(content: bytes) -> ClassHead:
    magic, _, _, count = _HEAD.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError("not a class file: it does not begin with CAFEBABE")
    offset, index = _HEAD.size, 1
    texts: dict[int, tuple[int, int]] = {}
    classes: dict[int, int] = {}
    while index < count:
        tag = content[offset]
        offset += 1
        if tag == _UTF8:
            length = _U2.unpack_from(content, offset)[0]
            texts[index] = (offset + 2, length)
            offset += 2 + length
        else:
            if tag == _CLASS:
                classes[index] = _U2.unpack_from(content, offset)[0]
            offset += _SIZES[tag]
        # A long or a double takes two places.
        index += 2 if tag in (_LONG, _DOUBLE) else 1
    access, this_class, super_class, interface_count = _TAIL.unpack_from(content, offset)
    offset += _TAIL.size

    def name(constant: int) -> str:
        start, length = texts[classes[constant]]
        return content[start : start + length].decode().replace("/", ".")

    interfaces = tuple(
        name(_U2.unpack_from(content, offset + 2 * place)[0]) for place in range(interface_count)
    )
    return ClassHead(
        name=name(this_class),
        super_name=name(super_class) if super_class else "",
        interfaces=interfaces,
        access=access,
    )
