"""`--jq` and `--color`: the printed part of a result, and its colours."""

import json
import sys

import pytest

from tests.cli.conftest import Run
from tests.support.cases import cases

pytestmark = pytest.mark.wire


@cases("noun", "connectors", "loggers", "tasks", "plugins")
def test_jq_finds_names_in_every_list(run: Run, noun: str) -> None:
    """`.[].name` returns the names of every list, also of those that are objects in JSON."""
    names = run(noun, "list", "--jq", ".[].name", code=0)
    assert names.out.split()
    assert "null" not in names.out


def test_jq_selects_from_the_document_or_is_refused(
    run: Run, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--jq` prints texts as lines and other results as JSON; an error in the program is exit 2."""
    outcome = run("connectors", "list", "--jq", ".[", code=2)
    assert "--jq: " in outcome.err
    outcome = run("connectors", "list", "--jq", ".orders + 1", code=2)
    assert "cannot be added" in outcome.err
    names = run("connectors", "list", "--jq", "keys[]")
    assert (names.code, names.out.split()) == (0, ["broken", "orders"])
    states = run("connectors", "list", "--jq", ".orders.status.tasks | map({state})", "-o", "json")
    assert states.out == '[{"state":"RUNNING"}]\n'
    assert run("connectors", "get", "orders", "--jq", '."db.password"').out == "********\n"
    assert run("connectors", "list", "--jq", ".", "-o", "yaml").code == 2
    environ["PYCONNECT_OUTPUT"] = "table"
    assert json.loads(run("connectors", "list", "--jq", ".").out).keys() == {"broken", "orders"}
    monkeypatch.setitem(sys.modules, "jq", None)
    assert "install the extra [jq]: " in run("connectors", "list", "--jq", ".", code=9).err


@cases(
    "arguments, variables, coloured",
    ((), {}, False),
    (("--color", "always"), {}, True),
    (("--color", "always"), {"NO_COLOR": "1"}, True),
    (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    (("--color", "auto"), {"FORCE_COLOR": "1"}, True),
    (("--color", "always", "--no-color"), {}, False),
    ((), {"PYCONNECT_COLOR": "always"}, True),
    (("--no-color",), {"PYCONNECT_COLOR": "always"}, False),
    (("--color", "always"), {"PYCONNECT_NO_COLOR": "1"}, True),
)
def test_colours(
    run: Run,
    environ: dict[str, str],
    arguments: tuple[str, ...],
    variables: dict[str, str],
    coloured: bool,
) -> None:
    """An option for colours wins over variables, and a pipe gets none by default."""
    environ |= variables
    assert ("\x1b[" in run("connectors", "list", *arguments, code=0).out) is coloured


def test_a_colour_setting_is_one_of_three(run: Run, environ: dict[str, str]) -> None:
    """A colour setting other than auto, always or never is exit 2 and named with its origin."""
    environ["PYCONNECT_COLOR"] = "sometimes"
    outcome = run("connectors", "list", code=2)
    assert "color `sometimes` (environment) is not one of auto, always, never" in outcome.err
