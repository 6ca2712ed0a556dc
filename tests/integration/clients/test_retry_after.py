"""What a site asks for in answer to one request, kept by all that come after."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from polite_transport import MemoryStore, PoliteSession, WaitTooLong
from polite_transport.testing import Answer, Site

from .faces import UA, Visitor

OPEN = "User-agent: *\nDisallow:\n"
# Read against the site's own clock, whatever ours says.
SENT = "Tue, 01 Sep 2026 10:00:00 GMT"
UNTIL = "Tue, 01 Sep 2026 10:00:01 GMT"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]

ASKED = {
    "127.0.0.1": (429, "1"),
    "127.0.0.2": (503, "1"),
    "127.0.0.3": (307, "1"),
    "127.0.0.4": (429, UNTIL),
    "127.0.0.5": (503, UNTIL),
    "127.0.0.6": (302, UNTIL),
}
UNUSABLE = {
    "127.0.0.7": (503, None),
    "127.0.0.8": (429, "soon"),
    "127.0.0.9": (503, "0"),
    "127.0.0.10": (429, "-1"),
    "127.0.0.11": (503, "Thu, 01 Jan 1970 00:00:00 GMT"),
}


def busy_site(site: Start) -> Site:
    place = site(OPEN, addresses=(*ASKED, *UNUSABLE))
    for host, (status, value) in (ASKED | UNUSABLE).items():
        headers = {"Date": SENT} | ({} if value is None else {"Retry-After": value})
        place.serve("/busy", Answer(status=status, headers=headers), host=host)
    return place


def test_the_whole_host_is_left_alone(site: Start, visit: Visit) -> None:
    place = busy_site(site)
    client = visit()
    for host, (status, value) in (ASKED | UNUSABLE).items():
        seen = client.get(place.url("/busy", host), follow=False)
        assert (seen.status, seen.headers.get("Retry-After")) == (status, value)
    client.get_all(place.url(f"/{n}", host) for host in place.addresses for n in range(2))
    for host in place.addresses:
        busy, *after = [each.time for each in place.log if each.host == host][1:]
        # As long as it asked for; a second where it asked for nothing that could be kept.
        assert min(after) - busy >= 1.0
        assert len(after) == 2


def test_other_statuses_ask_for_no_pause(site: Start, visit: Visit) -> None:
    place = site(OPEN)
    client = visit()
    for status in (200, 404, 500):
        client.get(place.url(f"/status/{status}?retry_after=100"))
    client.get(place.url("/next"))
    assert max(place.gaps()) < 50


@pytest.mark.parametrize("value", ["86400", "9" * 400])
def test_a_pause_beyond_the_policy_is_told_and_not_slept(
    site: Start, visit: Visit, value: str
) -> None:
    place = site(OPEN)
    client = visit()
    seen = client.get(place.url(f"/status/503?retry_after={value}"))
    assert (seen.status, seen.headers["Retry-After"]) == (503, value)
    with pytest.raises(WaitTooLong, match="max_delay=300") as refused:
        client.get(place.url("/next"))
    assert refused.value.wait > 86_300
    assert isinstance(refused.value, client.native)
    assert len(place.log) == 2


def test_back_off_doubles_until_a_response_is_fine(site: Start, store: MemoryStore) -> None:
    place = busy_site(site)

    def go_on(host: str) -> None:
        with PoliteSession(ua=UA, store=store) as session:
            for path in ("/busy", "/busy", "/fine", "/fine"):
                session.get(place.url(path, host))

    with ThreadPoolExecutor(len(UNUSABLE)) as threads:
        list(threads.map(go_on, UNUSABLE))
    for host in UNUSABLE:
        first, second, third = place.gaps(host)[1:]
        assert first >= 1.0
        assert second >= 2.0
        assert third < 1.0
