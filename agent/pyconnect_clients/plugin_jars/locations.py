"""The locations of Java plugins below `plugin.path`, and the class path of each with its entries.

Corresponds to ``PluginUtils.pluginLocations`` and ``PluginUtils.pluginUrls`` of Kafka Connect. A
location is a jar, or a directory that holds jars or classes at any depth.
"""

import logging
import zipfile
from collections.abc import Iterable, Iterator, Sequence
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
    """The open entries of a class path. ``problems`` name entries that cannot be read."""

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
            # For a damaged archive `zipfile` raises many exceptions besides its own.
            except Exception as error:  # noqa: BLE001
                self.problems.append(f"{path} cannot be read as an archive: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def content(self, container: Container, name: str) -> bytes | None:
        """Return a file of an entry; None, and a new problem, if it cannot be read."""
        try:
            return container.read(name)
        except Exception as error:  # noqa: BLE001  as in `__init__`
            self.problems.append(f"{name} in {container.path} cannot be read: {error}")
            return None


LOG = logging.getLogger(__name__)

_ARCHIVES = (".jar", ".zip")
_PYTHON_METADATA = (".dist-info", ".egg-info")


def java_locations(plugin_path: Sequence[str]) -> tuple[Path, ...]:
    """Return the locations of Java plugins, sorted within each entry of the path.

    Directories of Python plugins are left out, and so are unreadable entries, with a warning.
    """
    found: dict[Path, None] = {}
    for entry in plugin_path:
        root = Path(entry).absolute()
        try:
            candidates = sorted(root.iterdir())
        except NotADirectoryError:
            candidates = [root]
        except OSError as error:
            LOG.warning("entry of plugin.path cannot be read", extra={"reason": str(error)})
            continue
        found |= dict.fromkeys(filter(is_java_location, candidates))
    return tuple(found)


def is_java_location(path: Path) -> bool:
    """Return whether a path is a jar, or a directory of jars or classes without Python plugins."""
    try:
        if path.is_dir():
            # Return whether a directory holds Python plugins, which may include jars.
            return not any(
                item.name.endswith((*_PYTHON_METADATA, ".py")) or (item / "__init__.py").exists()
                for item in path.iterdir()
            ) and bool(class_path_of(path))
        return is_archive(path) and path.exists()
    except OSError as error:
        LOG.warning("plugin location cannot be read", extra={"reason": str(error)})
        return False


def class_path_of(location: Path) -> tuple[str, ...]:
    """Return the class path of one location: itself, or every archive below it.

    Symbolic links are followed, each target once. A directory of classes is a class path itself;
    if it also holds archives, only these count. The order is that of Java's paths: of two jars
    with the same class, the same one counts as in Kafka Connect.
    """
    if is_archive(location):
        return (str(location),)
    archives: list[str] = []
    has_classes = False
    for path in _files_below(location):
        if is_archive(path):
            archives.append(str(path))
        elif path.suffix == ".class":
            has_classes = True
    if has_classes and not archives:
        return (str(location),)
    if has_classes:
        LOG.warning(
            "plugin location holds archives and class files; only the archives are used",
            extra={"location": str(location)},
        )
    return tuple(sorted(archives))


def is_archive(path: Path) -> bool:
    """Return whether a name is that of a jar or a zip."""
    return path.name.lower().endswith(_ARCHIVES)


def location_url(location: Path) -> str:
    """Return a location as Kafka Connect shows it: a URL, with a slash after a directory."""
    return f"file:{location}{'/' if location.is_dir() else ''}"


def _files_below(directory: Path) -> Iterator[Path]:
    """Yield the archives and classes below a directory; links are followed, each target once."""
    visited = {directory.resolve()}
    waiting = [directory]
    while waiting:
        try:
            entries = sorted(waiting.pop().iterdir())
        except OSError as error:
            LOG.warning("plugin directory cannot be read", extra={"reason": str(error)})
            continue
        for entry in entries:
            try:
                target = entry.resolve(strict=True)
            except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
                continue
            if target in visited:
                continue
            visited.add(target)
            path = target if entry.is_symlink() else entry
            if target.is_dir():
                waiting.append(path)
            else:
                yield path
