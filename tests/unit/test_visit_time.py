"""Visit-time: how long until a site's window opens."""

import pytest

from polite_transport import Policy, WaitTooLong
from polite_transport.flow import check, enter
from polite_transport.pacing.visit_time import seconds_until_window

from .clockwork import START, Clockwork, file

HOUR = 3_600.0
MIDNIGHT = 19_675 * 86_400.0  # 2023-11-14 00:00 UTC


def until(window: tuple[int, int], hours: float) -> float:
    """Return the wait at a time of day; window: HHMM, as in the file."""
    start, end = (value // 100 * 60 + value % 100 for value in window)
    return seconds_until_window(start, end, MIDNIGHT + hours * HOUR) / HOUR


@pytest.mark.parametrize(
    ("window", "hours", "wait"),
    [
        ((900, 1700), 8.5, 0.5),
        ((900, 1700), 9, 0),
        ((900, 1700), 17, 0),
        ((900, 1700), 17 + 59 / 3_600, 0),
        ((900, 1700), 17.5, 15.5),
        ((2200, 600), 23, 0),
        ((2200, 600), 3, 0),
        ((2200, 600), 6.5, 15.5),
        ((2200, 600), 21, 1),
        ((0, 2359), 23.999, 0),
        ((1200, 1200), 12, 0),
        ((1200, 1200), 12.5, 23.5),
    ],
)
def test_until_the_window_opens(window: tuple[int, int], hours: float, wait: float) -> None:
    assert until(window, hours) == pytest.approx(wait)


# The clockwork's clock starts at 22:13:20 UTC.
NIGHT = file("User-agent: *\nVisit-time: 0100-0500\n")
WAIT = 2 * HOUR + 46 * 60 + 40


def test_it_is_kept_where_the_policy_says_so() -> None:
    assert MIDNIGHT <= START < MIDNIGHT + 86_400
    assert Clockwork(NIGHT).send() == 0
    world = Clockwork(NIGHT)
    call = world.call(policy=Policy(obey_visit_time=True))
    world.run(check(call))
    assert world.passed == 0
    world.run(enter(call))
    assert world.passed == pytest.approx(WAIT)
    assert call.decision.waited == pytest.approx(WAIT)


def test_it_counts_against_max_wait() -> None:
    with pytest.raises(WaitTooLong) as caught:
        Clockwork(NIGHT).send(policy=Policy(obey_visit_time=True, max_wait=60.0))
    assert caught.value.wait == pytest.approx(WAIT)
    patient = Policy(obey_visit_time=True, max_wait=WAIT + 1)
    assert Clockwork(NIGHT).send(policy=patient) == pytest.approx(WAIT)
