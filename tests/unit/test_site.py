"""The instrument's own tests: what the loopback site answers, and that its log is true."""

import asyncio
import http.client
import itertools
import json
import math
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from polite_transport.testing import Answer, Site

Start = Callable[..., Site]
Got = tuple[int, http.client.HTTPMessage, bytes]


@contextmanager
def connect(site: Site, host: str | None = None) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection(host or site.host, site.port, timeout=10)) as conn:
        yield conn


def ask(
    conn: http.client.HTTPConnection,
    target: str,
    method: str = "GET",
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Got:
    conn.request(method, target, body=body, headers=headers or {})
    response = conn.getresponse()
    return response.status, response.headers, response.read()


def get(site: Site, target: str = "/", host: str | None = None, **headers: str) -> Got:
    with connect(site, host) as conn:
        return ask(conn, target, headers={k.replace("_", "-"): v for k, v in headers.items()})


def raw(site: Site) -> socket.socket:
    return socket.create_connection((site.host, site.port), timeout=10)


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


# --- the log


def test_log_tells_each_request_as_sent_in_order(site: Start) -> None:
    running = site()
    with connect(running) as conn:
        ask(conn, "/a?b=%41&c", headers={"User-Agent": "MyBot/1.0", "X-Odd-CASE": " v "})
        ask(conn, "/second", "POST", b"body")
    get(running, "/third")
    first, second, third = running.log
    assert (first.method, first.target) == ("GET", "/a?b=%41&c")
    assert (first.host, first.port) == ("127.0.0.1", running.port)
    assert first.headers["user-agent"] == "MyBot/1.0"
    assert first.headers["x-odd-case"] == "v"
    assert (second.method, second.target) == ("POST", "/second")
    assert first.connection == second.connection != third.connection
    assert running.targets() == ["/a?b=%41&c", "/second", "/third"]


def test_repeated_headers_are_joined(site: Start) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\nX: 1\r\nx: 2\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n")
        read_all(sock)
    assert running.log[0].headers == {"x": "1, 2", "cookie": "a=1; b=2"}


def test_stamp_lies_between_sending_and_answering(site: Start) -> None:
    running = site(think=0.2)
    before = time.monotonic()
    get(running)
    after = time.monotonic()
    assert before <= running.log[0].time <= after - 0.2


def test_stamp_is_that_of_the_request_line_not_of_the_end(site: Start) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(b"GET /slowly HTTP/1.0\r\n")
        assert [arrival.target for arrival in running.wait_for(1)] == ["/slowly"]
        before_rest = time.monotonic()
        sock.sendall(b"Host: x\r\n\r\n")
        read_all(sock)
    (arrival,) = running.log
    assert arrival.time < before_rest
    assert arrival.headers == {"host": "x"}


def test_request_without_answer_is_logged(site: Start) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(b"GET /stall HTTP/1.1\r\n\r\n")
        running.wait_for(1)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)
    assert running.targets() == ["/stall"]


def test_gaps_are_those_of_each_host(site: Start) -> None:
    running = site(addresses=["127.0.0.1", "127.0.0.2"])
    for host, seconds in (("127.0.0.1", 0.1), ("127.0.0.2", 0.1), ("127.0.0.1", 0.0)):
        get(running, "/robots.txt", host)
        time.sleep(seconds)
    assert running.gaps("127.0.0.2") == []
    (gap,) = running.gaps("127.0.0.1")
    assert gap == running.log[2].time - running.log[0].time
    assert gap >= 0.2
    assert running.gaps() == [gap]
    assert running.targets("127.0.0.2") == ["/robots.txt"]


def test_clear_forgets_arrivals_and_counts(site: Start) -> None:
    running = site()
    get(running, "/large?size=10")
    assert running.sent("/large?size=10") == 10
    running.clear()
    assert running.log == ()
    assert running.sent("/large?size=10") == 0
    get(running, "/after")
    assert running.targets() == ["/after"]


def test_wait_for_says_how_far_it_came(site: Start) -> None:
    running = site()
    get(running)
    with pytest.raises(TimeoutError, match="1 of 2"):
        running.wait_for(2, timeout=0.05)


