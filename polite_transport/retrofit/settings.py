"""What ``install`` takes, as text: from a policy file, and on to the program and its children."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from polite_transport.policy import TAKES, Policy
from polite_transport.visitor import visitor


@dataclass(frozen=True, slots=True)
class Settings:
    """How a whole process is to behave; see ``install``."""

    ua: str | None = None
    policy: Policy = field(default_factory=Policy)
    hosts: tuple[str, ...] | None = None
    exempt_hosts: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise the ValueError that ``install`` would raise."""
        visitor(self.ua, self.policy, None, hosts=self.hosts, exempt_hosts=self.exempt_hosts)

    def to_json(self) -> str:
        """Return it as JSON, for the environment of a program."""
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


_A_POLICY = "a policy is a table of its fields"


def load_policy(path: Path, **instead: Any) -> Policy:
    """Return the Policy that a TOML or JSON file describes, by the names of its fields.

    instead: fields that count in place of what the file says for all hosts.
    Raises ValueError, naming the field, and OSError.
    """
    content = path.read_bytes()
    try:
        text = content.decode()
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
        return policy_from({**_table(found, _A_POLICY), **instead})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def policy_from(found: object) -> Policy:
    """Return a Policy from plain values; raises ValueError, naming the field.

    What an entry of ``overrides`` does not name is as for all other hosts.
    """
    values = dict(_table(found, _A_POLICY))
    for name in values:
        if name not in TAKES:
            raise ValueError(f"Policy has no field {name!r}; it has {', '.join(sorted(TAKES))}")
    own = _table(values.pop("overrides", {}), "Policy(overrides=…) is a table of policies by host")
    for_all = {name: value for name, value in values.items() if name != "exempt_hosts"}
    overrides: dict[str, Policy] = {}
    for host, fields_of_its_own in own.items():
        try:
            named = _table(fields_of_its_own, _A_POLICY)
            overrides[host] = policy_from({**for_all, **named})
        except ValueError as error:
            raise ValueError(f"overrides of {host!r}: {error}") from error
    return Policy(**values, overrides=overrides)


def _table(found: object, wanted: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ValueError(f"{wanted}, not {found!r}")  # noqa: TRY004 - every bad value is one
    return cast("Mapping[str, Any]", found)
