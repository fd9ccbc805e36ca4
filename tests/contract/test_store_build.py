"""How a deployment opens its store."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.open_store import (
    is_postgres,
    migrate_store,
    open_store,
    search_limits_from_settings,
    store_limits_from_settings,
)
from holdfast.auth.context import LOCAL_USER
from holdfast.config.settings import FilesSettings, SearchSettings
from holdfast.errors import InvalidArgument, ResourceBusy
from holdfast.search.model import SearchLimits
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import new_caller, postgres_database


def test_the_default_is_a_private_folder_of_the_state(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path))
    Store(opened.database, StoreLimits()).write(LOCAL_USER, "p", "/a", "x")
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "store").rglob("*"))
    opened.close()
    again = open_store(str(tmp_path), "sqlite:////elsewhere/state.db")
    assert Store(again.database, StoreLimits()).read(LOCAL_USER, "p", "/a").text == "x"
    assert again.queue.count_open_jobs() == {"pending": 1}
    again.close()


def test_a_postgresql_address_opens_postgresql_and_brings_it_up_to_date(
    tmp_path: Path, postgres_server_url: str
) -> None:
    with postgres_database(postgres_server_url, migrated=False) as url:
        opened = open_store(str(tmp_path), url)
        me, store = new_caller(), Store(opened.database, StoreLimits())
        store.write(me, "p", "/a", "x")
        assert opened.queue.count_open_jobs() == {"pending": 1}
        assert store.purge(opened.upkeep) == 0
        assert migrate_store(url) == []
        opened.close()
    assert not (tmp_path / "store").exists()


def test_a_missing_driver_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_driver(name: str, *rest: Any) -> Any:
        if name.startswith("psycopg"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_driver)
    with pytest.raises(InvalidArgument, match=r"holdfast\[postgres\]"):
        open_store(str(tmp_path), "postgresql://nobody@/nothing")


def test_settings_become_limits() -> None:
    assert store_limits_from_settings(FilesSettings()) == StoreLimits()
    assert store_limits_from_settings(
        FilesSettings(versions_kept=1, version_days=2, idempotency_days=3)
    ) == StoreLimits(versions_kept=1, version_days=2, idempotency_days=3)
    limits = store_limits_from_settings(FilesSettings(allow_root_wipe=True, lock_timeout_ms=7))
    assert (limits.allow_root_wipe, limits.lock_timeout_ms) == (True, 7)
    assert search_limits_from_settings(SearchSettings()) == SearchLimits()
    assert search_limits_from_settings(SearchSettings(enabled=False, limit_max=9)) == SearchLimits(
        enabled=False, limit_max=9
    )


def test_only_postgresql_addresses_are_postgresql() -> None:
    assert is_postgres("postgresql://a/b")
    assert is_postgres("postgres://a/b")
    assert not is_postgres("sqlite:////x")
    assert not is_postgres(None)
    for wrong in ("postgresq://a/b", "mysql://a/b", "/var/lib/store.db"):
        with pytest.raises(InvalidArgument, match="DATABASE_URL must begin with postgresql://"):
            is_postgres(wrong)
    assert migrate_store(None) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush-hush@127.0.0.1:1/none",
        "postgresql://me:hush-hush#1@127.0.0.1/none",
        "postgresql://me:hush-hush/1@127.0.0.1/none",
        "postgresql://me@127.0.0.1:hush-hush/none",
        "postgresql://me@h/none?hush-hush=1",
    ],
)
def test_a_database_that_cannot_be_reached_is_said_without_its_password(url: str) -> None:
    with pytest.raises((ResourceBusy, InvalidArgument), match="DATABASE_URL") as caught:
        migrate_store(url)
    assert "hush" not in str(caught.value)
