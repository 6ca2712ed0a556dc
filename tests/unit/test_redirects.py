"""Where a redirected robots.txt may lead."""

from typing import Literal

import pytest

from polite_transport.robots.redirects import BadRedirect, next_hop
from polite_transport.url import Target, target


def at(url: str) -> Target:
    found = target(url)
    assert found is not None
    return found


HERE = at("https://example.org:8443/sub/robots.txt?x")


def hop(
    location: str | None, here: Target = HERE, allowed: Literal["follow", "same-host"] = "follow"
) -> str:
    return next_hop(here, location, allowed).url


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("https://a.example/r?y#z", "https://a.example/r?y"),
        ("http://user:secret@a.example/r", "http://a.example/r"),
        ("//a.example/r", "https://a.example/r"),
        ("/r", "https://example.org:8443/r"),
        ("r", "https://example.org:8443/sub/r"),
        ("../r", "https://example.org:8443/r"),
        ("?y", "https://example.org:8443/sub/robots.txt?y"),
        ("#z", "https://example.org:8443/sub/robots.txt?x"),
        ("HTTPS://A.example./r", "https://a.example/r"),
        ("http://8.8.8.8/r", "http://8.8.8.8/r"),
        ("http://0x08080808/r", "http://8.8.8.8/r"),
        ("http://[::ffff:8.8.8.8]/r", "http://8.8.8.8/r"),
        ("http://[2606:4700::1111]/r", "http://[2606:4700::1111]/r"),
        ("http://localhost.example/r", "http://localhost.example/r"),
        ("http://10.example/r", "http://10.example/r"),
        ("http://0x7f.example/r", "http://0x7f.example/r"),
        ("/a b%20c", "https://example.org:8443/a%20b%20c"),
        ("/~a|b{}%7E%zz", "https://example.org:8443/~a|b{}%7E%zz"),
        ("/r\u00e9?\u00e9", "https://example.org:8443/r%C3%A9?%C3%A9"),
        ("/r\u00c3\u00a9", "https://example.org:8443/r%C3%A9"),  # UTF-8 that was read as Latin-1
        ("/\u0434", "https://example.org:8443/%D0%B4"),
    ],
)
def test_it_leads_there(location: str, there: str) -> None:
    assert hop(location) == there


@pytest.mark.parametrize("location", [None, ""])
def test_nowhere(location: str | None) -> None:
    with pytest.raises(BadRedirect, match="without a Location"):
        hop(location)


@pytest.mark.parametrize(
    "location",
    [
        *(
            "ftp://a.example/r",
            "file:///etc/passwd",
            "mailto:a@a.example",
            "javascript:1",
            "data:,x",
        ),
        *(
            "http://",
            "https://",
            "//",
            "http:r",
            "https:/r",
            "http:",
            "http://[bad/",
            "http://a:b/",
        ),
        *("http://a b/", "//a:99999/", "http://\ud800/"),
    ],
)
def test_no_http_url(location: str) -> None:
    with pytest.raises(BadRedirect, match=r"no http\(s\) URL"):
        hop(location)


LOCAL = [
    *("localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.10", "10.0.0.1", "0.0.0.0"),
    *("192.168.1.1", "172.16.0.1", "172.31.255.255", "169.254.169.254", "100.64.0.1", "240.0.0.1"),
    *("255.255.255.255", "192.0.2.1", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12::1]"),
    *("[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[2001:db8::1]"),
    # What another resolver could read as one
    *("1.0x", "010.0.0.08", "web.1", "1.2.3.256"),
    # What resolvers read as addresses too
    *(
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.01",
        "\uff11\uff12\uff17.0.0.1",
    ),
]


@pytest.mark.parametrize("host", LOCAL)
def test_from_elsewhere_not_into_ones_own_network(host: str) -> None:
    with pytest.raises(BadRedirect, match="private network"):
        hop(f"http://{host}/r")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "192.168.1.1", "[::1]"])
def test_within_ones_own_network_it_is_no_intrusion(host: str) -> None:
    for here in ("http://localhost:81/robots.txt", "http://10.0.0.1/robots.txt", "http://[::1]/r"):
        assert hop(f"http://{host}:82/r", at(here)) == f"http://{host}:82/r"


@pytest.mark.parametrize(
    ("here", "there", "follows"),
    [
        ("http://example.org/", "http://example.org/r", True),
        ("http://example.org/", "https://example.org/r", True),
        ("http://example.org:81/", "https://example.org:444/r", True),
        ("https://example.org/", "https://example.org/r", True),
        ("https://example.org/", "http://example.org/r", False),
        ("http://example.org/", "http://example.org:81/r", False),
        ("https://example.org/", "https://example.org:444/r", False),
        ("http://example.org/", "http://www.example.org/r", False),
        ("http://example.org/", "https://a.example/r", False),
    ],
)
def test_the_same_host_policy(here: str, there: str, follows: bool) -> None:
    if follows:
        assert hop(there, at(here), "same-host") == there
    else:
        with pytest.raises(BadRedirect, match="stays on the same host"):
            hop(there, at(here), "same-host")
