"""Which connections go to a daemon of this machine, and to no host: they are left alone.

httpx keeps the path of the socket, in a pool's ``_uds``. urllib3 and http.client know no such
thing; docker, requests-unixsocket and ops have classes for it, which are named for what they do and
do it in the method that connects. The name alone is not enough, nor is a syllable of it. (aiohttp
has public classes, and ``clients.aiohttp`` asks for those.)
"""

import re
from typing import Any

_NAMED = re.compile(r"_*(?:Unix|UDS|Npipe)(?![a-z])")
_CONNECTS = frozenset({"connect", "_new_conn"})  # of a connection; of a pool


def is_local_socket(opens: Any) -> bool:
    """Whether what opens a client's connections goes to a unix socket or a named pipe.

    opens: a pool of urllib3, a transport of httpx, or the class of connections that is given to
        ``do_open`` of urllib.request.
    """
    if getattr(getattr(opens, "_pool", None), "_uds", None) is not None:
        return True
    kind: Any = opens if isinstance(opens, type) else type(opens)
    return _is_local(kind) or _is_local(getattr(kind, "ConnectionCls", None))


def _is_local(kind: Any) -> bool:
    return any(
        _NAMED.match(each.__name__) and not _CONNECTS.isdisjoint(each.__dict__)
        for each in getattr(kind, "__mro__", ())
    )
