"""What is odd about a robots.txt in which no rule counts for anyone.

By RFC 9309 such a file allows everything, since lines that cannot be read are no rules (section
2.3.1.5). But whoever wrote it may have meant something else, and people should be told.
"""

from __future__ import annotations

from polite_transport.robots.records import BLANKS, RULES, lines_of, record_in, whole_lines


def oddity(body: bytes, max_bytes: int) -> str | None:
    """Return what is odd about a file without a User-agent line, for people.

    None where nothing is: it holds other records and no rules, or nothing but comments.
    """
    kept, _ = whole_lines(body, max_bytes)
    lines = [line.partition("#")[0] for line in lines_of(kept)]
    kinds = {record_in(line)[0] for line in lines}
    if kinds & RULES:
        return "its rules stand under no User-agent line and count for nobody"
    if any(kinds) or not any(line.strip(BLANKS) for line in lines):
        return None
    if _is_text(kept):
        return "it holds no line for robots"
    return "it holds no line for robots: is it text in UTF-8?"


def _is_text(body: bytes) -> bool:
    """Whether bytes are UTF-8 (section 2.3). UTF-16 of ASCII letters is full of NUL."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body
