"""Floor 5: existing clients and whole programs made polite.

``politely`` takes one client, ``install`` the whole process.
"""

from polite_transport.retrofit.clients import politely
from polite_transport.retrofit.process import Installed, install

__all__ = ["Installed", "install", "politely"]
