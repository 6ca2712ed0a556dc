"""What ``Site.assert_polite`` finds in a log."""

import http.client
from collections.abc import Callable

import pytest

from polite_transport.testing import Site
from polite_transport.testing.politeness import impolite
from polite_transport.testing.values import Arrival

ROBOTS = b"User-agent: *\nDisallow: /private\nCrawl-delay: 2\nUser-agent: FastBot\nCrawl-delay: 1\n"


def arrival(time: float, target: str, agent: str = "MyBot/1.0", host: str = "127.0.0.1") -> Arrival:
    return Arrival(time, host, 80, "GET", target, {"user-agent": agent}, 0)


def test_a_polite_log_has_nothing_to_tell() -> None:
    assert impolite([arrival(0, "/robots.txt"), arrival(2, "/a"), arrival(4, "/b")], ROBOTS) == []


def test_each_address_has_a_clock_of_its_own() -> None:
    log = [arrival(0, "/robots.txt"), arrival(0.1, "/robots.txt", host="127.0.0.2")]
    assert impolite(log, ROBOTS) == []


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ([arrival(0, "/a")], "/a was asked for before robots.txt"),
        ([arrival(0, "/robots.txt"), arrival(1.99, "/a")], "/a came 1.990 s after /robots.txt"),
        ([arrival(0, "/robots.txt"), arrival(2, "/private/x")], "/private/x was asked for"),
    ],
)
def test_each_fault_is_told(log: list[Arrival], told: str) -> None:
    found = impolite(log, ROBOTS)
    assert len(found) == 1
    assert told in found[0]


def test_the_delay_is_that_of_the_robot_that_came() -> None:
    log = [arrival(0, "/robots.txt", "FastBot/1"), arrival(1, "/a", "FastBot/1")]
    assert impolite(log, ROBOTS) == []


def test_a_site_judges_its_own_log(polite_site: Callable[..., Site]) -> None:
    place = polite_site("User-agent: *\nDisallow: /private\n")
    connection = http.client.HTTPConnection(place.host, place.port)
    for target in ("/robots.txt", "/page"):
        connection.request("GET", target)
        connection.getresponse().read()
    place.assert_polite()
    connection.request("GET", "/private/page")
    connection.getresponse().read()
    connection.close()
    with pytest.raises(AssertionError, match="/private/page was asked for"):
        place.assert_polite()
