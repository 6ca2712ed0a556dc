"""What is added to a response of requests."""

from datetime import timedelta
from typing import Any

from requests.models import Response

from polite_transport.decision import Decision


class PoliteResponse(Response):
    """A response with what was decided about its request.

    polite: the Decision; None where nothing was to be decided.
    elapsed: without the time that the request waited for its turn.
    """

    __attrs__ = [*Response.__attrs__, "polite"]  # noqa: RUF012 - as requests declares it
    polite: Decision | None = None
    _waited = 0.0

    @property
    def elapsed(self) -> timedelta:
        """From sending the request to its response headers."""
        measured: timedelta = self.__dict__.get("elapsed", timedelta(0))
        return measured

    @elapsed.setter
    def elapsed(self, value: timedelta) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        # Session.send times the adapter as a whole, and sets what it has timed once. It is kept
        # where any response has it, since requests-cache puts a class of its own in our place.
        self.__dict__["elapsed"] = max(value - timedelta(seconds=self._waited), timedelta(0))
        self._waited = 0.0


def with_decision(response: Response, decision: Decision, waited: float) -> Response:
    """Put a Decision on a response. waited: seconds that are not to count in ``elapsed``."""
    # The response is made deep within requests: only its class can still be changed.
    if type(response) is Response:
        response.__class__ = PoliteResponse
    polite: Any = response
    polite.polite = decision
    polite._waited = waited  # noqa: SLF001 - of the class above
    return response
