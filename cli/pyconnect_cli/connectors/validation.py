"""Validation of configurations on the worker, before they are sent."""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_cli.connectors.plan import ConnectorFile
from pyconnect_cli.connectors.unknown_settings import warn_of_unknown
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.model import Validation
from pyconnect_cli.session import Session


def validate_all(session: Session, files: Sequence[ConnectorFile]) -> None:
    """Raise an error for the first wrong file; call it before the first change."""
    for file in files:
        answer = validation(session, file)
        if answer.error_count:
            lines = "\n".join(validation_lines(file, answer))
            raise UsageError(
                f"{file.place}: the worker finds {answer.error_count} error(s); nothing was changed"
                f"\n{lines}"
            )


def validation(session: Session, file: ConnectorFile) -> Validation:
    plugin = file.config.get("connector.class")
    if not plugin:
        raise UsageError(f"{file.place}: `connector.class` is missing")
    answer = session.client.validate(plugin, {"name": file.name, **file.config})
    warn_of_unknown(session, file.name, answer, file.config)
    return answer


def validation_lines(file: ConnectorFile, answer: Validation) -> list[str]:
    if not answer.error_count:
        return [f"{file.name}: valid"]
    return [
        f"{file.name}: {found.name}: {error}" for found in answer.fields for error in found.errors
    ]
