"""Answers of two workers about plugins, in forms that can be compared.

docs/reference/compatibility.md lists the plugins that an agent has and a bare Java worker lacks.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.support.agents.rest_client import Answer, call_url

OUR_OWN_PLUGINS = re.compile(
    r"io\.confluent\.connect\..*|org\.apache\.kafka\.connect\.(tools|integration)\..*"
    r"|pyconnect_(connectors|testkit|agent\.builtin\.expressions)\..*"
)
"""Confluent's converters, test connectors, the generator, expressions, connectors of extras."""


def is_our_own(class_name: object) -> bool:
    """Return whether the class is missing from a Java worker out of Apache's archive."""
    return OUR_OWN_PLUGINS.fullmatch(str(class_name)) is not None


JSON = {"Content-Type": "application/json"}
OUR_OWN_KEYS = frozenset({"on.truncate"})
"""Settings that Apache's connectors do not have; see docs/reference/compatibility.md."""


def on_both(
    java_url: str, agent_url: str, method: str, target: str, body: object = None
) -> tuple[Answer, Answer]:
    """Return the answers of a Java worker and an agent to the same request."""
    is_text = body is None or isinstance(body, str | bytes)
    text, headers = (body, {}) if body is None else (body if is_text else json.dumps(body), JSON)
    answers = [call_url(url, method, target, text, headers) for url in (java_url, agent_url)]
    return answers[0], answers[1]


def definition(key: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the definition of a key without its documentation."""
    if key is None:
        return None
    return {name: value for name, value in key.items() if name != "documentation"}


def without_our_own(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of a key without our own plugins among its recommended values."""
    recommended = [v for v in value["recommended_values"] if not is_our_own(v)]
    return {**value, "recommended_values": recommended}


def definitions(answer: Answer) -> list[dict[str, Any] | None]:
    assert answer.status == 200, answer.text
    keys = sorted(answer.json(), key=lambda key: str(key["name"]))
    return [definition(key) for key in keys if key["name"] not in OUR_OWN_KEYS]


def validation(answer: Answer) -> Any:
    """Return the findings of a validation in a fixed order; any other answer unchanged."""
    body = answer.json()
    if "configs" not in body:
        return answer.status, body
    found = {
        info["value"]["name"]: (definition(info["definition"]), without_our_own(info["value"]))
        for info in body["configs"]
        if info["value"]["name"] not in OUR_OWN_KEYS
    }
    return answer.status, body["name"], body["error_count"], sorted(body["groups"]), found


def comparable(answer: Answer, release: str) -> list[str]:
    """Return an answer as lines without documentation and release; lists are sorted."""
    answer = replace(answer, body=answer.body.replace(release.encode(), b"<release>"))
    try:
        body = validation(answer) if answer.status == 200 else answer.json()
    except (ValueError, TypeError, KeyError):
        return [f"{answer.status}", answer.text]
    if isinstance(body, tuple) and len(body) == 2 and isinstance(body[1], list):
        body = sorted((definition(each) for each in body[1]), key=str)
    return [
        f"{answer.status}",
        *json.dumps(body, indent=1, sort_keys=True, default=str).splitlines(),
    ]
