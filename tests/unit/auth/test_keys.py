"""Keys are minted once, kept as a hash, and end at once."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.connection import apply_migrations
from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.adapters.sqlite.state.keys import SqliteKeys
from holdfast.adapters.sqlite.state.migrations import API_KEYS_VERSION, STEPS
from holdfast.auth.context import AuthContext
from holdfast.auth.keys import ApiKeys
from holdfast.auth.rates import Rate, parse_limits
from holdfast.errors import InvalidArgument, NotFound, ResourceBusy
from holdfast.secret import Secret


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[ApiKeys]:
    opened = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    yield opened
    opened.close()


def test_a_key_has_a_prefix_and_256_bits_and_none_is_like_another(keys: ApiKeys) -> None:
    minted = [keys.create()[0].reveal() for _ in range(50)]
    assert all(re.fullmatch(r"hf_[a-z2-7]{52}", key) for key in minted)
    assert len(set(minted)) == 50


def test_only_the_hash_is_kept(keys: ApiKeys, tmp_path: Path) -> None:
    secret, key = keys.create("build farm")
    assert key.apikey_hash == hashlib.sha256(secret.reveal().encode()).hexdigest()
    assert secret.reveal() not in repr((secret, key))
    keys.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.apikey_hash.encode() in stored
    assert secret.reveal().encode() not in stored
    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600


def test_a_good_key_is_its_own_tenant_and_a_revoked_or_unknown_one_is_nobody(keys: ApiKeys) -> None:
    _, key = keys.create("build farm")
    _, bare = keys.create()
    assert keys.tenant_of(key.apikey_hash) == AuthContext(key.apikey_hash, "build farm")
    assert keys.tenant_of(bare.apikey_hash) == AuthContext(bare.apikey_hash, f"key {bare.id}")
    keys.revoke(key.id)
    assert keys.tenant_of(key.apikey_hash) is None
    assert keys.tenant_of(bare.apikey_hash) is not None
    assert keys.tenant_of("f" * 64) is None


def test_another_process_sees_a_change_at_its_next_look(keys: ApiKeys, tmp_path: Path) -> None:
    other = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    _, key = other.create(per_minute={Rate.SEARCH: 3})
    found = keys.find(key.apikey_hash)
    assert found is not None and found.per_minute == {Rate.SEARCH: 3}
    other.revoke(key.id)
    assert keys.find(key.apikey_hash) is None
    other.close()


def test_keys_can_be_made_and_looked_up_while_the_journal_writes(tmp_path: Path) -> None:
    journal = open_journal(str(tmp_path))
    server = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    command = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    with journal._db.transaction(durable=True):
        assert server.tenant_of("f" * 64) is None
    _, key = command.create()
    assert server.tenant_of(key.apikey_hash) is not None
    command.close()
    server.close()
    journal.close()


def test_revoking_twice_keeps_the_first_time_and_an_unknown_id_is_an_error(keys: ApiKeys) -> None:
    _, key = keys.create()
    first = keys.revoke(key.id).revoked_at
    assert first is not None
    assert keys.revoke(key.id).revoked_at == first
    with pytest.raises(NotFound, match="holdfast keys list"):
        keys.revoke("nothing")


def test_keys_are_listed_in_the_order_they_were_made(keys: ApiKeys) -> None:
    labels = ["b", "a", "c"]
    for label in labels:
        keys.create(label)
    assert [key.label for key in keys.all()] == labels


@pytest.mark.parametrize("label", ["two\nlines", "x" * 101, "bell\a"])
def test_a_label_is_one_short_line(keys: ApiKeys, label: str) -> None:
    with pytest.raises(InvalidArgument, match="one line"):
        keys.create(label)
    assert keys.all() == []


def test_a_database_of_the_first_shape_gets_the_table(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as old:
        apply_migrations(old, STEPS[:1])
    keys = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    assert keys.all() == []
    keys.close()


def test_limits_are_written_as_class_and_number() -> None:
    assert parse_limits(["read=600", "search=0"]) == {Rate.READ: 600, Rate.SEARCH: 0}
    assert parse_limits([]) == {}


@pytest.mark.parametrize("text", ["read", "read=", "read=x", "read=-1", "delete=5", "=5", "read=1000001", "read=५"])
def test_a_limit_that_says_nothing_is_named(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_limits([text])
    assert repr(text) in caught.value.message
    assert "read, write, search" in caught.value.message


def test_a_command_for_keys_leaves_the_schema_of_a_running_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.sqlite.state.keys._MIGRATION_SECONDS", 0.1)
    path = str(tmp_path / "state.db")
    earlier = sqlite3.connect(path, isolation_level=None)
    apply_migrations(earlier, STEPS[:8])

    with pytest.raises(ResourceBusy, match="restart it"):
        SqliteKeys(path, is_alone=False)

    assert earlier.execute("PRAGMA user_version").fetchone() == (8,)
    earlier.close()


def test_the_step_that_commands_wait_for_makes_the_table_as_it_is_now(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    server = sqlite3.connect(path, isolation_level=None)
    apply_migrations(server, STEPS[:API_KEYS_VERSION])
    keys = ApiKeys(SqliteKeys(path, is_alone=False))
    secret, key = keys.rotate(keys.create("farm")[1].id)
    assert keys.find(hash_of(secret)) == key
    keys.close()
    server.close()


def hash_of(secret: Secret) -> str:
    return hashlib.sha256(secret.reveal().encode()).hexdigest()


def test_a_rotated_key_is_the_same_tenant_and_the_old_one_is_revoked(keys: ApiKeys) -> None:
    first, old = keys.create("farm", {Rate.READ: 7})
    second, new = keys.rotate(old.id)
    third, newest = keys.rotate(new.id, keeps_old=True)
    assert keys.tenant_of(hash_of(first)) is None
    for secret in (second, third):
        tenant = keys.tenant_of(hash_of(secret))
        assert tenant is not None
        assert (tenant.apikey_hash, tenant.shown_key_hash) == (old.apikey_hash, hash_of(secret))
    assert (newest.label, newest.per_minute) == ("farm", {Rate.READ: 7})
    keys.revoke(new.id)
    assert keys.tenant_of(hash_of(second)) is None
    assert keys.tenant_of(hash_of(third)) is not None
    with pytest.raises(NotFound):
        keys.rotate("nothing")


def test_keys_may_be_made_before_the_first_server(tmp_path: Path) -> None:
    keys = ApiKeys(SqliteKeys(str(tmp_path / "state.db")))
    keys.close()

    journal = open_journal(str(tmp_path))
    assert journal.find_unfinished() == []
    journal.close()