def test_wait_for_ends_with_the_arrival(site: Start) -> None:
    running = site()
    timer = threading.Timer(0.1, get, (running, "/a"))
    timer.start()
    before = time.monotonic()
    assert [arrival.target for arrival in running.wait_for(1, timeout=20)] == ["/a"]
    assert time.monotonic() - before < 20
    timer.join()


def test_log_stays_after_the_end() -> None:
    with Site() as running:
        get(running, "/a")
    assert running.targets() == ["/a"]
    with pytest.raises(RuntimeError, match="with statement"):
        running.clear()


def test_log_is_right_after_an_interrupted_call(site: Start) -> None:
    running = site()
    get(running, "/a")
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        running.wait_for(2, timeout=0.5)
    timer.join()
    assert running.targets() == ["/a"]


# --- robots.txt and answers of one's choice


def test_without_a_choice_there_is_no_robots_txt(site: Start) -> None:
    assert get(site(), "/robots.txt")[0] == 404


@pytest.mark.parametrize("robots", ["User-agent: *\n", b"User-agent: *\n"])
def test_robots_as_text_or_bytes(site: Start, robots: bytes | str) -> None:
    status, headers, body = get(site(robots=robots), "/robots.txt")
    assert (status, body) == (200, b"User-agent: *\n")
    assert headers["Content-Type"].startswith("text/plain")


def test_every_byte_survives(site: Start) -> None:
    body = bytes(range(256))
    assert get(site(robots=body), "/robots.txt")[2] == body


def test_successive_answers_the_last_repeated(site: Start) -> None:
    running = site(robots=[Answer(503), b"one", Answer(999, b"two", {"X": "y"})])
    got = [get(running, "/robots.txt") for _ in range(4)]
    assert [(status, body) for status, _, body in got] == [
        (503, b""),
        (200, b"one"),
        (999, b"two"),
        (999, b"two"),
    ]
    assert got[2][1]["X"] == "y"


def test_no_answer_at_all_is_refused(site: Start) -> None:
    with pytest.raises(ValueError, match="at least one"):
        site().serve("/a", [])


def test_robots_by_user_agent_goes_before_the_address(site: Start) -> None:
    running = site(
        robots="all",
        robots_by_address={"127.0.0.2": ["second", "again"]},
        robots_by_user_agent={"MyBot": "mine"},
        addresses=["127.0.0.1", "127.0.0.2"],
    )
    assert get(running, "/robots.txt")[2] == b"all"
    assert get(running, "/robots.txt", "127.0.0.2")[2] == b"second"
    assert get(running, "/robots.txt", "127.0.0.2", User_Agent="x mybot/2")[2] == b"mine"
    assert get(running, "/robots.txt", "127.0.0.2")[2] == b"again"


def test_serve_at_run_time_whole_target_before_path(site: Start) -> None:
    running = site()
    running.serve("/a", "path")
    running.serve("/a?q=1", "target")
    assert get(running, "/a?q=1")[2] == b"target"
    assert get(running, "/a?q=2")[2] == b"path"
    assert get(running, "http://other.example/a?q=2")[2] == b"path"
    running.serve("/a", [Answer(500)])
    assert get(running, "/a")[0] == 500


