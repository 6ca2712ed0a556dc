"""What may go wrong with a server: each has its message, nothing is sent, it mends itself."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
import redis
import requests

from polite_transport import Policy, PoliteSession, RedisStore, StoreUnavailable
from polite_transport.stores.base import NOW, Seat
from polite_transport.testing import Site

from .servers import Crawl, RedisServer

Sites = Callable[..., Site]
Servers = Callable[..., RedisServer]
UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.2
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"


def get(store: RedisStore, place: Site, path: str = "/page", **policy: Any) -> None:
    with PoliteSession(ua=UA, store=store, policy=Policy(**policy)) as session:
        assert session.get(place.url(path)).status_code == 200


def assert_unavailable(store: RedisStore, place: Site, said: str) -> str:
    before = len(place.log)
    with (
        PoliteSession(ua=UA, store=store) as session,
        pytest.raises(StoreUnavailable, match=said) as caught,
    ):
        session.get(place.url("/page"))
    assert isinstance(caught.value, requests.RequestException)
    assert place.host in str(caught.value)
    assert len(place.log) == before
    return str(caught.value)


def test_down_and_up_again(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url, timeout=0.5)
    get(store, place)
    server.stop()
    started = time.monotonic()
    assert_unavailable(store, place, "does not answer")
    assert 0.4 < time.monotonic() - started < 4.0
    server.start()
    get(store, place)
    assert min(place.gaps()) >= DELAY
    store.close()


def test_those_who_wait_for_one_host_wait_for_the_server_together(
    site: Sites, redis_server: Servers
) -> None:
    place, new = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    server = redis_server()
    with closing(RedisStore(server.url, timeout=1.0)) as store:
        get(store, place)
        server.stop()
        started = time.monotonic()
        with ThreadPoolExecutor(12) as threads:
            urls = [each.url("/page") for each in (place, new)] * 6
            failed = [
                threads.submit(PoliteSession(ua=UA, store=store).get, url, timeout=10)
                for url in urls
            ]
            for each in failed:
                with pytest.raises(StoreUnavailable):
                    each.result()
        # One after the other they would have had a second each.
        assert 0.9 < time.monotonic() - started < 5.0
        server.start()
        get(store, place)
    assert new.targets() == []
    assert place.targets() == ["/robots.txt", "/page", "/page"]


def test_never_there(site: Sites, redis_server: Servers) -> None:
    server = redis_server()
    server.stop()
    said = assert_unavailable(RedisStore(server.url, timeout=0.2), site(ROBOTS), "does not answer")
    assert f"127.0.0.1:{server.port}" in said


def test_a_short_outage_is_waited_out(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url, timeout=8.0)
    get(store, place)
    server.stop()
    back = threading.Timer(1.0, server.start)
    back.start()
    get(store, place)
    back.join()
    assert min(place.gaps()) >= DELAY
    store.close()


def test_a_wrong_password_is_told_and_not_shown(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server("--requirepass", "open-sesame")
    for user in (":shibboleth@", ""):
        store = RedisStore(server.url.replace("//", f"//{user}"))
        said = assert_unavailable(store, place, "refuses the user or the password")
        assert "shibboleth" not in said + repr(store)
    store = RedisStore(server.url.replace("//", "//:open-sesame@"))
    get(store, place)
    assert "sesame" not in repr(store)
    store.close()


def test_a_server_that_drops_keys_is_refused_until_it_does_not(
    site: Sites, redis_server: Servers
) -> None:
    place = site(ROBOTS)
    server = redis_server("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
    store = RedisStore(server.url)
    assert_unavailable(store, place, "maxmemory-policy allkeys-lru")
    with server.client as client:
        client.config_set("maxmemory-policy", "noeviction")
    get(store, place)
    store.close()


def test_out_of_memory(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url)
    get(store, place)
    with server.client as client:
        client.config_set("maxmemory", "1mb")
        client.config_set("maxmemory-policy", "noeviction")
        assert_unavailable(store, place, "out of memory")
        client.config_set("maxmemory", "0")
    get(store, place)
    store.close()


def test_no_replicas(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url)
    get(store, place)
    with server.client as client:
        client.config_set("min-replicas-to-write", "1")
        assert_unavailable(store, place, "want of replicas")
        client.config_set("min-replicas-to-write", "0")
    get(store, place)
    store.close()


def test_a_replica(site: Sites, redis_server: Servers) -> None:
    primary = redis_server("--repl-diskless-sync-delay", "0")
    replica = redis_server()
    with replica.client as client:
        client.replicaof("127.0.0.1", str(primary.port))
        deadline = time.monotonic() + 20
        while client.info("replication")["master_link_status"] != "up":
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert_unavailable(RedisStore(replica.url), site(ROBOTS), "read-only replica")


def test_a_ready_client_lends_its_settings_and_keeps_its_connections(
    site: Sites, redis_server: Servers
) -> None:
    place = site(ROBOTS)
    server = redis_server("--requirepass", "open-sesame")
    mine = redis.Redis(port=server.port, password="open-sesame", decode_responses=True)
    store = RedisStore(mine, namespace="lent")
    get(store, place)
    assert "sesame" not in repr(store)
    store.close()
    assert mine.get("polite:{lent}:epoch") is not None
    names: Any = mine.keys()
    assert all(name.startswith("polite:{lent}:") for name in names)
    mine.close()


@pytest.mark.parametrize("namespace", ["", "a b", "x{y}", "ü", "n" * 65])
def test_a_namespace_that_is_no_word_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        RedisStore("redis://127.0.0.1:1", namespace=namespace)


def test_namespaces_are_robots_of_their_own(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    for namespace in ("one", "two"):
        store = RedisStore(server.url, namespace=namespace)
        get(store, place)
        store.close()
    assert place.targets().count("/robots.txt") == 2


def test_assumed_cold_a_new_namespace_has_nothing_to_wait_for_until_something_is_lost(
    redis_server: Servers,
) -> None:
    server = redis_server()
    store = RedisStore(server.url, assume_cold=True)
    seat = Seat("example.org", 5.0, 60.0)
    assert store.acquire(seat) == NOW
    store.release(seat, sent=True)
    assert RedisStore(server.url).acquire(Seat("other.org", 5.0, 60.0)) == NOW
    server.stop()
    server.start()
    assert 4.0 < store.acquire(Seat("third.org", 5.0, 60.0)).wait <= 5.0
    store.close()


def test_assumed_cold_a_namespace_that_others_have_begun_is_as_they_began_it(
    redis_server: Servers,
) -> None:
    server = redis_server()
    RedisStore(server.url).acquire(Seat("other.org", 5.0, 60.0))
    store = RedisStore(server.url, assume_cold=True)
    assert 4.0 < store.acquire(Seat("example.org", 5.0, 60.0)).wait <= 5.0
    store.close()


def test_assumed_cold_a_server_that_was_started_since_may_be_too(redis_server: Servers) -> None:
    server = redis_server("--appendonly", "yes", "--appendfsync", "always")
    store = RedisStore(server.url)
    store.acquire(Seat("other.org", 5.0, 60.0))
    store.close()
    server.stop()
    server.start()
    store = RedisStore(server.url, assume_cold=True)
    assert store.acquire(Seat("example.org", 5.0, 60.0)) == NOW
    store.close()


def test_assumed_cold_without_the_right_to_ask_for_restarts(redis_server: Servers) -> None:
    server = redis_server()
    with server.client as client:
        client.execute_command("ACL", "SETUSER", "bot", "on", ">pw", "~*", "&*", "+@all", "-info")
    store = RedisStore(server.url.replace("//", "//bot:pw@"), assume_cold=True)
    assert store.acquire(Seat("example.org", 5.0, 60.0)) == NOW
    store.close()


def test_a_copy_that_someone_changed_is_fetched_anew(
    site: Sites, redis_server: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    place = site(ROBOTS)
    server = redis_server()
    first = RedisStore(server.url)
    get(first, place)
    first.close()
    with server.client as client:
        (key,) = client.keys("polite:*:copy:*")
        client.hset(key, "body", "User-agent: *\nDisallow:\n")
    second = RedisStore(server.url)
    get(second, place)
    second.close()
    assert place.targets().count("/robots.txt") == 2
    assert "digest does not fit" in caplog.text


@pytest.mark.parametrize("persistence", ["no", "yes"])
def test_restarted_in_mid_run_no_gap_is_lost(
    site: Sites, redis_server: Servers, crawl: Callable[..., Crawl], persistence: str
) -> None:
    addresses = [f"127.0.0.{last}" for last in range(1, 9)]
    place = site("User-agent: *\nCrawl-delay: 0.5\n", addresses=addresses)
    server = redis_server("--appendonly", persistence)
    urls = [place.url("/page", host=address) for address in addresses]
    store = {"kind": "redis", "place": server.url, "timeout": 8.0}
    crawls = [crawl(store, urls, threads=4, seconds=6) for _ in range(2)]
    place.wait_for(16, timeout=20.0)
    server.stop()
    stopped = time.monotonic()
    time.sleep(1.5)
    before_start = time.monotonic()
    server.start()
    assert all(each.result()["errors"] == {} for each in crawls)
    assert min(place.gaps()) >= 0.5
    # What had its turn already goes out, one for each host; nothing else does.
    during = [each.host for each in place.log if stopped < each.time < before_start]
    assert max(Counter(during).values(), default=0) <= 1
    assert any(each.time > before_start for each in place.log)


def test_a_cluster_takes_the_scripts(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server("--cluster-enabled", "yes")
    with server.client as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        deadline = time.monotonic() + 20
        while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    store = RedisStore(redis.RedisCluster(host="127.0.0.1", port=server.port))
    get(store, place)
    get(store, place)
    assert min(place.gaps()) >= DELAY
    store.close()
