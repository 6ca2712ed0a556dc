"""The refusals as what Scrapy drops a request for."""

from scrapy.exceptions import IgnoreRequest

from polite_transport import errors
from polite_transport.errors import PoliteError
from polite_transport.flow import NoAnswer
from polite_transport.sending.native import Flavours, flavoured, native_error


class DisallowedByRobots(errors.DisallowedByRobots, IgnoreRequest):
    """``polite_transport.DisallowedByRobots`` that Scrapy drops as an IgnoreRequest."""


class RobotsUnreachable(errors.RobotsUnreachable, IgnoreRequest):
    """``polite_transport.RobotsUnreachable`` that Scrapy drops as an IgnoreRequest."""


class WaitTooLong(errors.WaitTooLong, IgnoreRequest):
    """``polite_transport.WaitTooLong`` that Scrapy drops as an IgnoreRequest."""


class StoreUnavailable(errors.StoreUnavailable, IgnoreRequest):
    """``polite_transport.StoreUnavailable`` that Scrapy drops as an IgnoreRequest."""


class InvalidURL(errors.InvalidURL, IgnoreRequest):
    """``polite_transport.InvalidURL`` that Scrapy drops as an IgnoreRequest."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


def native(error: PoliteError | NoAnswer) -> Exception:
    """Return what Scrapy sees."""
    if isinstance(error, NoAnswer):
        # Its errors have no base: whatever a download handler raised goes to the errback.
        return native_error(error, Exception, OSError)
    return flavoured(error, _FLAVOURS)