@pytest.mark.parametrize(
    ("given", "asked", "status"),
    [
        ({"ETag": '"1"'}, {"If_None_Match": '"1"'}, 304),
        ({"etag": '"1"'}, {"If_None_Match": '"2"'}, 200),
        ({"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}, {}, 200),
        (
            {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"},
            {"If_Modified_Since": "Thu, 01 Jan 2026 00:00:00 GMT"},
            304,
        ),
        ({}, {"If_None_Match": '"1"'}, 200),
        (
            {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"},
            {"If_None_Match": '"2"', "If_Modified_Since": "Thu, 01 Jan 2026 00:00:00 GMT"},
            200,
        ),
    ],
)
def test_conditional_requests(
    site: Start, given: dict[str, str], asked: dict[str, str], status: int
) -> None:
    running = site(robots=Answer(200, b"rules", given))
    got, headers, body = get(running, "/robots.txt", **asked)
    assert (got, body) == (status, b"rules" if status == 200 else b"")
    assert headers.get("ETag") == given.get("ETag", given.get("etag"))


# --- slow and broken answers


def test_delay_comes_before_the_headers(site: Start) -> None:
    running = site(robots=Answer(body=b"late", delay=0.2))
    before = time.monotonic()
    assert get(running, "/robots.txt")[2] == b"late"
    assert time.monotonic() - before >= 0.2


def test_drip_sends_piece_after_piece(site: Start) -> None:
    running = site(robots=Answer(body=b"0123456789", drip=(4, 0.1)))
    before = time.monotonic()
    assert get(running, "/robots.txt")[2] == b"0123456789"
    assert time.monotonic() - before >= 0.3


def test_drip_sends_the_headers_first_and_no_more_than_is_due(site: Start) -> None:
    running = site(robots=Answer(body=b"0123456789" * 100, drip=(4, 0.1)))  # 25 seconds
    with connect(running) as conn:
        conn.request("GET", "/robots.txt")
        response = conn.getresponse()
        assert response.headers["Content-Length"] == "1000"
        assert response.read(4) == b"0123"
        assert 4 <= running.sent("/robots.txt") < 1000
        response.close()


def test_chunked_on_demand(site: Start) -> None:
    chunked = Answer(body=b"0123456789", headers={"Transfer-Encoding": "chunked"}, drip=(4, 0.0))
    running = site(robots=chunked)
    with raw(running) as sock:
        sock.sendall(b"GET /robots.txt HTTP/1.1\r\nConnection: close\r\n\r\n")
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert b"Content-Length" not in head
    assert body == b"4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n0\r\n\r\n"


def test_close_before_anything(site: Start) -> None:
    running = site(robots=[Answer(close="before"), b"now"])
    with pytest.raises(http.client.RemoteDisconnected):
        get(running, "/robots.txt")
    assert get(running, "/robots.txt")[2] == b"now"
    assert running.targets() == ["/robots.txt"] * 2


def test_close_within_the_headers(site: Start) -> None:
    running = site(robots=Answer(close="headers"))
    with raw(running) as sock:
        sock.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        got = read_all(sock)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in got


@pytest.mark.parametrize("headers", [{}, {"Transfer-Encoding": "chunked"}])
def test_close_within_the_body(site: Start, headers: dict[str, str]) -> None:
    running = site(robots=Answer(body=b"some", headers=headers, close="body"))
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(running, "/robots.txt")
    assert caught.value.partial == b"some"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_endless_body_ends_with_the_client(site: Start, version: str) -> None:
    running = site(robots=Answer(body=b"User-agent: *\n", endless=True, drip=(20, 0.01)))
    with raw(running) as sock:
        sock.sendall(f"GET /robots.txt HTTP/{version}\r\n\r\n".encode())
        got = b""
        while got.count(b"User-agent") < 20:
            got += sock.recv(100)
    count = running.sent("/robots.txt")
    assert count >= 20 * len(b"User-agent: *\n")
    while count < (count := running.sent("/robots.txt")):  # it stops, or the test hangs
        time.sleep(0.05)


def test_endless_body_unread_is_not_sent(site: Start) -> None:
    running = site(robots=Answer(endless=True))
    with raw(running) as sock:
        sock.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        sock.recv(100)
    assert 0 < running.sent("/robots.txt") < 20_000_000


def test_never_answered_until_the_client_goes(site: Start) -> None:
    running = site(robots=[Answer(delay=math.inf), b"now"])
    with raw(running) as sock:
        sock.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        running.wait_for(1)
    assert get(running, "/robots.txt")[2] == b"now"


# --- HTTP


def test_keep_alive_and_close(site: Start) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(b"GET /1 HTTP/1.1\r\n\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert read_all(sock).count(b"HTTP/1.1 200 OK") == 2
    with raw(running) as sock:
        sock.sendall(b"GET /3 HTTP/1.0\r\n\r\n")
        assert read_all(sock).count(b"HTTP/1.1 200 OK") == 1
    assert [arrival.connection for arrival in running.log] == [0, 0, 1]


def test_answer_that_closes(site: Start) -> None:
    running = site(robots=Answer(headers={"Connection": "close"}))
    with raw(running) as sock:
        sock.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        assert read_all(sock).count(b"onnection: close") == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "body", [b"caf\xc3\xa9 \xff", [b"caf\xc3", b"\xa9 \xff"]], ids=["length", "chunked"]
)
def test_bodies_of_requests(site: Start, method: str, body: Any) -> None:
    running = site()
    with connect(running) as conn:
        status, headers, answer = ask(
            conn, "/echo?x", method, iter(body) if isinstance(body, list) else body
        )
        assert ask(conn, "/after")[0] == 200
    assert (status, headers["Content-Type"]) == (200, "application/json")
    seen = json.loads(answer)
    assert (seen["method"], seen["target"]) == (method, "/echo?x")
    assert seen["body"] == "café \\xff"
    assert ("transfer-encoding" in seen["headers"]) is isinstance(body, list)
    assert running.targets() == ["/echo?x", "/after"]


def test_head_announces_what_get_sends(site: Start) -> None:
    running = site()
    with connect(running) as conn:
        status, headers, body = ask(conn, "/large?size=12345", "HEAD")
        assert (status, headers["Content-Length"], body) == (200, "12345", b"")
        assert ask(conn, "/large?size=12345")[2] == b"x" * 12345
    assert {arrival.connection for arrival in running.log} == {0}


def test_expect_continue(site: Start) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(
            b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
            b"Connection: close\r\n\r\n"
        )
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"hi")
        assert b'"body": "hi"' in read_all(sock)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n",
        b"\xff\xfe\x00\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_gets_a_400_and_stands_in_the_log(site: Start, sent: bytes) -> None:
    running = site()
    with raw(running) as sock:
        sock.sendall(sent)
        assert read_all(sock).startswith(b"HTTP/1.1 400 ")
    assert len(running.log) == 1
    assert get(running)[0] == 200


def test_vanishing_clients_disturb_nobody(site: Start, capfd: pytest.CaptureFixture[str]) -> None:
    running = site(robots=Answer(endless=True))
    reset = struct.pack("ii", 1, 0)  # close with a reset instead of a goodbye
    for sent, abrupt in itertools.product(
        [
            b"",
            b"GET",
            b"GET /a HTTP/1.1\r\n",
            b"GET /b HTTP/1.1\r\nUser-Agent: MyBot\r\nAcc",
            b"POST /c HTTP/1.1\r\nContent-Length: 9\r\n\r\nfour",
            b"GET /large?size=9000000 HTTP/1.1\r\n\r\n",
            b"GET /slow?headers=0.1 HTTP/1.1\r\n\r\n",
            b"GET /stall HTTP/1.1\r\n\r\n",
            b"GET /robots.txt HTTP/1.1\r\n\r\n",
            b"GET /" + b"x" * 2_000_000,
        ],
        [False, True],
    ):
        with raw(running) as sock:
            sock.sendall(sent)
            if abrupt:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    assert get(running, "/still-here")[0] == 200
    log = running.log
    assert {"user-agent": "MyBot"} in [a.headers for a in log if a.target == "/b"]
    assert "/" + "x" * 2_000_000 not in running.targets()
    running.__exit__(None, None, None)
    assert capfd.readouterr().err == ""


# --- the built-in pages


@pytest.mark.parametrize(
    ("target", "status", "header", "value"),
    [
        ("/any/path?at=all", 200, "Content-Type", "text/html; charset=utf-8"),
        ("/redirect?to=/a%3Fb%3Dc&status=301", 301, "Location", "/a?b=c"),
        ("/redirect?to=http://b.example/&retry_after=2", 302, "Retry-After", "2"),
        ("/status/418", 418, "Retry-After", None),
        ("/status/503?retry_after=1", 503, "Retry-After", "1"),
        ("/status/204", 204, "Content-Length", None),
        ("/set-cookie", 200, "Set-Cookie", "visit=1; Path=/"),
        ("/set-cookie?name=a&value=b", 200, "Set-Cookie", "a=b; Path=/"),
        ("/digest", 401, "WWW-Authenticate", None),
        ("/status/x", 400, "Retry-After", None),
    ],
)
def test_pages(site: Start, target: str, status: int, header: str, value: str | None) -> None:
    running = site()
    got, headers, _ = get(running, target)
    assert got == status
    assert value is None or headers[header] == value
    if value is None and header != "WWW-Authenticate":
        assert header not in headers


def test_page_shows_its_target_escaped(site: Start) -> None:
    assert b"<p>This is /a&amp;b.</p>" in get(site(), "/a&b")[2]


def test_flaky_and_drop_count_by_key(site: Start) -> None:
    running = site()
    flaky = "/flaky?fails=2&status=429&retry_after=3&key="
    assert [get(running, flaky + "a")[0] for _ in range(4)] == [429, 429, 200, 200]
    assert get(running, flaky + "b")[1]["Retry-After"] == "3"
    for target in ("/drop?key=a&fails=1", "/drop", "/drop"):
        with pytest.raises(http.client.RemoteDisconnected):
            get(running, target)
    assert get(running, "/drop?key=a&fails=1")[0] == 200
    assert running.targets().count("/drop") == 2


def test_slow_page(site: Start) -> None:
    running = site()
    with connect(running) as conn:
        before = time.monotonic()
        conn.request("GET", "/slow?headers=0.1&body=0.3&size=25")
        response = conn.getresponse()
        assert time.monotonic() - before >= 0.1
        assert response.read() == b"x" * 25
        assert time.monotonic() - before >= 0.4


def test_slow_body_has_quick_headers(site: Start) -> None:
    running = site()
    with connect(running) as conn:
        conn.request("GET", "/slow?body=100")
        response = conn.getresponse()  # or the connection's own timeout ends it
        assert response.headers["Content-Length"] == "1000"
        assert running.sent("/slow?body=100") < 1000
        response.close()


@pytest.mark.parametrize(("password", "status"), [("password", 200), ("wrong", 401)])
def test_digest_against_the_standard_library(site: Start, password: str, status: int) -> None:
    running = site()
    passwords = urllib.request.HTTPPasswordMgr()
    passwords.add_password("loopback", running.origin, "user", password)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPDigestAuthHandler(passwords)
    )
    try:
        with opener.open(running.url("/digest?a=b")) as response:
            assert response.status == status
    except urllib.error.HTTPError as error:
        error.close()
        assert error.code == status  # noqa: PT017 - one of two outcomes
    assert len(running.log) >= 2


# --- where it listens and how it behaves there


def test_many_addresses_on_one_port(site: Start) -> None:
    addresses = [f"127.0.{1 + i // 250}.{1 + i % 250}" for i in range(1000)]
    running = site(addresses=addresses, robots="hello")
    for host in (addresses[0], addresses[-1]):
        assert get(running, "/robots.txt", host)[2] == b"hello"
    assert [arrival.host for arrival in running.log] == ["127.0.1.1", "127.0.4.250"]
    assert running.url("/a", "127.0.4.250") == f"http://127.0.4.250:{running.port}/a"
    with pytest.raises(ConnectionRefusedError):
        get(running, host="127.0.9.9")


def test_ipv6(site: Start) -> None:
    running = site(addresses=["::1", "127.0.0.1"])
    assert running.origin == f"http://[::1]:{running.port}"
    get(running, host="::1")
    assert running.log[0].host == "::1"


def test_port_of_choice(site: Start) -> None:
    with Site() as first:
        get(first)
    again = site(port=first.port)
    assert again.port == first.port
    with pytest.raises(OSError, match="start"):
        site(port=first.port)


def test_tls(site: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for blob in issued.cert_chain_pems:
        blob.write_to_path(chain, append=True)
    issued.private_key_pem.write_to_path(key)
    running = site(tls=(chain, key))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    conn = http.client.HTTPSConnection(running.host, running.port, timeout=10, context=context)
    with closing(conn):
        assert ask(conn, "/a")[0] == 200
    assert running.url("/a") == f"https://127.0.0.1:{running.port}/a"
    assert running.targets() == ["/a"]
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        get(running)
    assert running.targets() == ["/a"]
    running.__exit__(None, None, None)
    assert capfd.readouterr().err == ""


def test_accept_jitter_holds_up_the_first_request_of_a_connection(site: Start) -> None:
    running = site(accept_jitter=(1.0, 1.0))
    with connect(running) as conn:
        sent = []
        for target in ("/first", "/second"):
            sent.append(time.monotonic())
            ask(conn, target)
    first, second = running.log
    assert first.time - sent[0] >= 1.0
    assert second.time - sent[1] < 1.0


def test_think_is_for_pages(site: Start) -> None:
    running = site(think=math.inf, robots="rules")
    assert get(running, "/robots.txt")[2] == b"rules"
    with raw(running) as sock:
        sock.sendall(b"GET /page HTTP/1.1\r\n\r\n")
        running.wait_for(2)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)


def test_idle_connections_are_closed(site: Start) -> None:
    running = site(idle_timeout=0.1)
    with raw(running) as sock:
        sock.sendall(b"GET /slow?headers=0.3 HTTP/1.1\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 200 OK")


def test_thousand_connections_at_once(site: Start) -> None:
    running = site()

    async def one(number: int, ready: asyncio.Barrier) -> bytes:
        reader, writer = await asyncio.open_connection(running.host, running.port)
        await ready.wait()
        writer.write(b"GET /%d HTTP/1.1\r\nConnection: close\r\n\r\n" % number)
        got = await reader.read()
        writer.close()
        return got

    async def all_of_them() -> list[bytes]:
        ready = asyncio.Barrier(1000)
        return await asyncio.gather(*(one(number, ready) for number in range(1000)))

    got = asyncio.run(all_of_them())
    assert all(b"This is /%d." % number in answer for number, answer in enumerate(got))
    log = running.log
    assert {arrival.target for arrival in log} == {f"/{number}" for number in range(1000)}
    assert len({arrival.connection for arrival in log}) == 1000
    assert [arrival.time for arrival in log] == sorted(arrival.time for arrival in log)


# --- its process


def run(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    script = cwd / "bin" / "script.py"
    script.parent.mkdir()
    script.write_text(code)
    return subprocess.run(
        [sys.executable, script], cwd=cwd, capture_output=True, text=True, timeout=30, check=False
    )


def test_needs_no_main_guard_and_minds_no_odd_neighbour(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('imported')")
    code = """
import http.client
from polite_transport.testing import Site
with Site() as site:
    conn = http.client.HTTPConnection(site.host, site.port)
    conn.request("GET", "/a")
    conn.getresponse().read()
    conn.close()
print(site.targets())
"""
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['/a']\n", "")


def test_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = """
from polite_transport.testing import Site
site = Site()
site.__enter__()
print(site.port, flush=True)
os._exit(1)
"""
    port = int(run(code, tmp_path).stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.02)
    pytest.fail("the site outlived its owner")


def test_stops_with_clients_still_there(capfd: pytest.CaptureFixture[str]) -> None:
    running = Site(robots=Answer(endless=True)).__enter__()
    server = running._server
    assert server is not None
    with raw(running) as reading, raw(running) as stalled, raw(running), raw(running) as closing:
        reading.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
        stalled.sendall(b"GET /stall HTTP/1.1\r\n\r\n")
        closing.sendall(b"GET /large?size=50000000 HTTP/1.0\r\n\r\n")
        running.wait_for(3)
        running.__exit__(None, None, None)
    assert server.returncode == 0  # by itself, not killed
    assert capfd.readouterr().err == ""


def test_ctrl_c_is_for_the_owner(site: Start) -> None:
    running = site()
    assert running._server is not None
    running._server.send_signal(signal.SIGINT)
    for _ in range(2):
        assert get(running)[0] == 200


def test_imports_no_http_client(tmp_path: Path) -> None:
    code = """
import sys, polite_transport.testing
print({"requests", "httpx", "urllib3", "aiohttp"} & set(sys.modules))
"""
    assert run(code, tmp_path).stdout == "set()\n"


def test_says_so_where_its_process_is_gone() -> None:
    running = Site().__enter__()
    assert running._server is not None
    running._server.kill()
    running._server.wait()
    with pytest.raises(RuntimeError, match="has ended"):
        running.targets()
    with pytest.raises(RuntimeError, match="has ended"):
        running.__exit__(None, None, None)
    assert running.log == ()
