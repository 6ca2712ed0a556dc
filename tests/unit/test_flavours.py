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
from polite_transport.sending.native import flavoured

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
