"""The plan of `apply`: files compared with the cluster, key by key. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.masking import MASK, mask_value, masked_keys

Config = Mapping[str, str | None]


class Change(Enum):
    """The kind of change of one connector."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFile:
    """A connector as a file describes it; `place` names file and document for messages."""

    name: str
    config: Config
    initial_state: str | None = None
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifference:
    """One key; None means that it is not set on that side."""

    key: str
    before: str | None
    after: str | None

    def lines(self, *, show_secrets: bool) -> list[str]:
        """Return `- key=old` and `+ key=new`; mask secrets unless `show_secrets`."""
        shown = []
        for sign, value in (("-", self.before), ("+", self.after)):
            if value is not None:
                text = value if show_secrets else mask_value(self.key, value)
                shown.append(f"  {sign} {self.key}={text}")
        if not show_secrets and len(shown) == 2 and shown[0][4:] == shown[1][4:]:
            shown[1] += " (changed)"
        return shown

    def text(self) -> str:
        """Return `key: old -> new` with secrets masked."""
        before, after = (
            "not set" if value is None else mask_value(self.key, value)
            for value in (self.before, self.after)
        )
        return f"{self.key}: {before} -> {after}{' (changed)' if before == after else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """One connector of a plan; `file` is None for a deletion."""

    name: str
    change: Change
    file: ConnectorFile | None = None
    differences: tuple[KeyDifference, ...] = ()


def plan_apply(
    files: Sequence[ConnectorFile],
    configs: Mapping[str, Config],
    prune: Sequence[str] = (),
    *,
    masked: bool = False,
) -> list[PlannedChange]:
    """Compare files with the stored configs; `prune` are names to delete when no file has them.

    A mask in a file stands for the secret that the connector holds. UsageError for a connector that
    two documents describe, or for another masked value; `masked` allows these, for a plan that is
    only shown.
    """
    places: dict[str, str] = {}
    plan = []
    for file in files:
        if file.name in places:
            raise UsageError(
                f"connector `{file.name}` is described in {places[file.name]} and in {file.place}"
            )
        places[file.name] = file.place
        stored = configs.get(file.name)
        known = unmasked(file, stored or {})
        if not masked:
            refuse_masked(known)
        if stored is None:
            change, found = Change.CREATE, differences({}, known.config)
        else:
            # The worker adds the name; a file need not repeat it.
            name = {"name": file.name}
            found = differences({**name, **stored}, {**name, **known.config})
            change = Change.UPDATE if found else Change.UNCHANGED
        plan.append(PlannedChange(name=file.name, change=change, file=known, differences=found))
    plan.extend(
        PlannedChange(name=name, change=Change.DELETE) for name in prune if name not in places
    )
    return plan


def unmasked(file: ConnectorFile, stored: Config) -> ConnectorFile:
    """Return a file with stored values where it has the masks that `get` prints for them."""
    held = {
        key: value
        for key in masked_keys(file.config)
        if (value := stored.get(key)) and mask_value(key, value) == file.config[key]
    }
    return replace(file, config={**file.config, **held})


def refuse_masked(file: ConnectorFile) -> None:
    """Raise UsageError for a config that was printed with its secrets hidden."""
    if hidden := masked_keys(file.config):
        raise UsageError(
            f"{file.place}: {', '.join(hidden)} holds {MASK}, the mask of a secret"
            " that the connector does not have",
            hint="write the secret or a ${provider:path:key} reference; get prints them with"
            " --show-secrets",
        )


def differences(before: Config, after: Config) -> tuple[KeyDifference, ...]:
    """Return the keys that differ, sorted."""
    return tuple(
        KeyDifference(key=key, before=before.get(key), after=after.get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    )


def patched(before: Config, change: Config) -> tuple[str, ...]:
    """Return a configuration after a change of single keys, as texts; None removes a key."""
    after = {key: value for key, value in {**before, **change}.items() if value is not None}
    return tuple(difference.text() for difference in differences(before, after))
