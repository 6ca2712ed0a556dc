"""URLs as robots.txt and pacing see them."""

import socket
from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite_transport.url import (
    InvalidURL,
    Target,
    ascii_host,
    handshake_url,
    matches_host,
    presentable,
    target,
)

# What getaddrinfo connects to 127.0.0.1
LOOPBACK = [
    *("127.1", "127.0.1", "127.0.0.1.", "127.1.", "2130706433", "2130706433."),
    *("0x7f000001", "0X7F.1", "0x7f.0x0.0x0.0x1", "0x0000000007f.1", "0177.0.0.01", "017700000001"),
    *("0000000000000000000000017700000001", "127.0x1", "127.00.1"),
    *("\uff12\uff11\uff13\uff10\uff17\uff10\uff16\uff14\uff13\uff13", "127\u30021", "\uff10x7f.1"),
]
NUMBERED = [
    *("web.1", "1.2.3.256", "1.2.3.4.5", "256.1.1.1", "1.65536.1", "1.16777216", "4294967296"),
    *("0x100000000", "08.1.1.1", "1.0x", "0x", "0xg", "1.2.3.a", "a.0x7f", "127.0.0.-1", "1_0.1"),
    *("9" * 60, "1..2", "0b1"),
]


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://example.org/a?b=c", "http://example.org", "/a?b=c"),
        ("http://example.org", "http://example.org", "/"),
        ("http://example.org?q", "http://example.org", "/?q"),
        ("http://example.org/#top", "http://example.org", "/"),
        ("http://example.org#top", "http://example.org", "/"),
        ("http://example.org/a#b?c", "http://example.org", "/a"),
        ("http://example.org/?", "http://example.org", "/?"),
        ("HTTP://Example.ORG/A", "http://example.org", "/A"),
        ("hTTps://EXAMPLE.org", "https://example.org", "/"),
        (" \t\nhttp://example.org/", "http://example.org", "/"),
        # Ports
        ("http://example.org:80/", "http://example.org", "/"),
        ("https://example.org:443/", "https://example.org", "/"),
        ("http://example.org:443/", "http://example.org:443", "/"),
        ("https://example.org:80/", "https://example.org:80", "/"),
        ("http://example.org:/", "http://example.org", "/"),
        ("http://example.org:08080/", "http://example.org:8080", "/"),
        ("http://example.org:65535/", "http://example.org:65535", "/"),
        ("http://example.org:0/", "http://example.org:0", "/"),
        # Userinfo is nobody's business
        ("http://user:pass@example.org/", "http://example.org", "/"),
        ("http://user@evil.example@example.org/", "http://example.org", "/"),
        ("http://a:b@c:d@example.org:81/x", "http://example.org:81", "/x"),
        ("http://@example.org/", "http://example.org", "/"),
        # A backslash ends the authority, as in urllib3 and in browsers
        ("http://example.org\\@other.example/", "http://example.org", "/\\@other.example/"),
        ("http://example.org\\a", "http://example.org", "/\\a"),
        # Trailing dot, IDN, underscores, numbers
        ("http://example.org./", "http://example.org", "/"),
        ("http://example.org.:81/", "http://example.org:81", "/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example", "/"),
        ("http://BÜCHER.example./", "http://xn--bcher-kva.example", "/"),
        ("http://XN--bcher-kva.example/", "http://xn--bcher-kva.example", "/"),
        ("http://faß.example/", "http://xn--fa-hia.example", "/"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah", "/"),
        ("http://my_host/", "http://my_host", "/"),
        ("http://127.0.0.1/", "http://127.0.0.1", "/"),
        ("http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1", "/"),
        *((f"http://{each}/", "http://127.0.0.1", "/") for each in LOOPBACK),
        ("http://127.1:8080/x", "http://127.0.0.1:8080", "/x"),
        ("http://1.2.3/", "http://1.2.0.3", "/"),
        ("http://1.65535/", "http://1.0.255.255", "/"),
        ("http://0/", "http://0.0.0.0", "/"),
        ("http://4294967295/", "http://255.255.255.255", "/"),
        ("http://0300.0250.0.052/", "http://192.168.0.42", "/"),
        # A number that is no address is a name, as to resolvers
        *((f"http://{each}/", f"http://{each}", "/") for each in NUMBERED),
        # IPv6 in one spelling
        ("http://[::1]/", "http://[::1]", "/"),
        ("http://[::1]:80/", "http://[::1]", "/"),
        ("http://[2001:DB8:0:0::0001]:8080/", "http://[2001:db8::1]:8080", "/"),
        ("http://u@[::1]:81", "http://[::1]:81", "/"),
        ("http://[::ffff:127.0.0.1]:81/", "http://127.0.0.1:81", "/"),
        ("http://[::FFFF:7f00:1]/", "http://127.0.0.1", "/"),
        ("http://[::127.0.0.1]/", f"http://[{IPv6Address('::127.0.0.1')}]", "/"),
        # What stands in a path stays as it is
        ("http://example.org/%7ea/../b//c", "http://example.org", "/%7ea/../b//c"),
        ("http://example.org/\ud800\x00 é", "http://example.org", "/\ud800\x00 é"),
        ("http://example.org/a\nb", "http://example.org", "/a\nb"),
        ("http://example.org/@other.example", "http://example.org", "/@other.example"),
    ],
)
def test_origin_and_path(url: str, origin: str, path: str) -> None:
    found = target(url)
    assert found is not None
    assert (found.origin, found.path, found.url) == (origin, path, origin + path)
    assert target(found.url) == found, "what is shown means the same again"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user@Example.org:8443/a", "example.org"),
        ("http://[2001:DB8::1]:80/", "2001:db8::1"),
        ("http://bücher.example:81/", "xn--bcher-kva.example"),
        ("http://example.org.", "example.org"),
        ("http://0x7f000001:81/", "127.0.0.1"),
        ("http://[::ffff:7f00:1]:81/", "127.0.0.1"),
    ],
)
def test_host_is_what_turns_are_kept_by(url: str, host: str) -> None:
    found = target(url)
    assert found is not None
    assert found.host == host


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "/a", "//example.org/a", "ftp://example.org/", "file:///etc/passwd"),
        *("mailto:a@example.org", "data:,x", "http:/example.org", "http:example.org", "httpx://a/"),
        *("ws://example.org/", "http+unix://socket/a", "xhttp://example.org/", "about:blank"),
    ],
)
def test_other_schemes_are_not_ours(url: str) -> None:
    assert target(url) is None


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://",
            "http:///a",
            "http://?q",
            "http://#f",
            "http://@/",
            "http://:80/",
            "http://./",
        ),
        *("http://a:b/", "http://a:-1/", "http://a:65536/", "http://a:99999999/", "http://a:1:2/"),
        *("http://a:\uff18\uff10/", "http://a:8 0/", "http://a:+80/", "http://a:0x50/"),
        *("http://[::1/", "http://::1/", "http://[::g]/", "http://[]/", "http://[1.2.3.4]/"),
        *("http://[::1]a/", "http://[::1]:b/", "http://a[::1]/"),
        *("http://a b/", "http://a\tb/", "http://a\nb/", "http://a\x00b/", "http://a%2eb/"),
        *("http://a<b/", 'http://a"b/', "http://a^b/", "http://a|b/", "http://a,b/", "http://{a}/"),
        *("http://\ud800/", "http://\u2028/", "http://ü" + "x" * 70 + "/", "http://-ü-/"),
        "http://a\u200db.example/",
    ],
)
def test_what_two_clients_could_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(InvalidURL):
        target(url)


