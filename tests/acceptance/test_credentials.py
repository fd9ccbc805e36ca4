"""Keys for a model behind HTTP: whose key is used, where it waits, what happens without one, and that nobody ever sees it."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.doors import House, Pipes, until
from tests.helpers.models import ModelServer, Request, embeds, model_server
from tests.helpers.remote import RemoteAgent
from tests.helpers.stores import OPEN, Deployment, Files, deployed
from tests.helpers.valkey import valkey_server

pytestmark = pytest.mark.timeout(150)

TENANT = "sk-canary-tenant-77aa0f"
OTHER = "sk-canary-other-3c91d2"
OWN = "sk-canary-settings-5e0b"
KEKS = {"2026-01": "a secret that is long enough"}


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as found:
        yield found


@pytest.fixture
def models(running: ModelServer) -> ModelServer:
    running.behave()
    return running


def settings_of(models: ModelServer, mode: str, **files: Any) -> dict[str, Any]:
    embedder = {"kind": "openai", "endpoint": f"{models.url}/v1/embeddings", "model": "m", "api_key": OWN}
    rerank = {"endpoint": f"{models.url}/v2/rerank"}
    return {
        "auth": {"mode": mode},
        "mcp": {"files": {"search": {"embedder": embedder, "rerank": rerank}, **files}},
    }


@contextmanager
def place_of(folder: Path, models: ModelServer, mode: str, **files: Any) -> Iterator[Deployment]:
    with deployed(folder, settings_of(models, mode, **files), None) as place:
        yield place


def statuses(house: House) -> dict[str, int]:
    """Return how many jobs there are of each status, over all tenants."""
    ran = house.run("index", "status", "--json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, int] = {}
    for one in json.loads(ran.stdout)["backlog"]:
        found[one["status"]] = found.get(one["status"], 0) + one["jobs"]
    return found


def no_key_is_left_in(house: House, *keys: str) -> None:
    """See that no file of the state folder holds a key, but for the settings, which hold the user's own."""
    for path in house.state.rglob("*"):
        if path.is_file() and path.name != "settings.yml":
            data = path.read_bytes()
            for key in keys:
                assert key.encode() not in data, path


@pytest.mark.req("SE-31.c")
def test_on_an_open_server_the_bearer_is_the_model_key_and_nobody_elses_is_used(
    tmp_path: Path, models: ModelServer
) -> None:
    with place_of(tmp_path, models, "open") as place:
        with place.tenant(TENANT) as tenant, place.tenant(OTHER) as other:
            for agent, text in ((tenant, "a text of the tenant"), (other, "a text of the other")):
                agent.call("file_write", project="p", path="/a", content=text).ok()
            until("both are embedded", lambda: statuses(place.house) == {}, 60)
            by_text = {text: request.key for request in models.requests for text in request.body.get("input", [])}
            assert by_text == {"a text of the tenant": TENANT, "a text of the other": OTHER}
            models.behave()
            assert len(tenant.call("file_search", project="p", query="tenant").ok().data["chunks"]) == 1
            assert {(request.path, request.key) for request in models.requests} == {
                ("/v1/embeddings", TENANT),
                ("/v2/rerank", TENANT),
            }
        models.behave()
        Files(place.agent, "p").write("/mine")
        until("the local user's is embedded", lambda: statuses(place.house) == {} and models.requests, 60)
        assert set(models.keys) == {OWN}
        house = place.house
    no_key_is_left_in(house, TENANT, OTHER, OWN)


@pytest.mark.req("SE-31.d", "SE-42.b")
def test_on_a_listed_server_our_own_key_never_leaves_and_jobs_wait_for_the_header(
    tmp_path: Path, models: ModelServer
) -> None:
    with place_of(tmp_path, models, "listed") as place:
        minted = place.house.run("keys", "create").stdout.strip()
        assert minted.startswith("hf_")
        with RemoteAgent(place.house.url, minted) as plain:
            plain.call("file_write", project="p", path="/a", content="a text about boats").ok()
            until("it waits for a key", lambda: statuses(place.house) == {"waiting_credential": 1}, 60)
            assert "goes on with the next call of its tenant" in place.house.run("index", "status").stdout
            assert "1 waiting for their tenant's key." in place.house.run("index", "drain").stdout
            hits = plain.call("file_search", project="p", query="boats").ok().data["chunks"]
            assert [hit["file_path"] for hit in hits] == ["/a"], "found by its words meanwhile"
            assert [request for request in models.requests if "embeddings" in request.path] == []
        with RemoteAgent(place.house.url, minted, X_Model_Key=TENANT) as keyed:
            keyed.call("file_stat", project="p", path="/a").ok()
            until("the next call made it due", lambda: statuses(place.house) == {}, 60)
        assert {request.key for request in models.requests if "embeddings" in request.path} == {TENANT}
        assert minted not in [request.key for request in models.requests]
        house = place.house
    no_key_is_left_in(house, TENANT, minted)


@pytest.mark.req("SE-31.b", "SE-40.d")
def test_a_refused_key_is_kept_out_of_the_job_and_the_log(tmp_path: Path, models: ModelServer) -> None:
    models.behave(lambda request: request.answer({"error": f"bad key {request.key}"}, 401))
    with place_of(tmp_path, models, "open") as place:
        with place.tenant(TENANT) as tenant:
            tenant.call("file_write", project="p", path="/a", content="a text").ok()
            until("the job was given up", lambda: statuses(place.house) == {"failed": 1}, 60)
            ran = place.house.run("index", "status", "--json")
            (failed,) = json.loads(ran.stdout)["failed"]
            assert failed["error"] == "the embeddings endpoint: it answered with status 401"
            assert failed["path"] is None, "where a tenant's file lies is not shown"
            models.behave(embeds)
            place.house.run("index", "retry")
            until("it was tried again", lambda: statuses(place.house) == {}, 60)
        house = place.house
    no_key_is_left_in(house, TENANT)


