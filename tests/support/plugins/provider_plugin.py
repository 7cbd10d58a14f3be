"""A plugin directory with a config provider of its own, whose values expire."""

from pathlib import Path

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
    """Make it below `root`; return the file to which each process that imports it writes its id.
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
