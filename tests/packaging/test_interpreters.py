"""Supported Pythons, and the script that finds them and tries the wheel with each."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "interpreters", ROOT / "scripts" / "interpreters.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def fake_python(path: Path, version: tuple[int, int, int], *, ensurepip: bool = True) -> Path:
    """Return a script that reports this version and has no pip to make environments with."""
    identity = json.dumps(["CPython", version, "final", str(path.parent), str(path)])
    path.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"  *platform*) echo '{identity}' ;;\n"
        f"  *ensurepip*) exit {int(not ensurepip)} ;;\n"
        "esac\n"
    )
    path.chmod(0o755)
    return path


def test_readme_and_metadata_name_the_same_versions(script: ModuleType) -> None:
    """The README, the classifiers and `requires-python` name the same versions."""
    text = re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8"))
    found = re.search(r"Python ((?:3\.\d+, )+3\.\d+ or 3\.\d+|3\.\d+(?: or 3\.\d+)?)", text)
    assert found is not None
    named = re.findall(r"3\.\d+", found[1])
    classified = [
        classifier.rpartition(" ")[2]
        for classifier in PROJECT["classifiers"]
        if re.search(r":: 3\.\d+$", classifier)
    ]
    assert named == classified
    assert tuple(map(int, named[0].split("."))) == script.lowest_supported()


def test_the_lowest_versions_are_those_of_the_bounds() -> None:
    """requirements/lowest.txt pins each dependency at its lower bound."""
    extras = PROJECT["optional-dependencies"]
    bounded = [*PROJECT["dependencies"], *(each for name in extras for each in extras[name])]
    lower = dict(
        found.groups()
        for requirement in bounded
        if (found := re.match(r"([\w-]+)>=([\w.]+)", requirement))
    )
    pinned = dict(
        re.findall(
            r"^([\w-]+)==([\w.]+)", (ROOT / "requirements" / "lowest.txt").read_text(), re.MULTILINE
        )
    )

    def numbers(version: str) -> tuple[int, ...]:
        return tuple(map(int, re.sub(r"(\.0)+$", "", version).split(".")))

    # The version of pyspark is not that of Spark: tests/spark/test_releases.py proves it.
    lower.pop("pyspark")
    assert len(lower) > 15
    taken = {name: numbers(pinned[name.lower()]) for name in lower}
    assert taken == {name: numbers(version) for name, version in lower.items()}


@pytest.mark.wire
def test_an_installation_counts_once(script: ModuleType, tmp_path: Path) -> None:
    """An interpreter with several names counts once, and the oldest version comes first."""
    new = fake_python(tmp_path / "new", (3, 98, 1))
    (tmp_path / "other").mkdir()
    old = fake_python(tmp_path / "other" / "old", (3, 97, 0))
    alias = tmp_path / "alias"
    alias.symlink_to(new)
    found = script.find_interpreters([new, alias, old])
    assert [each.executable for each in found] == [old, new]


@pytest.mark.wire
def test_this_python_is_found_among_those_of_the_machine(script: ModuleType) -> None:
    """Without arguments the script finds this Python, also from a virtual environment."""
    versions = [each.version for each in script.find_interpreters([])]
    assert tuple(sys.version_info[:3]) in versions
    assert min(versions) >= script.lowest_supported()


@pytest.mark.wire
def test_an_interpreter_without_ensurepip_fails_by_name(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An interpreter without ensurepip fails, and the message names the missing package."""
    out = tmp_path / "out" / "interpreters"
    out.mkdir(parents=True)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "OUT", out)
    (interpreter,) = script.find_interpreters(
        [fake_python(tmp_path / "python", (3, 99, 0), ensurepip=False)]
    )
    trial = script.Trial(
        tmp_path / "wheel", tmp_path / "requirements", "localhost:1", all_extras=False
    )
    assert not trial.prove((0, interpreter))
    said = capsys.readouterr().out
    assert said.startswith("FAIL  3.99.0")
    assert "cannot make virtual environments (Debian/Ubuntu: python3.99-venv)" in said
