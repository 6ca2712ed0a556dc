"""The product token that a User-Agent header stands for: RFC 9309 section 2.2.1."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"[A-Za-z0-9_.\-]+")
# What a browser-like header says of itself between "compatible;" and the end of that parenthesis.
_COMPATIBLE = re.compile(r"\bcompatible\s*;([^()]*)", re.IGNORECASE)
_PRODUCT = re.compile(r"\s*([A-Za-z0-9_.\-]+)/[A-Za-z0-9]")


@lru_cache(maxsize=1024)
def product_token(user_agent: str) -> str:
    """Return the product token of ``user_agent``; empty where it is missing or begins with none.

    A robot in a browser's clothes is the first ``name/version`` behind ``compatible;``. Old
    Internet Explorers say that too, and then ``Trident/6.0``, but are browsers.
    """
    compatible = _COMPATIBLE.search(user_agent)
    if compatible and not compatible[1].lstrip().startswith("MSIE "):
        for part in compatible[1].split(";"):
            product = _PRODUCT.match(part)
            if product:
                return product[1]
    found = _TOKEN.match(user_agent.lstrip())
    return found[0] if found else ""