def test_a_refused_url_does_not_show_its_password() -> None:
    for url in ("http://user:secret@a:b/", "http://user:secret@[::g]/", "http://user:secret@a b/"):
        with pytest.raises(InvalidURL) as caught:
            target(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("ws://example.org/socket", "http://example.org/socket"),
        ("wss://example.org:8443/ws://", "https://example.org:8443/ws://"),
        (" WsS://example.org/", "https://example.org/"),
        ("http://example.org/ws://", "http://example.org/ws://"),
        ("wsx://example.org/", None),
        ("ftp://ws/", None),
    ],
)
def test_a_web_socket_opens_with_a_get(url: str, asked: str | None) -> None:
    where = target(handshake_url(url))
    assert (None if where is None else where.url) == asked


def test_targets_compare_and_hash_by_value() -> None:
    assert {target("http://a/b"), target("http://A:80/b")} == {
        Target("http://a/b", "http://a", "a", "/b")
    }


@pytest.mark.skipif(not hasattr(socket, "inet_aton"), reason="no inet_aton to compare with")
@given(
    st.lists(
        st.one_of(
            st.integers(0, 2**33).flatmap(
                lambda number: st.sampled_from(["{}", "0x{:x}", "0{:o}", "0x00{:X}"]).map(
                    lambda form: form.format(number)
                )
            ),
            st.integers(0, 260).map(str),
            st.sampled_from(["0", "00", "0x", "08", "0xg", "a", "-1", "127", "0x7f"]),
        ),
        min_size=1,
        max_size=5,
    ).map(".".join)
)
def test_addresses_are_what_inet_aton_reads(name: str) -> None:
    try:
        expected = socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        expected = name.lower()
    assert ascii_host(name) == expected


