"""What an option takes; a value that it does not take is refused at once, by name."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

_LONGEST_SHOWN = 200  # characters of a value


class Takes(NamedTuple):
    """What one option takes.

    wanted: in words, as they follow "it must be".
    holds: whether a value is that.
    shown: how a value that is not is shown.
    """

    wanted: str
    holds: Callable[[Any], bool]
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
            shown = f"{name}={each.shown(value)[:_LONGEST_SHOWN]}"
            raise ValueError(f"{f'{of}({shown})' if of else shown}: it must be {each.wanted}")


def _is_collection_of_text(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(each, str) for each in cast("Collection[object]", value))


NAMES = Takes("a collection of host names, such as ['example.org']", _is_collection_of_text)
