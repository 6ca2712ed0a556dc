"""Stores by URL, and by the environment."""

from pathlib import Path

import pytest

from polite_transport import MemoryStore, PoliteSession, RedisStore, SQLiteStore
from polite_transport.stores.chosen import open_store, process_store


def test_a_url_names_one_store_each_time(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/store.sqlite"
    store = open_store(url)
    assert isinstance(store, SQLiteStore)
    assert store.path == f"{tmp_path}/store.sqlite"
    assert open_store(url) is store


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey", "valkeys"])
def test_redis_and_valkey_with_a_namespace(scheme: str) -> None:
    store = open_store(f"{scheme}://:secret@localhost:7000/3#fleet")
    assert isinstance(store, RedisStore)
    assert "namespace='fleet'" in repr(store)
    assert "localhost:7000/3" in repr(store)
    assert "secret" not in repr(store)


@pytest.mark.parametrize(
    "url", ["", "store.sqlite", "sqlite:store", "sqlite:///", "postgres://u:secret@h/d", "redis:x"]
)
def test_what_names_no_store_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///path/to/file") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_the_environment_names_the_store_of_all_clients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert isinstance(process_store(), MemoryStore)
    monkeypatch.setenv("POLITE_STORE", f"sqlite://{tmp_path}/store.sqlite")
    assert PoliteSession().visitor.store is process_store()
    assert isinstance(process_store(), SQLiteStore)
    own = MemoryStore()
    assert PoliteSession(store=own).visitor.store is own
    monkeypatch.setenv("POLITE_STORE", "nonsense")
    with pytest.raises(ValueError, match="POLITE_STORE"):
        PoliteSession()
