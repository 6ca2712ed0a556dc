"""Floor 2: the politeness logic, written once, sans-IO.

What can wait is a generator of steps (``steps.py``); everything else is a function. Nothing here
knows a client, a socket, a thread or a clock.
"""

from polite_transport.flow.call import (
    NOT_CONNECTED,
    NOT_SENT,
    UNANSWERED,
    Attempt,
    Call,
    NoAnswer,
    answered,
)
from polite_transport.flow.request import check, enter, leave
from polite_transport.flow.turn import heed

__all__ = [
    "NOT_CONNECTED",
    "NOT_SENT",
    "UNANSWERED",
    "Attempt",
    "Call",
    "NoAnswer",
    "answered",
    "check",
    "enter",
    "heed",
    "leave",
]
