"""Jobs that need their tenant's key: sealed with the write, waited for, used once, and nowhere to be read."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holdfast.auth.context import AuthContext
from holdfast.credentials.envelope import KeyEncryptionKeys
from holdfast.credentials.sealed_keys import MemoryKeyStore
from holdfast.credentials.service import Credentials
from holdfast.search.model import Vector
from holdfast.secret import Secret
from holdfast.store.model import ClaimedJob, Operation, Stage
from holdfast.store.service import Store
from holdfast.worker.loop import Loop
from holdfast.worker.model_keys import JobKeys
from tests.contract.test_worker import Clock, indexed, job_rows, loop_of
from tests.helpers.databases import Backend, new_caller
from tests.helpers.doors import until
from tests.helpers.indexing import Topics

CANARY = "sk-canary-71c0ffee"


class Keyed(Topics):
    """An embedder that needs a key and remembers which it was given."""

    def __init__(self) -> None:
        super().__init__("cat", "boat", needs_key=True)
        self.keys: list[str] = []

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:
        assert key is not None
        self.keys.append(key.reveal())
        return super().embed(texts, key, check)


def keyed_loop(backend: Backend) -> tuple[Loop, Keyed, JobKeys]:
    clock, embedder = Clock(), Keyed()
    keys = JobKeys(
        backend.open_queue(),
        Credentials(MemoryKeyStore(), KeyEncryptionKeys.for_this_process()),
        Secret("local key"),
        now=clock,
    )
    return loop_of(backend, embedder, keys, clock), embedder, keys


@pytest.mark.req("SE-42.a", "SE-42.b")
def test_a_job_without_a_key_waits_and_its_tenants_next_call_makes_it_due(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    loop, embedder, keys = keyed_loop(backend)
    store.write(me, "p", "/a", "a cat")
    loop.run_words_pass()
    assert indexed(backend, me, "/a") == [(0, 5)], "words do not wait for a key"
    loop.run_meaning_pass()
    assert job_rows(backend, me)[0] | {"status": "waiting_credential", "retry_count": 0} == job_rows(backend, me)[0]
    keys.on_model_key(new_caller())
    keys.on_model_key(replace(new_caller(), model_key=Secret("a stranger's key")))
    keys.on_model_key(replace(me, model_key=Secret(CANARY)))
    until("the job is due", lambda: job_rows(backend, me)[0]["status"] == "pending")
    loop.run_meaning_pass()
    assert embedder.keys == [CANARY]
    assert job_rows(backend, me)[0]["status"] == "done"
    assert keys.key_for(_as_claimed(backend, me)) is None, "the envelope went with the job"
    keys.close()


def _as_claimed(backend: Backend, me: AuthContext) -> ClaimedJob:
    (row,) = backend.look(me, f"SELECT id FROM mcp_file_index_jobs WHERE apikey_hash = '{me.apikey_hash}'")
    return ClaimedJob(
        me.apikey_hash, "p", "/a", Operation.UPSERT, 1, 0, row["id"], "", Stage.MEANING, datetime.now(UTC)
    )


@pytest.mark.req("SE-40.d", "SE-42.a")
def test_a_key_is_sealed_with_the_write_and_is_in_no_row_and_no_log(
    backend: Backend, store: Store, me: AuthContext, caplog: pytest.LogCaptureFixture
) -> None:
    loop, embedder, keys = keyed_loop(backend)
    with caplog.at_level(logging.DEBUG):
        store.write(me, "p", "/a", "a cat")
        keys.on_model_key(replace(me, model_key=Secret(CANARY)))
        loop.run_words_pass()
        until("the key is sealed", lambda: keys.key_for(_as_claimed(backend, me)) is not None)
        embedder.is_down = True
        loop.run_meaning_pass()
    rows = [
        backend.look(me, f"SELECT * FROM {table} WHERE apikey_hash = '{me.apikey_hash}'")
        for table in ("mcp_file_index_jobs", "mcp_files", "mcp_file_chunks", "mcp_applied")
    ]
    assert job_rows(backend, me)[0]["retry_count"] == 1
    assert embedder.keys == [CANARY]
    assert CANARY not in repr(rows)
    assert CANARY not in caplog.text
    assert CANARY not in repr(keys.__dict__)
    keys.close()


def test_the_local_user_has_its_key_in_the_settings_and_nobody_else_gets_it(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    loop, _, keys = keyed_loop(backend)
    store.write(me, "p", "/a", "a cat")
    job = _as_claimed(backend, me)
    mine = replace(job, tenant="local")
    assert keys.key_for(job) is None
    key = keys.key_for(mine)
    assert key is not None and key.reveal() == "local key"
    keys.close()
    assert loop.needs_key