def test_a_host_has_one_ascii_spelling() -> None:
    assert ascii_host("Bücher.Example.") == "xn--bcher-kva.example"
    for bad in ("", ".", "a/b", "a b", "a:1", "\ud800"):
        with pytest.raises(InvalidURL):
            ascii_host(bad)


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("example.org", "http://example.org/", True),
        ("Example.ORG", "https://example.org:8443/", True),
        ("example.org", "http://www.example.org/", False),
        ("example.org", "http://notexample.org/", False),
        (".example.org", "http://example.org/", True),
        (".example.org", "http://a.b.example.org/", True),
        (".example.org", "http://notexample.org/", False),
        (".example.org", "http://example.org.evil.example/", False),
        ("example.org:8080", "http://example.org:8080/", True),
        ("example.org:8080", "http://example.org/", False),
        ("example.org:80", "http://example.org/", True),
        ("example.org:443", "https://example.org/", True),
        ("example.org:443", "http://example.org/", False),
        ("::1", "http://[::1]:8080/", True),
        ("[::1]", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]/", False),
        ("[::1]:80", "http://[::1]/", True),
        ("127.0.0.1", "http://127.1:8080/", True),
        ("127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080/", True),
    ],
)
def test_names_in_a_policy(pattern: str, url: str, matches: bool) -> None:
    where = target(url)
    assert where is not None
    assert matches_host(pattern, where.host, where.origin) is matches


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://user:secret@example.org/x#f", "ftp://example.org/x"),
        ("http://user:se@cret@a,b/x@y", "http://a,b/x@y"),
        ("http://user:sec/ret@example.org/x", "http://example.org/x"),
        ("http://user:sec#ret@example.org/x", "http://example.org/x"),
        ("http://user:sec:r?et@example.org/x", "http://example.org/x"),
        ("ftp:\\\\user:secret@example.org", "ftp:\\\\example.org"),
        ("//user:secret@example.org/", "//example.org/"),
        ("redis://:secret@example.org:6379/0", "redis://example.org:6379/0"),
        ("http://example.org:8000/x@y", "http://example.org:8000/x@y"),
        ("http://example.org:99999/x@y", "http://example.org:99999/x@y"),
        ("http://[::g]/x@y:z", "http://[::g]/x@y:z"),
        ("file:///home/a@b#c", "file:///home/a@b"),
        ("file:///C:/a@b", "file:///C:/a@b"),
        ("mailto:a@example.org", "mailto:a@example.org"),
        ("data:text/plain,a://b:c@d", "data:text/plain,a://b:c@d"),
        ("", ""),
    ],
)
def test_what_is_shown_of_a_url_that_is_not_taken_apart(url: str, shown: str) -> None:
    assert presentable(url) == shown
