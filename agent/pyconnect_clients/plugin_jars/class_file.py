"""A Java class file: its name, what it extends, its members, and the classes that it links to.

Pure. Corresponds to sections 4.1 and 4.4 to 4.6 of the Java Virtual Machine Specification. Code and
attributes are not read: every class, method and field that code uses is a constant of the file.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from struct import Struct
from typing import NamedTuple, ParamSpec, TypeVar

_MAGIC = 0xCAFEBABE
_UTF8, _LONG, _DOUBLE, _CLASS, _NAME_AND_TYPE = 1, 5, 6, 7, 12
_MEMBERS = (9, 10, 11)  # of fields, methods, methods of interfaces
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4}
_SIZES |= {18: 4, 19: 2, 20: 2}
"""Bytes behind the tag of a constant; texts have their own length."""
_NOT_CONCRETE = 0x0200 | 0x0400  # interface, abstract
_PUBLIC = 0x0001
_VISIBLE = 0x0005  # public, protected
_HEAD, _TAIL, _U2, _PAIR = Struct(">IHHH"), Struct(">HHHH"), Struct(">H"), Struct(">HH")
_MEMBER, _ATTRIBUTE = Struct(">HHHH"), Struct(">HI")
_FIRST_JAVA = 44
"""Java n writes class files of version n + 44."""


@dataclass(frozen=True, slots=True)
class ClassHead:
    """Names have dots, and `$` in a nested class. ``super_name`` of java.lang.Object is empty."""

    name: str
    super_name: str
    interfaces: tuple[str, ...]
    access: int

    @property
    def parents(self) -> tuple[str, ...]:
        """The class that this one extends, and the interfaces that it implements."""
        return (self.super_name, *self.interfaces)

    @property
    def is_public(self) -> bool:
        return bool(self.access & _PUBLIC)

    @property
    def is_concrete(self) -> bool:
        """Whether this is a public class that is neither abstract nor an interface."""
        return self.is_public and not self.access & _NOT_CONCRETE


class ClassMember(NamedTuple):
    """A method or field of a class: `name` with its descriptor, `poll()Ljava/util/List;`."""

    owner: str
    name: str


_DAMAGES = (IndexError, KeyError, UnicodeDecodeError, struct.error)
Content = ParamSpec("Content")
Found = TypeVar("Found")


def _refusing(read: Callable[Content, Found]) -> Callable[Content, Found]:
    """Turn the errors of a damaged file into ValueError."""

    @wraps(read)
    def refuse(*args: Content.args, **kwargs: Content.kwargs) -> Found:
        try:
            return read(*args, **kwargs)
        except _DAMAGES as error:
            raise ValueError(f"not a class file: {type(error).__name__} {error}") from error

    return refuse


class ClassFile:
    """A class file by its constants. Methods raise ValueError for a damaged file."""

    @_refusing
    def __init__(self, content: bytes) -> None:
        """Raise ValueError if the content is not a class file."""
        magic, _, version, count = _HEAD.unpack_from(content)
        if magic != _MAGIC:
            raise ValueError("not a class file: it does not begin with CAFEBABE")
        self.java = version - _FIRST_JAVA
        """The oldest Java that runs the class."""
        self._content = content
        self._texts: dict[int, tuple[int, int]] = {}
        self._classes: dict[int, int] = {}
        self._pairs: dict[int, int] = {}
        self._members: list[int] = []
        offset, index = _HEAD.size, 1
        while index < count:
            tag = content[offset]
            offset += 1
            if tag == _UTF8:
                length = _U2.unpack_from(content, offset)[0]
                self._texts[index] = (offset + 2, length)
                offset += 2 + length
            else:
                if tag == _CLASS:
                    self._classes[index] = _U2.unpack_from(content, offset)[0]
                elif tag == _NAME_AND_TYPE:
                    self._pairs[index] = offset
                elif tag in _MEMBERS:
                    self._members.append(offset)
                offset += _SIZES[tag]
            # A long or a double takes two entries.
            index += 2 if tag in (_LONG, _DOUBLE) else 1
        access, this_class, super_class, interfaces = _TAIL.unpack_from(content, offset)
        offset += _TAIL.size
        self._fields_begin = offset + 2 * interfaces
        self.head = ClassHead(
            name=self._class_name(this_class),
            super_name=self._class_name(super_class) if super_class else "",
            interfaces=tuple(
                map(self._class_name, struct.unpack_from(f">{interfaces}H", content, offset))
            ),
            access=access,
        )

    @_refusing
    def members(self, *, visible: bool = False) -> list[str]:
        """Return the fields and methods, each name with its descriptor.

        `visible`: only public and protected members.
        """
        found = []
        offset = self._fields_begin
        for _ in ("fields", "methods"):
            (count,) = _U2.unpack_from(self._content, offset)
            offset += _U2.size
            for _ in range(count):
                access, name, kind, attributes = _MEMBER.unpack_from(self._content, offset)
                offset += _MEMBER.size
                for _ in range(attributes):
                    offset += _ATTRIBUTE.size + _ATTRIBUTE.unpack_from(self._content, offset)[1]
                if access & _VISIBLE or not visible:
                    found.append(self._text(name) + self._text(kind))
        return found

    @_refusing
    def linked_classes(self) -> list[str]:
        """Return the classes that this file names; for an array, the class of its elements."""
        names = (self._text(text) for text in self._classes.values())
        elements = (name.lstrip("[") if name.startswith("[") else f"L{name};" for name in names)
        # The element type of an array of numbers is one letter.
        return [name[1:-1].replace("/", ".") for name in elements if name.startswith("L")]

    @_refusing
    def linked_members(self) -> list[ClassMember]:
        """Return the fields and methods that the code uses."""
        found = []
        for offset in self._members:
            owner, pair = _PAIR.unpack_from(self._content, offset)
            name, kind = _PAIR.unpack_from(self._content, self._pairs[pair])
            found.append(ClassMember(self._class_name(owner), self._text(name) + self._text(kind)))
        return found

    def raw_texts(self) -> Iterator[bytes]:
        """Yield all texts of the constants: names, descriptors and literals."""
        return (self._content[start : start + size] for start, size in self._texts.values())

    def _class_name(self, constant: int) -> str:
        return self._text(self._classes[constant]).replace("/", ".")

    def _text(self, constant: int) -> str:
        start, length = self._texts[constant]
        return self._content[start : start + length].decode()


def read_class_head(content: bytes) -> ClassHead:
    """Return the head of a class file; raise ValueError if the content is not one."""
    return ClassFile(content).head
