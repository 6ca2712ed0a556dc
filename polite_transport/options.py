"""What an option takes; a value that it does not take is refused at once, by name."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

_LONGEST_SHOWN = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class Takes:
    """What one option takes.

    wanted: in words, as they follow "it must be".
    holds: whether a value is that.
    shown: how a value that is not is shown.
    """

    wanted: str
    holds: Callable[[object], bool]
    shown: Callable[[object], str] = repr

    def or_none(self) -> "Takes":
        """Return what takes None too."""
        return Takes(
            f"{self.wanted}, or None",
            lambda value: value is None or self.holds(value),
            self.shown,
        )


def one_of(*choices: str) -> Takes:
    """Return what takes one of some words."""
    return Takes(
        " or ".join(map(repr, choices)), lambda value: isinstance(value, str) and value in choices
    )


def check_options(takes: Mapping[str, Takes], given: Callable[[str], object], of: str = "") -> None:
    """Refuse the first option whose value is none that it takes.

    given: returns an option's value. of: the class whose options they are.

    Raises ValueError, whatever is wrong with the value; it names the option, the value and what is
    wanted.
    """
    for name, each in takes.items():
        value = given(name)
        if not each.holds(value):
            shown = f"{name}={_text(each.shown, value)}"
            raise ValueError(f"{f'{of}({shown})' if of else shown}: it must be {each.wanted}")


def _text(shown: Callable[[object], str], value: object) -> str:
    try:
        text = shown(value)
    except Exception:  # noqa: BLE001 - anything may be given, an int of 5,000 digits too
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def is_collection_of_text(value: object) -> TypeGuard[Collection[str]]:
    """Whether it is a collection, each of text; text itself is none."""
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(each, str) for each in cast("Collection[object]", value))


NAMES = Takes("a collection of host names, such as ['example.org']", is_collection_of_text)
