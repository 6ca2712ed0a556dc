"""The transports that httpx's own get for the environment's proxies, made as they are needed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from polite_transport.clients.httpx.routes import Routes

PATIENCE = 30  # seconds


@pytest.fixture(autouse=True)
def _proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{name.partition('_')[0]}.proxy.example")
    for name in ("all_proxy", "no_proxy", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)


def transport(_: str = "") -> httpx.BaseTransport:
    return httpx.MockTransport(lambda _: httpx.Response(200))


def test_two_threads_that_make_one_for_the_same_proxy_use_the_same() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow_at_first(_: str) -> httpx.BaseTransport:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE)
        return transport()

    routes = Routes(transport(), slow_at_first)
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(routes.to, httpx.URL("http://a.example"))
        assert begun.wait(PATIENCE)
        used, _ = routes.to(httpx.URL("http://b.example"))
        go_on.set()
        assert slow.result()[0] is used
    assert list(routes)[1:] == [used]  # so that it is closed


def test_one_that_is_made_while_they_are_closed() -> None:
    routes = Routes(transport(), transport)
    made, _ = routes.to(httpx.URL("http://a.example"))
    closing = iter(routes)
    next(closing)
    assert next(closing) is made
    routes.to(httpx.URL("https://a.example"))
    assert not list(closing)
