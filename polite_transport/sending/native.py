"""Refusals and failures as a client's own exceptions, with a note on what they are about."""

import copy
from collections.abc import Mapping
from traceback import walk_tb

from polite_transport.errors import PoliteError
from polite_transport.flow import NoAnswer

Flavours = Mapping[type[PoliteError], type[PoliteError]]


def flavoured(error: PoliteError, flavours: Flavours) -> PoliteError:
    """Return a refusal as the client's own subclass, so that its native handlers see it."""
    # A layer beneath may have given it the flavour of another client.
    own = next((flavour for kind, flavour in flavours.items() if isinstance(error, kind)), None)
    if own is None or isinstance(error, own):
        return error
    translated = own(*error.made_of())
    for each in getattr(error, "__notes__", ()):
        translated.add_note(each)
    return translated


def native_error(
    no_answer: NoAnswer, native: type[Exception], fallback: type[Exception]
) -> Exception:
    """Return what the client raises where robots.txt got no answer: its own exception, with a note.

    native: the client's base error. fallback: what stands for another client's exception, where
        that client's fetch was the one that failed.
    """
    error = no_answer.error
    if not isinstance(error, native):
        error = fallback(str(error) or type(error).__name__)
    elif no_answer.shared:
        error = _copied(error)
    note(error, no_answer.note)
    return error


def _copied(error: Exception) -> Exception:
    """Return a copy: one exception that is raised in two threads would mix their tracebacks."""
    try:
        copied = copy.copy(error)
    except Exception:  # noqa: BLE001 - made from its args, which its class may not take so
        return error
    copied.args = error.args  # for the same reason
    copied.__dict__.pop("__notes__", None)  # the list would be one for both
    return copied


_MOCKS = {"responses", "requests_mock", "respx", "pytest_httpx", "aioresponses", "vcr"}
_ASSUME = (
    "HTTP is mocked here: let the mock answer /robots.txt (a 404 allows everything), or use "
    "polite_transport.testing.assume_allowed()"
)


def note(error: BaseException, text: str) -> None:
    """Say what an exception is about, once, and what to do about it where it comes of a mock."""
    if text not in getattr(error, "__notes__", ()):
        error.add_note(text)
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        if any(frame.f_globals.get("__name__", "").partition(".")[0] in _MOCKS for frame in frames):
            error.add_note(_ASSUME)
