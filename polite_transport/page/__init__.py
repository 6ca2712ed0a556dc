"""What a page asks of robots: X-Robots-Tag, meta robots, TDMRep, ``nofollow`` on links; pure."""

from polite_transport.page.directives import Directive, Place
from polite_transport.page.links import (
    Excluded,
    ExcludedBy,
    FollowableLinks,
    Link,
    followable_links,
)
from polite_transport.page.markup import MissingParser
from polite_transport.page.summary import PageDirectives, page_directives

__all__ = [
    "Directive",
    "Excluded",
    "ExcludedBy",
    "FollowableLinks",
    "Link",
    "MissingParser",
    "PageDirectives",
    "Place",
    "followable_links",
    "page_directives",
]
