"""Texts on a terminal: colours as sequences, all other control characters as text.

Names, traces and answers come from other systems. `streams` sends every line through `displayed`.
Tables are laid out here without rich, whose import takes 100 ms.
"""

import re
import unicodedata

RESET = "\x1b[0m"
STYLES = {
    "good": "\x1b[32m",
    "bad": "\x1b[1;31m",
    "warning": "\x1b[33m",
    "dim": "\x1b[2m",
    "strong": "\x1b[1m",
    "accent": "\x1b[36m",
}
STATE_STYLES = {
    "RUNNING": "good",
    "FAILED": "bad",
    "PAUSED": "warning",
    "STOPPED": "dim",
    "RESTARTING": "accent",
    "UNASSIGNED": "warning",
    "DESTROYED": "dim",
    "healthy": "good",
    "starting": "warning",
    "unhealthy": "bad",
    "unreachable": "bad",
    "ok": "good",
    "warning": "warning",
    "failed": "bad",
}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OURS = frozenset({*STYLES.values(), RESET})
OURS_OR_CONTROL = f"{'|'.join(map(re.escape, OURS))}|{CONTROL.pattern}"


def paint(text: str, style: str | None, *, colour: bool) -> str:
    """Return the text in a style; unchanged without colours."""
    if not colour or not style or not text:
        return text
    return f"{STYLES[style]}{text}{RESET}"


def counted(number: int, noun: str) -> str:
    """Return `1 worker`, `2,000 workers`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def state_style(state: str) -> str | None:
    """Return the style of a state's name; counts as `1/2`, `1/2, 1 FAILED` are judged as well."""
    if state.endswith(" FAILED"):
        return STATE_STYLES["FAILED"]
    ready, slash, total = state.partition("/")
    if slash and ready.isdigit() and total.isdigit():
        if total == "0":
            return "dim"
        return "good" if int(ready) == int(total) else "warning"
    return STATE_STYLES.get(state)


def printable(text: str) -> str:
    """Escape control characters, because names and traces come from other systems."""
    return CONTROL.sub(_escaped, text)


def displayed(text: str, *, colour: bool) -> str:
    """Escape control characters except, with colours, the sequences of `paint`."""
    if not colour:
        return printable(text)
    return re.sub(OURS_OR_CONTROL, lambda m: m[0] if m[0] in OURS else _escaped(m), text)


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return readable JSON, on one line without `indent`; control characters as JSON escapes."""
    import json  # help and completion do not need json, and must start fast

    separators = (",", ":") if indent is None else None
    text = json.dumps(document, indent=indent, ensure_ascii=False, separators=separators)
    return CONTROL.sub(unicode_escape, text)


def unicode_escape(match: re.Match[str]) -> str:
    """Return a character as JSON and double-quoted YAML escape it."""
    return f"\\u{ord(match.group()):04x}"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cell_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
    return width


def shorten(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis at its end."""
    if cell_width(text) <= width:
        return text
    kept = ""
    for character in text:
        if cell_width(kept + character) > width - 1:
            break
        kept += character
    return kept + "…"


def shorten_middle(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis in its middle."""
    if cell_width(text) <= width:
        return text
    end = ""
    for character in reversed(text):
        if cell_width(character + end) > (width - 1) // 2:
            break
        end = character + end
    return shorten(text, width - cell_width(end)) + end


def wrapped(text: str, width: int) -> list[str]:
    """Break a text at spaces into lines of a width; break a word only if it is longer."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if lines[-1] and cell_width(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines
