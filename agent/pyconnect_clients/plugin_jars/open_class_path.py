"""The open entries of a class path: jars, and directories of classes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol, Self


class Container(Protocol):
    """One entry of a class path, a jar or a directory."""

    path: Path

    def names(self) -> Sequence[str]: ...

    def read(self, name: str) -> bytes: ...


class _Jar:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive

    def names(self) -> Sequence[str]:
        return self._archive.namelist()

    def read(self, name: str) -> bytes:
        return self._archive.read(name)


class _Directory:
    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> Sequence[str]:
        return [
            path.relative_to(self.path).as_posix()
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        ]

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


class OpenClassPath(AbstractContextManager["OpenClassPath"]):
    """The open entries of a class path. ``problems`` name what cannot be read."""

    def __init__(self, class_path: Iterable[str | Path]) -> None:
        self._open = ExitStack()
        self.containers: list[Container] = []
        self.problems: list[str] = []
        for path in map(Path, class_path):
            if path.is_dir():
                self.containers.append(_Directory(path))
                continue
            try:
                archive = self._open.enter_context(zipfile.ZipFile(path))
                self.containers.append(_Jar(path, archive))
            # A damaged archive makes `zipfile` raise many more exceptions than its own.
            except Exception as error:  # noqa: BLE001
                self.problems.append(f"{path} cannot be read as an archive: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def content(self, container: Container, name: str) -> bytes | None:
        """Return a file of an entry; None, and a problem, if it cannot be read."""
        try:
            return container.read(name)
        except Exception as error:  # noqa: BLE001  as in `__init__`
            self.problems.append(f"{name} in {container.path} cannot be read: {error}")
            return None
