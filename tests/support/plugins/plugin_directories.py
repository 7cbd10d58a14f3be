"""Plugins in directories of their own: with contradicting libraries, or of the pages for authors.

Also config providers whose values expire: one in a directory, and `ExpiringProvider`, with
which `${expiring:<file>:value}` is the text of a file.
"""

import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from pyconnect_api import ConfigData, ConfigProvider

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
    """Make two plugin directories below `root`; return the file where each import writes its pid.

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


VAULT_PROVIDER = "vault_plugin.VaultProvider"

_MODULE = """
import os
from pathlib import Path
from pyconnect_api import ConfigData, ConfigProvider

with open({imports!r}, "a") as imports:
    imports.write(f"{{os.getpid()}}\\n")

class VaultProvider(ConfigProvider):
    def configure(self, configs): self.ttl_ms = int(configs["ttl.ms"])
    def get(self, path, keys=None):
        print("a plugin that prints")
        return ConfigData(data={{"value": Path(path).read_text()}}, ttl_ms=self.ttl_ms)
"""


def make_provider_plugin(root: Path) -> Path:
    """Make a provider's directory below `root`; return the file where imports write their pid.

    `${name:<file>:value}` is the text of the file; parameter `ttl.ms`.
    """
    imports = root.parent / "provider-imports"
    directory = root / "vault"
    directory.mkdir(parents=True)
    (directory / "vault_plugin.py").write_text(_MODULE.format(imports=str(imports)))
    info = directory / "vault_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vault_plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[pyconnect.config_providers]\nVault = vault_plugin:VaultProvider\n"
    )
    return imports


EXPIRING_PROVIDER = f"{__name__}.ExpiringProvider"


class ExpiringProvider(ConfigProvider):
    """A provider with the parameter `ttl.ms`, the time after which its values expire."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self._ttl_ms = int(configs["ttl.ms"])

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        return ConfigData(data={"value": Path(path).read_text()}, ttl_ms=self._ttl_ms)


ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "authors"
BLOCK = re.compile(r"^`(?P<name>[\w./-]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def write_project(page: str, directory: Path) -> Path:
    """Write the files of a page into a directory named after it."""
    project = directory / page
    project.mkdir()
    for found in BLOCK.finditer((PAGES / f"{page}.md").read_text("utf-8")):
        (project / found["name"]).write_text(found["text"], "utf-8")
    return project


def install(project: Path, plugin_path: Path) -> None:
    """Install a project as a plugin below a plugin path."""
    target = str(plugin_path / project.name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", target, str(project)], check=True, timeout=400)
