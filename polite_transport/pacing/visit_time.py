"""Visit-time: the hours of the day that a site keeps for robots; pure.

Not in RFC 9309: a record of 1996, ``Visit-time: HHMM-HHMM`` in UTC.
"""

DAY_MINUTES = 24 * 60


def seconds_until_window(start: int, end: int, now: float) -> float:
    """Return how long until the window opens, 0.0 inside it.

    start, end: minutes of the UTC day; a window may go over midnight, and its last minute is in it.
    now: wall clock, seconds since the epoch.
    """
    into_day = (now / 60) % DAY_MINUTES
    inside = (
        start <= into_day < end + 1 if start <= end else into_day >= start or into_day < end + 1
    )
    return 0.0 if inside else ((start - into_day) % DAY_MINUTES) * 60
