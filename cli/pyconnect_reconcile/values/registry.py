"""Schemas of a registry with Confluent's API, asked by id: one request for each.

A properties file holds what access needs, in the names of Confluent's converters, without prefix:
`basic.auth.user.info`, `bearer.auth.token`, `schema.registry.ssl.truststore.location` (PEM),
`schema.registry.ssl.keystore.location` (PEM with certificate and key) and
`schema.registry.ssl.key.password`. It reaches no executor and no report.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import read_properties
from pyconnect_reconcile.spec import Registry

TIMEOUT_S = 15.0
NOT_FOUND = 404
SSL = "schema.registry.ssl."
_USER = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema: `kind` is AVRO, JSON or PROTOBUF; `references` are the texts of what it uses."""

    kind: str
    text: str
    references: tuple[str, ...] = ()


class SchemaRegistry:
    """Asks one registry; use it in a `with` block, by `open_registry`."""

    def __init__(self, client: object, urls: tuple[str, ...]) -> None:
        self._client = client
        self._urls = urls

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return a schema with all it refers to, None when the registry does not know it.

        Raises ReconcileError when the registry does not answer, or refuses.
        """
        document = self._get(f"/schemas/ids/{schema_id}")
        if document is None:
            return None
        return RegisteredSchema(
            kind=str(document.get("schemaType") or "AVRO"),
            text=str(document.get("schema", "")),
            references=tuple(dict.fromkeys(self._referred(document))),
        )

    def _referred(self, document: Mapping[str, object]) -> Iterator[str]:
        """Yield the schemas that a schema refers to, what they refer to first."""
        references = document.get("references") or []
        assert isinstance(references, list)
        for reference in references:
            subject = quote(str(reference["subject"]), safe="")
            path = f"/subjects/{subject}/versions/{reference['version']}"
            found = self._get(path)
            if found is None:
                raise ReconcileError(f"the schema registry has no {path}, which a schema refers to")
            yield from self._referred(found)
            yield str(found.get("schema", ""))

    def _get(self, path: str) -> Mapping[str, object] | None:
        import httpx

        assert isinstance(self._client, httpx.Client)
        problem = ""
        for url in self._urls:
            try:
                answer = self._client.get(f"{url}{path}")
            except httpx.HTTPError as exc:
                problem = f"{_shown(url)} cannot be reached: {exc}"
                continue
            if answer.status_code == NOT_FOUND:
                return None
            try:
                document = answer.raise_for_status().json()
            except (httpx.HTTPStatusError, ValueError):
                problem = f"{_shown(url)} answers {answer.status_code} to {path}"
                continue
            if isinstance(document, Mapping):
                return document
            problem = f"{_shown(url)} is not a schema registry"
        raise ReconcileError(
            f"the schema registry: {problem}", hint="check --registry and --registry-properties"
        )


@contextmanager
def open_registry(settings: Registry) -> Iterator[SchemaRegistry]:
    """Connect with a registry for the block."""
    import httpx

    properties = read_properties(settings.properties)
    urls = tuple(url.strip().rstrip("/") for url in settings.url.split(",") if url.strip())
    user, _, password = properties.get("basic.auth.user.info", "").partition(":")
    token = properties.get("bearer.auth.token")
    try:
        tls = ssl.create_default_context(cafile=properties.get(f"{SSL}truststore.location") or None)
        if store := properties.get(f"{SSL}keystore.location"):
            tls.load_cert_chain(store, password=properties.get(f"{SSL}key.password"))
    except (OSError, ssl.SSLError) as exc:
        raise ReconcileError(
            f"the stores for the schema registry cannot be read as PEM: {exc}"
        ) from exc
    with httpx.Client(
        timeout=TIMEOUT_S,
        verify=tls,
        auth=(user, password) if user else None,
        headers={"Authorization": f"Bearer {token}"} if token else None,
    ) as client:
        yield SchemaRegistry(client, urls)


def _shown(url: str) -> str:
    """Return an address without the user and password that it may hold."""
    return _USER.sub("//", url)
