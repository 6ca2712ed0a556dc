"""What the compositions share: a private CA and a proxy that tunnels."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from polite_transport.testing import Site

from .tunnel import Tunnel

Start = Callable[..., Site]


class Authority(NamedTuple):
    """A private CA and a certificate of it for 127.0.0.1, each the path of a PEM file."""

    ca: str
    chain: str
    key: str


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let neither proxies nor certificates of the machine come in between."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("authority")
    paths = Authority(*(str(folder / name) for name in ("ca.pem", "chain.pem", "key.pem")))
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1", "localhost")
    ca.cert_pem.write_to_path(paths.ca)
    certificate.private_key_pem.write_to_path(paths.key)
    Path(paths.chain).write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    return paths


@pytest.fixture
def tls_site(site: Start, authority: Authority) -> Start:
    """Start https sites that only those who trust the private CA can visit."""

    def start(robots: str) -> Site:
        return site(robots, tls=(authority.chain, authority.key))

    return start


@pytest.fixture
def tunnel() -> Iterator[Callable[[], Tunnel]]:
    """Start proxies."""
    with ExitStack() as running:
        yield lambda: running.enter_context(Tunnel())
