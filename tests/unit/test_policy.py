"""What a policy accepts, what it refuses, and which one is in force for a host."""

import copy
import dataclasses
import pickle
import re
from decimal import Decimal
from typing import Any

import pytest

from polite_transport import Policy
from polite_transport.policy import TAKES
from polite_transport.url import target

TRUTHS = ["obey_disallow", "obey_crawl_delay", "obey_visit_time"]


def policy(**options: Any) -> Policy:
    return Policy(**options)


NUMBERS = [
    "min_delay",
    "max_delay",
    "turn_limit",
    "robots_ttl",
    "robots_max_bytes",
    "robots_timeout",
]


@pytest.mark.parametrize("name", [*NUMBERS, "max_wait"])
@pytest.mark.parametrize(
    "value", [-1, -0.001, float("nan"), float("inf"), "1", True, b"1", [], 1j, Decimal(1), 10**400]
)
def test_numbers_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        policy(**{name: value})


@pytest.mark.parametrize("name", NUMBERS)
def test_none_is_no_number(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        policy(**{name: None})


@pytest.mark.parametrize("name", ["turn_limit", "robots_ttl", "robots_max_bytes", "robots_timeout"])
def test_some_must_be_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        policy(**{name: 0})


def test_others_may_be_zero() -> None:
    assert policy(min_delay=0, max_delay=0, max_wait=0).max_wait == 0


def test_bytes_are_whole() -> None:
    assert policy(robots_max_bytes=1e6).robots_max_bytes == 1_000_000
    assert isinstance(policy(robots_max_bytes=1e6).robots_max_bytes, int)
    with pytest.raises(ValueError, match="robots_max_bytes"):
        policy(robots_max_bytes=1.5)


@pytest.mark.parametrize(
    "name",
    [
        *("pace_from", "on_forbidden", "on_too_many_requests", "on_unreachable", "on_html"),
        "robots_redirects",
    ],
)
@pytest.mark.parametrize("value", ["", "Allow", None, True, "never"])
def test_choices_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}=.*must be '"):
        policy(**{name: value})


def test_a_delay_that_could_never_be_kept() -> None:
    with pytest.raises(ValueError, match="no request could ever be sent"):
        policy(min_delay=301)
    assert policy(min_delay=301, max_delay=301).min_delay == 301


@pytest.mark.parametrize("token", ["", "My Bot", "MyBot/1.0", "MyBot*", "bücher", "a\nb"])
def test_a_product_token_that_no_file_can_name(token: str) -> None:
    with pytest.raises(ValueError, match="product_token"):
        policy(product_token=token)


@pytest.mark.parametrize("token", ["MyBot", "my-bot_2.0"])
def test_a_product_token(token: str) -> None:
    assert policy(product_token=token).product_token == token


def in_force(own: Policy, url: str) -> Policy | None:
    where = target(url)
    assert where is not None
    return None if own.exempts(where.host, where.origin) else own.for_host(where.host, where.origin)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("Example.ORG.", "http://example.org/"),
        (".bücher.example", "http://www.xn--bcher-kva.example/"),
        ("example.org:80", "http://example.org/"),
        ("example.org:443", "https://example.org/"),
        ("localhost:8000", "http://localhost:8000/"),
        ("0:0:0:0:0:0:0:1", "http://[::1]:8000/"),
        ("[2001:DB8::0001]", "http://[2001:db8::1]/"),
        ("[2001:DB8::0001]:81", "http://[2001:db8::1]:81/"),
        ("[::1]:80", "http://[::1]/"),
    ],
)
def test_names_of_hosts_in_any_spelling(name: str, url: str) -> None:
    assert in_force(policy(exempt_hosts=[name]), url) is None
    own = policy(min_delay=7)
    assert in_force(policy(overrides={name: own}), url) is own
    assert in_force(policy(exempt_hosts=[name]), "http://other.example/") is not None


