"""Public classes have different names, and modules are imported by their own names."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    path: path.relative_to(root)
    for root in (ROOT / "agent", ROOT / "cli")
    for path in sorted(root.rglob("*.py"))
}
TREES = {place: ast.parse(path.read_text("utf-8")) for path, place in FILES.items()}
MODULES = {
    ".".join(place.with_suffix("").parts).removesuffix(".__init__") for place in FILES.values()
}

# A connector's author imports the first one; the command line may not import the API of authors.
SAME_WORD = {"ConfigKey", "TopicPartition"}
# To be emptied: the rooms of these classes get their names in other changes.
SAME_WORD |= {
    *("Clock", "Columns", "ConnectorInfo", "Field", "LoggerLevel", "Place", "Rows"),
    *("SinkSettings", "Source", "SourceSettings", "Started", "State"),
}
# To be emptied too: modules of `core/herder`, `herder` and the command line.
OLD_NAMES = {"do", "on", "brokers", "log_files"}


def public_classes() -> Iterator[tuple[str, Path]]:
    for place, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, place


def renamed_modules() -> Iterator[tuple[str, Path]]:
    """Yield the other name of each module that an import renames."""
    for place, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            for name in node.names:
                if name.asname not in (None, name.name) and f"{node.module}.{name.name}" in MODULES:
                    yield str(name.asname), place


def test_no_two_public_classes_have_one_name() -> None:
    """No class of the distribution shares its name, except for those in `SAME_WORD`."""
    places = defaultdict(list)
    for name, place in public_classes():
        places[name].append(str(place))
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if name not in SAME_WORD} == {}
    assert set(several) >= SAME_WORD, "the list names classes that have a name of their own"


def test_no_import_renames_a_module() -> None:
    """No import gives a module another name, except for those in `OLD_NAMES`."""
    found = set(renamed_modules())
    assert {(name, str(place)) for name, place in found if name not in OLD_NAMES} == set()
    assert {name for name, _ in found} >= OLD_NAMES, "the list has names that no import uses"
