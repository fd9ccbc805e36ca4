"""Credentials: kept for a while, taken by the job, forgotten; and silent about themselves whatever goes wrong."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.adapters.redis import RedisKeyStore
from holdfast.credentials.envelope import Binding, KeyEncryptionKeys
from holdfast.credentials.sealed_keys import MemoryKeyStore, SealedKeyStore
from holdfast.credentials.service import Credentials
from holdfast.secret import Secret
from tests.helpers.valkey import Valkey, valkey_server

CANARY = "sk-canary-5d1f0c77"
JOB = Binding("t" * 64, "p", "/plans/secret.md", 1)


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with valkey_server() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def key_store(request: pytest.FixtureRequest) -> Iterator[SealedKeyStore]:
    """Give each key_store in turn."""
    if request.param == "memory":
        yield MemoryKeyStore()
        return
    server: Valkey = request.getfixturevalue("valkey")
    opened = RedisKeyStore(server.url, "test:")
    yield opened
    opened.close()


@pytest.mark.req("SE-40.c", "SE-42.a")
def test_a_key_is_kept_for_its_job_taken_and_forgotten(key_store: SealedKeyStore) -> None:
    credentials = Credentials(key_store, KeyEncryptionKeys.for_this_process())
    assert credentials.take(JOB) is None
    assert credentials.keep(JOB, Secret(CANARY))
    assert credentials.has(JOB)
    taken = credentials.take(JOB)
    assert taken is not None and taken.reveal() == CANARY
    assert credentials.take(replace(JOB, job=2)) is None
    credentials.forget(JOB)
    assert not credentials.has(JOB)


@pytest.mark.req("SE-40.c")
def test_a_key_whose_time_is_over_is_not_there(key_store: SealedKeyStore) -> None:
    credentials = Credentials(key_store, KeyEncryptionKeys.for_this_process(), ttl_seconds=1)
    credentials.keep(replace(JOB, job=3), Secret(CANARY))
    later = Credentials(key_store, KeyEncryptionKeys.for_this_process(), ttl_seconds=0)
    sealed = key_store.get(replace(JOB, job=3).digest().hex())
    assert sealed is not None
    key_store.put(JOB.digest().hex(), sealed, 100)
    assert later.take(JOB) is None


@pytest.mark.req("SE-40.d")
def test_nothing_of_a_key_is_in_redis_or_in_the_log(valkey: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    key_store = RedisKeyStore(valkey.url, "canary:")
    credentials = Credentials(key_store, KeyEncryptionKeys.for_this_process())
    stranger = Credentials(key_store, KeyEncryptionKeys.for_this_process())
    with caplog.at_level(logging.DEBUG):
        credentials.keep(JOB, Secret(CANARY))
        names = [name for name in key_store._client.scan_iter() if name.startswith(b"canary:")]
        (stored,) = [key_store._client.get(name) for name in names]
        assert key_store._client.ttl(names[0]) in range(290, 301)
        assert stranger.take(JOB) is None
        valkey.kill()
        try:
            assert credentials.take(JOB) is None
            assert not credentials.keep(JOB, Secret(CANARY))
        finally:
            valkey.start()
    for kept in (stored, names[0], caplog.text.encode()):
        assert CANARY.encode() not in kept
        assert JOB.path.encode() not in kept
    assert "not opened" in caplog.text
    assert caplog.text.count("cannot be reached") == 1
    assert credentials.keep(JOB, Secret(CANARY)), "Redis is back"


def test_a_full_cabinet_lets_the_oldest_go() -> None:
    key_store = MemoryKeyStore(max_keys=2)
    for name in "abc":
        key_store.put(name, name.encode(), 100)
    assert [key_store.get(name) for name in "abc"] == [None, b"b", b"c"]
    key_store.put("d", b"d", 0)
    assert key_store.get("d") is None
