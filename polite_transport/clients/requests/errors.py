"""The refusals as requests' own exceptions."""

import requests
from requests.models import PreparedRequest

from polite_transport import errors
from polite_transport.errors import PoliteError
from polite_transport.flow import NoAnswer
from polite_transport.sending.native import Flavours, flavoured, native_error


class DisallowedByRobots(errors.DisallowedByRobots, requests.RequestException):
    """``polite_transport.DisallowedByRobots`` that ``except requests.RequestException`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, requests.RequestException):
    """``polite_transport.RobotsUnreachable`` that ``except requests.RequestException`` sees."""


class WaitTooLong(errors.WaitTooLong, requests.RequestException):
    """``polite_transport.WaitTooLong`` that ``except requests.RequestException`` sees."""


class StoreUnavailable(errors.StoreUnavailable, requests.RequestException):
    """``polite_transport.StoreUnavailable`` that ``except requests.RequestException`` sees."""


class InvalidURL(errors.InvalidURL, requests.exceptions.InvalidURL):
    """``polite_transport.InvalidURL`` that ``except requests.RequestException`` sees."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


def native_for(request: PreparedRequest, error: PoliteError | NoAnswer) -> Exception:
    """Return what the caller of requests sees.

    request: of the page; it stands on every exception of requests, and scripts log its URL.
    """
    if isinstance(error, NoAnswer):
        seen = native_error(error, requests.RequestException, requests.ConnectionError)
    else:
        seen = flavoured(error, _FLAVOURS)
    if isinstance(seen, requests.RequestException):
        seen.request = request
    return seen