@pytest.mark.req("SE-42.c")
def test_a_worker_apart_needs_redis_for_tenants_keys_and_says_so(tmp_path: Path, models: ModelServer) -> None:
    house = House(tmp_path)
    house.settings(json.dumps({"settings": settings_of(models, "open")}))
    ran = house.run("worker")
    assert ran.returncode == 2
    assert "REDIS_URL" in ran.stderr and "encryption_keks" in ran.stderr


@pytest.mark.req("SE-42.c", "SE-42.d")
def test_redis_stopped_and_started_writes_go_on_and_jobs_wait_for_the_next_call(
    tmp_path: Path, models: ModelServer
) -> None:
    files = {"index": {"workers": 0}, "security": {"encryption_keks": KEKS}}
    with valkey_server() as valkey:
        house = House(tmp_path, REDIS_URL=valkey.url)
        house.settings(json.dumps({"settings": settings_of(models, "open", **files)}))
        with house.serve(), Pipes(["worker"], house.env, "/"), RemoteAgent(house.url, TENANT) as tenant:
            tenant.call("file_write", project="p", path="/a", content="text one").ok()
            until("the worker had the key", lambda: statuses(house) == {}, 60)
            assert models.keys == [TENANT]
            valkey.kill()
            for number in range(3):
                tenant.call("file_write", project="p", path=f"/{number}", content=f"text {number}").ok()
            until("the jobs wait", lambda: statuses(house) == {"waiting_credential": 3}, 60)
            hits = tenant.call("file_search", project="p", query="text").ok().data["chunks"]
            assert len(hits) == 4, "found by their words meanwhile"
            valkey.start()
            tenant.call("file_stat", project="p", path="/a").ok()
            until("the next call made them due", lambda: statuses(house) == {}, 60)
            assert set(models.keys) == {TENANT}
            until("no envelope is left", lambda: not re.search(rb"holdfast:credential", valkey.names()))
    no_key_is_left_in(house, TENANT)


class Failing:
    """A model behind HTTP that fails in every way in turn, and repeats all that it was sent whenever it can."""

    def __init__(self) -> None:
        self._turn = count()

    def __call__(self, request: Request) -> None:
        """Answer a request."""
        echo = {"error": {"message": f"{request.key} {json.dumps(request.body)}"}}
        status = 500 if "rerank" in request.path else (429, 500, 503, 200)[next(self._turn) % 4]
        request.answer(json.dumps(echo).encode() * 2 if status == 200 else echo, status, retry_after="0")


def ended(process: Pipes) -> str:
    """End a process as a service manager would, and return what it said."""
    process.process.send_signal(signal.SIGTERM)
    return process.errors()


@pytest.mark.req("SE-40.d", "SE-42.d", "SE-31.b", "SE-13.b")
def test_under_load_and_every_fault_nothing_is_lost_and_no_text_query_or_key_is_logged(
    tmp_path: Path, models: ModelServer
) -> None:
    text, query, rounds = "contentcanary", "querycanary", 6
    files = {"index": {"workers": 0, "retry_max": 3, "retry_backoff_ms": 50}, "security": {"encryption_keks": KEKS}}
    with valkey_server() as valkey:
        house = House(tmp_path, REDIS_URL=valkey.url)
        house.settings(json.dumps({"settings": {**settings_of(models, "open", **files), "limits": OPEN["limits"]}}))
        with house.serve() as server, Pipes(["worker"], house.env, "/") as worker, RemoteAgent(house.url, TENANT) as me:
            models.behave(Failing())
            for number in range(rounds):
                if number == 2:
                    valkey.kill()
                if number == 4:
                    valkey.start()
                written = [
                    (
                        "file_write",
                        {"project": "p", "path": f"/{number}/{one}", "content": f"{text}{number}x{one} rain"},
                    )
                    for one in range(5)
                ]
                asked = [("file_search", {"project": "p", "query": f"{query}{one} rain"}) for one in range(5)]
                for reply in me.parallel([*written, *asked]):
                    reply.ok()
            until("jobs were given up", lambda: statuses(house).get("failed", 0) > 0, 60)
            models.behave()
            until("all is done", lambda: house.run("index", "retry") and _is_done(house, me), 60)
            for number in range(rounds):
                reply = me.call("file_search", project="p", query="rain", path_prefix=f"/{number}/", limit=20).ok()
                found = [hit["chunk_content"] for hit in reply.data["chunks"]]
                assert sorted(found) == [f"{text}{number}x{one} rain" for one in range(5)]
            said = {"server": ended(server), "worker": ended(worker)}
    assert "reranker_failed" in said["server"] and "meaning_failed" in said["server"], "there was something to say"
    assert "attempt" in said["worker"]
    for word in (text, query, TENANT, OWN, *KEKS.values()):
        assert word not in said["server"] + said["worker"]
    no_key_is_left_in(house, TENANT, OWN, *KEKS.values())


def _is_done(house: House, me: RemoteAgent) -> bool:
    """Make a call, which brings the key for jobs that wait for it, and see whether any job is left."""
    me.call("file_stat", project="p", path="/0/0").ok()
    return not statuses(house)
