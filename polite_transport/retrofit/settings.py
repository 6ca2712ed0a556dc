"""What ``install`` takes, as text: from a policy file, and on to child processes."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from polite_transport.policy import Policy


@dataclass(frozen=True, slots=True)
class Settings:
    """How a whole process is to behave; see ``install``."""

    ua: str | None = None
    policy: Policy = Policy()  # noqa: RUF009 - a frozen value
    hosts: tuple[str, ...] | None = None
    exempt_hosts: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return it as JSON, for the environment of child processes."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Return what ``to_json`` wrote."""
        found: dict[str, Any] = json.loads(text)
        hosts = found["hosts"]
        return cls(
            found["ua"],
            policy_from(found["policy"]),
            None if hosts is None else tuple(hosts),
            tuple(found["exempt_hosts"]),
        )


def load_policy(path: Path) -> Policy:
    """Return the Policy that a TOML or JSON file describes, by the names of its fields.

    Raises ValueError, naming the field, and OSError.
    """
    content = path.read_bytes()
    try:
        if path.suffix.lower() == ".json":
            found = json.loads(content)
        else:
            found = tomllib.loads(content.decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(found, Mapping):
        raise ValueError(f"{path}: it holds no table of Policy fields")  # noqa: TRY004
    try:
        return policy_from(found)  # pyright: ignore[reportUnknownArgumentType]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def policy_from(found: Mapping[str, Any]) -> Policy:
    """Return a Policy from plain values; raises ValueError, naming the field."""
    known = {each.name for each in fields(Policy)}
    for name in found:
        if name not in known:
            raise ValueError(f"Policy has no field {name!r}; it has {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(found)
    values["overrides"] = {
        host: policy_from(own) for host, own in found.get("overrides", {}).items()
    }
    return Policy(**values)
