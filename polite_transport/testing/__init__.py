"""For tests: a loopback web site in its own process that logs every request it is sent.

Nothing in this package imports an HTTP client: whichever one is tested comes from outside.
"""

from polite_transport.testing.mocks import assume_allowed
from polite_transport.testing.site import Site
from polite_transport.testing.values import Answer, Arrival

__all__ = ["Answer", "Arrival", "Site", "assume_allowed"]
