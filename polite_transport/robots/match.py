"""Rules into an answer: RFC 9309 sections 2.2.2 and 2.2.3.

The most specific rule wins: the pattern with the most octets, and ``Allow`` where two are as
long. So the rules of a group are ranked once, and the best rank among those that match a path
decides it.

A pattern is a literal prefix, or one with wildcards behind it. The prefixes are kept sorted: the
last one that is not above a path is a prefix of it, or its ``parents`` lead to the longest one
that is. Wildcards are tried by rank, and only where their longest piece occurs. No step ever goes
back in a path.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

from polite_transport.robots.needles import MANY, Needles, best_fit
from polite_transport.robots.octets import all_canonical, canonical
from polite_transport.robots.wildcard import Wildcard, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

_STARTS_ON_HEX = re.compile(r"\*[0-9A-F]")  # such a piece could be found inside an escape


class Matcher:
    """The rules of one group, ready to be asked.

    no_rule: the rank that says that no rule matches.
    tells_escapes: whether a path has to be canonical. To other groups, one without ``%`` is as good
    as its canonical form, because no pattern can tell them apart.
    """

    __slots__ = (
        "_order",
        "_parents",
        "_prefixes",
        "_ranks",
        "_wildcards",
        "no_rule",
        "tells_escapes",
    )

    def __init__(self, patterns: Sequence[str], lines: Sequence[int]) -> None:
        """patterns: as written, in octets. lines: the line of each, negative for a ``Disallow``."""
        if not all_canonical("".join(patterns)):
            patterns = canonical("\n".join(patterns)).split("\n")
        together = "".join(patterns)
        self.tells_escapes = "%" in together or _STARTS_ON_HEX.search(together) is not None
        specificity = [
            2 * len(pattern) + (line > 0) for pattern, line in zip(patterns, lines, strict=True)
        ]
        order = sorted(range(len(patterns)), key=specificity.__getitem__, reverse=True)
        self._order = array("i", order)
        self.no_rule = len(order)
        ranked = [patterns[index] for index in order]
        # From the last to the first, so that the better of two equal patterns stays.
        best = dict(zip(reversed(ranked), range(len(ranked) - 1, -1, -1), strict=True))
        wildcards: dict[str, list[Wildcard]] = {}
        if "*" in together or "$" in together or "%2" in together:
            for rank, pattern in enumerate(ranked):
                if "*" in pattern or pattern[-1] == "$" or "%2" in pattern:
                    prefix, wildcard = cut(pattern, rank)
                    if prefix != pattern:
                        best.pop(pattern, None)
                        best.setdefault(prefix, self.no_rule)
                    if wildcard:
                        wildcards.setdefault(prefix, []).append(wildcard)
                    elif rank < best[prefix]:
                        best[prefix] = rank
        # Every path begins with "/", so what stands there can stand at the root of all prefixes.
        best[""] = min(best.get("", self.no_rule), best.pop("/", self.no_rule))
        if "/" in wildcards:
            wildcards[""] = sorted(wildcards.pop("/") + wildcards.get("", []))
        self._link(best, wildcards)

    def _link(self, best: dict[str, int], wildcards: dict[str, list[Wildcard]]) -> None:
        """Sort the prefixes and lead each to the longest other one that it begins with."""
        self._prefixes = prefixes = sorted(best)
        self._ranks = ranks = array("i", map(best.__getitem__, prefixes))
        self._parents = parents = array("i", [0]) * len(prefixes)
        parent, above = 0, [0]
        for at, (before, prefix) in enumerate(pairwise(prefixes), 1):
            if prefix.startswith(before):
                above.append(parent)
                parent = at - 1
            else:
                while parent and not prefix.startswith(prefixes[parent]):
                    parent = above.pop()
            parents[at] = parent
            if ranks[parent] < ranks[at]:  # noqa: PLR1730 - min() takes longer
                ranks[at] = ranks[parent]
        self._wildcards = {
            prefix: Needles(found) if len(found) > MANY else found
            for prefix, found in wildcards.items()
        }

    def rank(self, path: str) -> int:
        """Return the rank of the rule that decides ``path``, or ``no_rule``."""
        prefixes = self._prefixes
        at = bisect_right(prefixes, path) - 1
        while at and not path.startswith(prefixes[at]):
            at = self._parents[at]
        best = self._ranks[at]
        if self._wildcards:
            while True:
                wildcards = self._wildcards.get(prefixes[at])
                if wildcards is not None:
                    if isinstance(wildcards, Needles):
                        best = wildcards.best_fit(path, best)
                    else:
                        best = best_fit(wildcards, path, best)
                if not at:
                    break
                at = self._parents[at]
        return best

    def index(self, rank: int) -> int:
        """Return the index of the rule of ``rank`` in the lists that the matcher was made from."""
        return self._order[rank]
