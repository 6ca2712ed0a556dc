"""The refusals as httpx's own exceptions, and what httpx's own say."""

import httpx

from polite_transport import errors
from polite_transport.errors import PoliteError
from polite_transport.flow import NOT_CONNECTED, NOT_SENT, UNANSWERED, Attempt, NoAnswer
from polite_transport.sending.native import Flavours, flavoured, native_error


class DisallowedByRobots(errors.DisallowedByRobots, httpx.RequestError):
    """``polite_transport.DisallowedByRobots`` that ``except httpx.HTTPError`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, httpx.RequestError):
    """``polite_transport.RobotsUnreachable`` that ``except httpx.HTTPError`` sees."""


class WaitTooLong(errors.WaitTooLong, httpx.RequestError):
    """``polite_transport.WaitTooLong`` that ``except httpx.HTTPError`` sees."""


class StoreUnavailable(errors.StoreUnavailable, httpx.RequestError):
    """``polite_transport.StoreUnavailable`` that ``except httpx.HTTPError`` sees."""


class InvalidURL(errors.InvalidURL, httpx.RequestError, httpx.InvalidURL):
    """``polite_transport.InvalidURL`` that ``except httpx.HTTPError`` sees."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


def native(error: PoliteError | NoAnswer) -> Exception:
    """Return what the caller of httpx sees."""
    if isinstance(error, NoAnswer):
        return native_error(error, httpx.RequestError, httpx.ConnectError)
    return flavoured(error, _FLAVOURS)


def failed(error: BaseException) -> Attempt:
    """Return what an exception says about whether the request may have reached the site."""
    if isinstance(error, httpx.PoolTimeout | httpx.UnsupportedProtocol):
        return NOT_SENT
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return NOT_CONNECTED
    return UNANSWERED
