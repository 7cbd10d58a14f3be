"""Plugins in directories of their own that need contradicting versions of one library."""

from pathlib import Path

LIBRARY = "contradicting_library"

_PLUGIN = """
import os
import {library}
from pyconnect_api import *

with open({imports!r}, "a") as imports:
    imports.write(f"{{os.getpid()}}\\n")

class LibrarySource(SourceConnector):
    def start(self, props): self.props = props
    def stop(self): pass
    def version(self): return "{version}"
    def task_class(self): return LibraryTask
    def task_configs(self, max_tasks): return [self.props]
    def config(self):
        return ConfigDef().define("topic", ConfigType.STRING, documentation="The topic.")

class LibraryTask(SourceTask):
    def start(self, props): self.topic = props["topic"]
    def stop(self): pass
    def version(self): return "{version}"
    def poll(self):
        if self.context.offset_storage_reader.offset({{"p": 1}}) or getattr(self, "done", False):
            self.context.stop_requested.wait(1.0)
            return None
        self.done = True
        return [SourceRecord({{"p": 1}}, {{"o": 1}}, self.topic, value={library}.{call})]
"""
_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def make_plugins(root: Path) -> Path:
    """Make two plugin directories below `root`; return the file their imports write a pid to.

    Their aliases are `FirstLibrarySource` and `SecondLibrarySource`; each writes one record, the
    text that its version of the library makes: `one` and `two`.
    """
    imports = root.parent / "imports"
    for version, (name, call, library) in {
        "1.0": ("first", "one()", "def one(): return 'one'\n"),
        "2.0": ("second", "two()", "def two(): return 'two'\n"),
    }.items():
        directory = root / name
        package = directory / f"{name}_plugin"
        package.mkdir(parents=True)
        (directory / f"{LIBRARY}.py").write_text(library)
        text = _PLUGIN.format(library=LIBRARY, imports=str(imports), version=version, call=call)
        (package / "__init__.py").write_text(text)
        info = directory / f"{name}_plugin-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(_METADATA.format(name=f"{name}_plugin", version=version))
        (info / "entry_points.txt").write_text(
            f"[pyconnect.connectors]\n{name.title()}LibrarySource = {name}_plugin:LibrarySource\n"
        )
    return imports
