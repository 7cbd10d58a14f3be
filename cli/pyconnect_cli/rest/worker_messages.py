"""Workers' error messages without superfluous parts, with a hint for the user. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from pyconnect_cli.parsing.near_names import did_you_mean

UNKNOWN_PLUGIN = re.compile(
    r"(?:[\w.$]+Exception: )?(?P<fact>Failed to find any class that implements \w+ and which name"
    r" matches (?P<wanted>\S+)), available \w+ are: (?P<list>.*)",
    re.DOTALL,
)
PLUGIN = re.compile(r"PluginDesc\{klass=(?:class|interface) ([\w.$]+)")
INVALID = re.compile(
    r"(?P<fact>Connector configuration is invalid.*?)\s*You can also find the above list of errors"
    r" at the endpoint `[^`]*`\s*",
    re.DOTALL,
)
TITLE = re.compile(r"<title>\s*(?:Error \d+ )?([^<]*?)\s*</title>", re.IGNORECASE)


class Told(NamedTuple):
    """A short message, and a hint if there is a command to run next."""

    message: str
    hint: str | None = None


def told(message: str) -> Told:
    """Return Connect's message without its long lists."""
    if match := UNKNOWN_PLUGIN.fullmatch(message):
        classes = PLUGIN.findall(match["list"])
        short = [name.rpartition(".")[2] for name in classes]
        near = did_you_mean(match["wanted"].rpartition(".")[2], short)
        return Told(match["fact"], near or "list the installed plugins: pyconnect plugins list")
    if match := INVALID.fullmatch(message):
        return Told(match["fact"], "list the configuration keys: pyconnect plugins describe CLASS")
    return Told(message)


def page_title(text: str) -> str | None:
    """Return the title of an HTML page: servers and proxies put the reason there."""
    found = TITLE.search(text)
    return found[1] if found and found[1] else None
