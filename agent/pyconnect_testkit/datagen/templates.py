"""The schemas behind the option `quickstart`: Avro records with generator hints.

Layer: builtin. Data only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def _field(name: str, kind: str, **hints: object) -> dict[str, Any]:
    if not hints:
        return {"name": name, "type": kind}
    return {"name": name, "type": {"type": kind, "arg.properties": hints}}


def _record(name: str, *fields: dict[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": name, "namespace": "pyconnect.datagen", "fields": fields}
    )


def _counting(name: str, kind: str = "long", start: int = 0, step: int = 1) -> dict[str, Any]:
    return _field(name, kind, iteration={"start": start, "step": step})


def _times(name: str) -> dict[str, Any]:
    return _counting(name, start=1_700_000_000_000, step=250)


_ADDRESS = {
    "name": "address",
    "type": {
        "type": "record",
        "name": "Address",
        "fields": [
            _field("city", "string", regex="City_[1-9][0-9]?"),
            _field("zipcode", "long", range={"min": 10_000, "max": 100_000}),
        ],
    },
}

TEMPLATES: Mapping[str, tuple[str, str]] = {
    "orders": (
        "orderid",
        _record(
            "Order",
            _times("ordertime"),
            _counting("orderid", "int"),
            _field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            _field("orderunits", "double", range={"min": 0.1, "max": 10.0}),
            _ADDRESS,
        ),
    ),
    "users": (
        "userid",
        _record(
            "User",
            _times("registertime"),
            _field("userid", "string", regex="User_[1-9]"),
            _field("regionid", "string", regex="Region_[1-9]"),
            _field("gender", "string", options=["MALE", "FEMALE", "OTHER"]),
        ),
    ),
    "pageviews": (
        "viewtime",
        _record(
            "PageView",
            _counting("viewtime", start=1, step=10),
            _field("userid", "string", regex="User_[1-9]"),
            _field("pageid", "string", regex="Page_[1-9][0-9]?"),
        ),
    ),
    "clickstream": (
        "ip",
        _record(
            "Click",
            _field("ip", "string", regex="111\\.[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{1,2}"),
            _field("userid", "int", range={"min": 1, "max": 40}),
            _times("time"),
            _field("request", "string", regex="GET /(index|images/track|site/login)\\.html HTTP"),
            _field("status", "string", options=["200", "302", "404", "405", "406", "407"]),
            _field("bytes", "string", options=["278", "1289", "2048", "4096", "14096"]),
            _field("agent", "string", options=["Mozilla/5.0", "curl/8.5"]),
        ),
    ),
    "transactions": (
        "transaction_id",
        _record(
            "Transaction",
            _counting("transaction_id", start=1),
            _field("card_id", "long", range={"min": 1, "max": 15}),
            _field("user_id", "string", regex="User_[1-9]?"),
            _field("purchase_id", "long", range={"min": 0, "max": 1_000_000}),
            _field("store_id", "int", range={"min": 1, "max": 7}),
        ),
    ),
}
"""Key field and Avro schema by name."""
