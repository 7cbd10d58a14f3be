"""docs/reference/acls.md explains every row of the table."""

import re
from pathlib import Path

import pytest

from pyconnect_clients.acls.model import RULES, NeedSeverity, Role, Rule

DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "acls.md").read_text()
ROWS = [rule for rule in RULES.values() if rule.role is not Role.TOOL]


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.id)
def test_every_row_is_explained_with_its_weight(rule: Rule) -> None:
    """Each row is explained under its id, perhaps without the last letter; warnings have a star."""
    line = re.search(rf"\b(?:{rule.id}|{rule.id.rstrip('acdpr')})(\*?)[ |]", DOCS)
    assert line is not None
    assert bool(line[1]) is (rule.severity is NeedSeverity.WARNING)
