"""Scrapy (2.14 or newer): one line in ``ADDONS``.

::

    ADDONS = {"polite_transport.clients.scrapy.PoliteAddon": 0}

A downloader middleware checks each request, retries and redirects included, and lets it on to
Scrapy's own slots in its turn. The slots keep their own delays beside it: the larger counts.

Scrapy's scheduler sets the limits. A request that waits for its turn counts among
CONCURRENT_REQUESTS, as one that waits in a slot does. A response's status is known only with its
body, so that a Retry-After counts from there.

Settings: POLITE_UA (str), POLITE_POLICY (a Policy), POLITE_STORE (a Store, shared by a fleet).
"""

from polite_transport.clients.scrapy.addon import PoliteAddon
from polite_transport.clients.scrapy.middleware import PoliteMiddleware

__all__ = ["PoliteAddon", "PoliteMiddleware"]
