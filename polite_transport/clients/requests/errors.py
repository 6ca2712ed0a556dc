"""The refusals as requests' own exceptions."""

import requests

from polite_transport import errors
from polite_transport.errors import PoliteError
from polite_transport.flow import NoAnswer
from polite_transport.in_hand import Flavours, flavoured, native_error


class DisallowedByRobots(errors.DisallowedByRobots, requests.RequestException):
    """``polite_transport.DisallowedByRobots`` that ``except requests.RequestException`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, requests.RequestException):
    """``polite_transport.RobotsUnreachable`` that ``except requests.RequestException`` sees."""


class WaitTooLong(errors.WaitTooLong, requests.RequestException):
    """``polite_transport.WaitTooLong`` that ``except requests.RequestException`` sees."""


class StoreUnavailable(errors.StoreUnavailable, requests.RequestException):
    """``polite_transport.StoreUnavailable`` that ``except requests.RequestException`` sees."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
}


def native(error: PoliteError | NoAnswer) -> Exception:
    """Return what the caller of requests sees."""
    if isinstance(error, NoAnswer):
        return native_error(error, requests.RequestException, requests.ConnectionError)
    return flavoured(error, _FLAVOURS)
