"""Stores by URL, and by the environment."""

from pathlib import Path

import pytest
import redis.asyncio

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


def test_options_of_both_kinds_stand_in_the_query(tmp_path: Path) -> None:
    query = "?on_error=local&max_processes=8&assume_cold=true&timeout=2.5&lease=3"
    wanted = {
        "on_error": "local",
        "max_processes": 8,
        "assume_cold": True,
        "timeout": 2.5,
        "lease": 3.0,
    }
    store = open_store(f"sqlite://{tmp_path}/store.sqlite{query}")
    assert isinstance(store, SQLiteStore)
    assert store.path == f"{tmp_path}/store.sqlite"
    assert store.made_of()[1].items() >= wanted.items()
    store = open_store(f"redis://:secret@localhost:7000/3{query}&socket_keepalive=yes#fleet")
    assert isinstance(store, RedisStore)
    (server,), options = store.made_of()
    assert server == "redis://:secret@localhost:7000/3?socket_keepalive=yes"  # its client's own
    assert options.items() >= {**wanted, "namespace": "fleet"}.items()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("max_process=8", "max_process'.*max_processes"),
        ("max_processes=many", "max_processes='many'"),
        ("max_processes=0", "max_processes=0"),
        ("assume_cold=perhaps", "assume_cold='perhaps'"),
        ("lease", "lease=''"),
        ("on_error=open", "on_error='open'"),
        ("on_error=local", "max_processes"),
    ],
)
def test_what_is_wrong_in_a_query_is_named(tmp_path: Path, query: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        open_store(f"sqlite://{tmp_path}/store.sqlite?{query}")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///?lease=3",
        "",
        "store.sqlite",
        "sqlite:store",
        "sqlite:///",
        "postgres://u:secret@h/d",
        "redis:x",
        "user:secret@host:6379/0",
        "secret@host:6379",
    ],
)
def test_what_names_no_store_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///path/to/file") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_password_with_a_hash_in_it_is_not_shown() -> None:
    with pytest.raises(ValueError, match="written %23") as caught:
        open_store("redis://:a#secret@host/0")
    assert "secret" not in str(caught.value)


def test_an_option_that_no_redis_client_takes_is_named() -> None:
    with pytest.raises(ValueError, match="'on_eror'"):
        open_store("redis://127.0.0.1:1/0?on_eror=local")


def test_a_client_that_does_not_block_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a client that blocks, and none of redis\.asyncio"):
        RedisStore(redis.asyncio.Redis())


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
