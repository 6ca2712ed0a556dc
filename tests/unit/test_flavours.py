"""Each refusal as each client's own exception."""

import copy
import pickle
from importlib import import_module
from urllib.error import URLError

import aiohttp
import httpx
import pytest
import requests
import urllib3
from scrapy.exceptions import IgnoreRequest

from polite_transport import InvalidURL, PoliteError, errors
from polite_transport.flow import NoAnswer
from polite_transport.sending.native import flavoured, native_error

from .test_errors import ERRORS

CLIENTS: dict[str, type[Exception]] = {
    "requests.errors": requests.RequestException,
    "httpx.errors": httpx.RequestError,
    "urllib3.errors": urllib3.exceptions.HTTPError,
    "aiohttp": aiohttp.ClientError,
    "urllib": URLError,
    "scrapy.errors": IgnoreRequest,
}
# What each client itself raises for a URL that it cannot read, as far as it has a name for that.
INVALID: dict[str, type[Exception]] = {
    "requests.errors": requests.exceptions.InvalidURL,
    "httpx.errors": httpx.InvalidURL,
    "urllib3.errors": urllib3.exceptions.LocationParseError,
    "aiohttp": aiohttp.InvalidURL,
}


def test_the_errors_that_are_tested_are_all_there_are() -> None:
    kinds = {each for each in vars(errors).values() if isinstance(each, type)}
    refusals = {each for each in kinds if issubclass(each, PoliteError)} - {PoliteError}
    assert {type(each) for each in ERRORS} == refusals


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_refusal_is_the_client_s_own_too(client: str, error: PoliteError) -> None:
    flavours = import_module(f"polite_transport.clients.{client}")._FLAVOURS
    own = flavoured(error, flavours)
    assert isinstance(own, CLIENTS[client])
    assert isinstance(own, type(error))
    for same in (own, pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert type(same) is type(own)
        assert str(same) == str(error)
        assert same.decision == error.decision
    if isinstance(error, InvalidURL):
        assert isinstance(own, INVALID.get(client, ValueError))
        for name in ("url", "location"):  # where those of aiohttp and urllib3 have the URL
            assert getattr(own, name, error.decision.url) == error.decision.url


class Reworded(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(f"number {number} is down")


class Particular(Exception):
    def __init__(self, host: str, *, port: int) -> None:
        super().__init__(f"{host}:{port} is down")


@pytest.mark.parametrize("error", [Reworded(7), Particular("host", port=80), OSError(7, "down")])
def test_who_shares_a_failure_hears_the_same_whatever_its_class_is_made_from(
    error: Exception,
) -> None:
    shared = native_error(NoAnswer(error, "http://a/robots.txt", shared=True), Exception, OSError)
    assert (type(shared), str(shared)) == (type(error), str(error))
    assert "http://a/robots.txt" in shared.__notes__[0]


def test_who_shares_a_failure_gets_an_exception_of_its_own() -> None:
    down = OSError("down")
    met = NoAnswer(down, "http://a/robots.txt", shared=True)
    first = native_error(met, Exception, OSError)
    assert first is not down
    assert not hasattr(down, "__notes__")
    own = native_error(NoAnswer(down, "http://a/robots.txt", shared=False), Exception, OSError)
    assert own is down
    second = native_error(met, Exception, OSError)
    assert [len(each.__notes__) for each in (first, own, second)] == [1, 1, 1]
    assert "it waited for another request to ask for http://a/robots.txt" in second.__notes__[0]