@pytest.mark.parametrize(
    "name",
    [
        *("http://example.org", "https://example.org/", "example.org/", "example.org/a", "a b", ""),
        *(
            "example.org:http",
            "example.org:",
            "example.org:99999",
            ".",
            "[::g]",
            "user@example.org",
        ),
        *("*.example.org", "*", "example.org?q"),
    ],
)
def test_names_that_no_host_has(name: str) -> None:
    for options in ({"exempt_hosts": [name]}, {"overrides": {name: Policy()}}):
        with pytest.raises(ValueError):  # noqa: PT011 - which one it is does not matter
            policy(**options)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        *((name, None, "True or False") for name in TRUTHS),
        *((name, "no", "True or False") for name in TRUTHS),
        *((name, 0, "True or False") for name in TRUTHS),
        ("exempt_hosts", "localhost", "a collection of host names"),
        ("exempt_hosts", b"localhost", "a collection of host names"),
        ("exempt_hosts", [5], "a collection of host names"),
        ("exempt_hosts", 5, "a collection of host names"),
        ("exempt_hosts", None, "a collection of host names"),
        ("overrides", ["a"], "a mapping from host names to policies"),
        ("overrides", {5: 6}, "a mapping from host names to policies"),
        ("overrides", None, "a mapping from host names to policies"),
        ("product_token", 5, "a name that a group"),
        ("product_token", b"MyBot", "a name that a group"),
        ("on_html", ["allow"], "'allow' or 'disallow'"),
        ("min_delay", [1], "a finite number, at least 0"),
        ("turn_limit", None, "a finite number, above 0"),
        ("robots_max_bytes", 0.5, "a whole number, above 0"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(name: str, value: Any, wanted: str) -> None:
    shown = re.escape(f"Policy({name}={value!r}): it must be {wanted}")
    with pytest.raises(ValueError, match=f"^{shown}"):
        policy(**{name: value})


def test_every_field_is_checked() -> None:
    assert set(TAKES) == {each.name for each in dataclasses.fields(Policy)}


def test_a_name_of_a_host_that_is_none_is_told_with_its_option() -> None:
    with pytest.raises(ValueError, match=r"^Policy\(exempt_hosts=…\): 'a b' is no name of a host"):
        policy(exempt_hosts=["a", "a b"])
    with pytest.raises(ValueError, match=r"^Policy\(overrides=…\): '' is no name of a host"):
        policy(overrides={"": Policy()})
    with pytest.raises(ValueError, match="a mapping from host names"):
        policy(overrides={5: Policy()})


def test_a_value_that_nobody_can_read_is_cut() -> None:
    for value in ("x" * 10**6, 10**5_000, {"x": "y" * 10**6}):
        with pytest.raises(ValueError, match=r"^Policy\(min_delay=") as refused:
            policy(min_delay=value)
        assert len(str(refused.value)) < 300


def test_overrides_hold_policies_without_overrides() -> None:
    for own in ({"min_delay": 3}, None, 3):
        with pytest.raises(ValueError, match="must be a mapping from host names to policies"):
            policy(overrides={"example.org": own})
    for nested in (policy(overrides={"a": Policy()}), policy(exempt_hosts=["a"])):
        with pytest.raises(ValueError, match="of its own"):
            policy(overrides={"example.org": nested})


def test_the_first_that_matches_is_in_force() -> None:
    shop, rest = policy(min_delay=5), policy(min_delay=1)
    own = policy(overrides={"shop.example.org": shop, ".example.org": rest}, exempt_hosts=["me"])
    assert in_force(own, "https://shop.example.org/") is shop
    assert in_force(own, "https://www.example.org/") is rest
    assert in_force(own, "https://example.com/") is own
    assert in_force(own, "http://me:8000/") is None


def test_exempt_is_exempt_whatever_overrides_say() -> None:
    own = policy(overrides={"example.org": Policy()}, exempt_hosts=[".example.org"])
    assert in_force(own, "http://example.org/") is None


@pytest.mark.parametrize(
    ("options", "nothing"),
    [
        ({}, False),
        ({"obey_disallow": False}, False),
        ({"obey_crawl_delay": False}, False),
        ({"obey_disallow": False, "obey_crawl_delay": False}, True),
        ({"obey_disallow": False, "obey_crawl_delay": False, "obey_visit_time": True}, False),
    ],
)
def test_when_robots_txt_is_not_asked_for(options: dict[str, bool], nothing: bool) -> None:
    assert policy(**options).asks_nothing is nothing


def test_it_is_a_value() -> None:
    own = policy(min_delay=2, exempt_hosts=["a"], overrides={"b": policy(min_delay=1)})
    same = policy(min_delay=2, exempt_hosts=("A",), overrides={"B": policy(min_delay=1)})
    assert own == same
    assert hash(own) == hash(same)
    assert pickle.loads(pickle.dumps(own)) == own
    assert copy.deepcopy(own) == own
    assert dataclasses.replace(own, max_wait=3.0).exempt_hosts == ("a",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        own.min_delay = 0  # type: ignore[misc]


def test_what_was_passed_in_can_change_and_the_policy_does_not() -> None:
    names, overrides = ["a"], {"b": Policy()}
    own = policy(exempt_hosts=names, overrides=overrides)
    names.append("c")
    overrides["c"] = Policy()
    assert in_force(own, "http://c/") is own


def test_the_defaults_are_those_that_are_documented() -> None:
    own = Policy()
    assert (own.min_delay, own.max_delay, own.max_wait, own.turn_limit) == (0, 300, None, 60)
    assert (own.robots_ttl, own.robots_max_bytes, own.robots_timeout) == (86_400, 512_000, 10)
    assert (own.obey_disallow, own.obey_crawl_delay, own.obey_visit_time) == (True, True, False)
