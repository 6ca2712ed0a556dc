"""The refusals as urllib3's own exceptions."""

from urllib3.exceptions import HTTPError, LocationParseError, ProtocolError

from polite_transport import errors
from polite_transport.decision import Decision
from polite_transport.errors import PoliteError
from polite_transport.flow import NoAnswer
from polite_transport.sending.native import Flavours, flavoured, native_error


class DisallowedByRobots(errors.DisallowedByRobots, HTTPError):
    """``polite_transport.DisallowedByRobots`` that ``except urllib3.exceptions.HTTPError`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, HTTPError):
    """``polite_transport.RobotsUnreachable`` that ``except urllib3.exceptions.HTTPError`` sees."""


class WaitTooLong(errors.WaitTooLong, HTTPError):
    """``polite_transport.WaitTooLong`` that ``except urllib3.exceptions.HTTPError`` sees."""


class StoreUnavailable(errors.StoreUnavailable, HTTPError):
    """``polite_transport.StoreUnavailable`` that ``except urllib3.exceptions.HTTPError`` sees."""


class InvalidURL(errors.InvalidURL, LocationParseError):
    """``polite_transport.InvalidURL`` that ``except urllib3.exceptions.HTTPError`` sees."""

    def __init__(self, decision: Decision, cause: str) -> None:
        super().__init__(decision, cause)
        self.location = decision.url


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


def native(error: PoliteError | NoAnswer) -> Exception:
    """Return what the caller of urllib3 sees."""
    if isinstance(error, NoAnswer):
        return native_error(error, HTTPError, ProtocolError)
    return flavoured(error, _FLAVOURS)
