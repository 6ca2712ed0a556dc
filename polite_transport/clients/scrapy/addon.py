"""What goes into Scrapy's settings."""

from scrapy.settings import BaseSettings

from polite_transport.clients.scrapy.middleware import PoliteMiddleware

# Beneath the HTTP cache (900), so that a hit takes no turn; nothing stands between this and the
# downloader that would send a request again.
PRIORITY = 950


class PoliteAddon:
    """Puts ``PoliteMiddleware`` in the place of Scrapy's own handling of robots.txt."""

    def update_settings(self, settings: BaseSettings) -> None:
        """See Scrapy's add-ons."""
        middlewares = settings["DOWNLOADER_MIDDLEWARES"]
        # Scrapy's own lets simultaneous first requests through (2.14 to 2.19), and keeps no delay.
        middlewares["scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"] = None
        middlewares[PoliteMiddleware] = PRIORITY
