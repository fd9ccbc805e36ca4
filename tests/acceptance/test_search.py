"""file_search through a client, on SQLite and on PostgreSQL, with the server's own workers."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.auth.context import LOCAL_TENANT
from tests.helpers.databases import postgres_database
from tests.helpers.doors import until
from tests.helpers.stores import OPEN, Deployment, Files, deployed

pytestmark = pytest.mark.timeout(120)

LONG = "\n\n".join(
    f"## Chapter {number}\n\nIn chapter {number} the keeper of lighthouse {number} writes: « déjà vu, 你好 ». "
    + "And so on. " * 30
    for number in range(20)
)


@pytest.fixture
def own_database_url(database_url: str | None, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Give a database without other tests' files, which a server with a model would turn into vectors first."""
    if database_url is None:
        yield None
        return
    with postgres_database(request.getfixturevalue("postgres_server_url"), migrated=False) as url:
        yield url


def hits(files: Files, query: str, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = files.data("file_search", query=query, **arguments)["chunks"]
    return found


def wait_for_vectors(place: Deployment, files: Files, count: int) -> None:
    query = (
        "SELECT count(*) AS made FROM mcp_file_chunk_embeddings AS e JOIN mcp_file_chunks AS c ON c.id = e.chunk_id "
        f"WHERE c.apikey_hash = '{LOCAL_TENANT}' AND c.project = '{files.project}'"
    )
    until("the model has done its work", lambda: int(place.rows(query)[0]["made"]) >= count, 110)


def wait_for_words(place: Deployment, files: Files) -> None:
    query = (
        "SELECT count(*) AS waiting FROM mcp_file_index_jobs WHERE status IN ('pending', 'processing') "
        f"AND stage = 'words' AND project = '{files.project}'"
    )
    until("the words are indexed", lambda: place.rows(query)[0]["waiting"] == 0, 60)


@pytest.mark.req("SE-12.a", "SE-30.a")
def test_meaning_is_found_by_the_built_in_model_where_no_word_is_shared(
    own_database_url: str | None, tmp_path_factory: pytest.TempPathFactory, project: str
) -> None:
    settings = {**OPEN, "mcp": {"files": {"search": {"embedder": {"kind": "minilm"}}}}}
    with deployed(tmp_path_factory.mktemp("model"), settings, own_database_url) as running:
        files = Files(running.agent, project)
        files("file_write", path="/car.md", content="The automobile would not start because its battery was flat.").ok()
        files("file_write", path="/cake.md", content="Whisk the eggs with sugar until the mixture is pale.").ok()
        wait_for_vectors(running, files, 2)
        assert hits(files, "vehicle breakdown")[0]["file_path"] == "/car.md"
        assert hits(files, "baking a dessert")[0]["file_path"] == "/cake.md"


@pytest.mark.req("SE-01.a", "SE-17.a")
def test_a_hit_names_its_bytes_and_file_read_gives_them_back(place: Deployment, files: Files) -> None:
    files("file_write", path="/book.md", content=LONG).ok()
    wait_for_words(place, files)
    found = hits(files, "keeper of lighthouse 14", limit=3)
    assert "lighthouse 14" in found[0]["chunk_content"]
    for hit in found:
        assert set(hit) >= {
            "file_path",
            "file_seek_start_bytes",
            "file_seek_end_bytes",
            "chunk_content",
            "score",
            "is_full_file",
        }
        start, end = hit["file_seek_start_bytes"], hit["file_seek_end_bytes"]
        read = files.data("file_read", path=hit["file_path"], offset=start, length=end - start)
        assert read["content"] == hit["chunk_content"]
        assert not hit["is_full_file"]
    files("file_write", path="/note.md", content="A short note on barnacles.").ok()
    assert hits(files, "barnacles")[0]["is_full_file"]


@pytest.mark.req("SE-10.a", "SE-10.b", "SE-10.c", "SE-10.d")
def test_limits_order_and_refusals(place: Deployment, files: Files) -> None:
    assert hits(files, "anything at all") == []
    assert files("file_search", query=" \n").code == "INVALID_QUERY"
    for number in range(25):
        files("file_write", path=f"/{number:02}", content=f"kelp and more kelp {number}").ok()
    assert [len(hits(files, "kelp", limit=limit)) for limit in (0, 3, 20, 999)] == [5, 3, 20, 20]
    wait_for_words(place, files)
    found = hits(files, "kelp 7", limit=20)
    assert found[0]["file_path"] == "/07"
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


@pytest.mark.req("SE-10.e")
def test_a_query_that_is_too_long_is_refused_and_the_longest_is_answered(place: Deployment, files: Files) -> None:
    files("file_write", path="/new", content="lorem ipsum dolor\n" * 50_000 + "a walrus at last\n").ok()
    longest = " ".join(["walrus", *(f"q{number}" for number in range(900))])[:4000]
    for _ in range(2):
        assert "walrus" in hits(files, longest)[0]["chunk_content"]
        wait_for_words(place, files)
    refused = files("file_search", query="lorem " * 2_000_000)
    assert (refused.code, refused.error["retryable"]) == ("INVALID_QUERY", False)
    assert "at most 4000 characters long: it has 12000000" in refused.text
    by_hand = place.house.run("files", "search", "-p", files.project, "lorem " * 700)
    assert by_hand.returncode == 2
    assert "it has 4200" in by_hand.stderr


@pytest.mark.req("SE-10.f")
def test_a_cancelled_search_lets_its_thread_go_at_once(tmp_path: Path) -> None:
    files_settings = {"index": {"workers": 0}, "search": {"embedder": {"kind": "none"}}}
    settings = {"server": {"max_parallel_calls": 2}, "mcp": {"files": files_settings}}
    with deployed(tmp_path, settings, None) as running:
        files = Files(running.agent, "p")
        for part in range(6):
            words = " ".join(sha256(f"{part} {number}".encode()).hexdigest()[:9] for number in range(150_000))
            files("file_write", path="/long", content=words).ok()
        searches = [running.agent.start("file_search", {"project": "p", "query": "walrus"}) for _ in range(2)]
        other = running.agent.start("file_stat", {"project": "p", "path": "/long"})
        with pytest.raises(TimeoutError):
            other.result(0.5)
        for search in searches:
            search.cancel()
        other.result(5).ok()


@pytest.mark.req("SE-11")
def test_a_prefix_is_raw_text_and_its_signs_are_letters(place: Deployment, files: Files) -> None:
    for path in ("/docs/a", "/done", "/do_ne", "/Docs/b", "/other"):
        files("file_write", path=path, content="one anchor").ok()
    for _ in range(2):
        assert {hit["file_path"] for hit in hits(files, "anchor", path_prefix="/do")} == {"/docs/a", "/done", "/do_ne"}
        assert {hit["file_path"] for hit in hits(files, "anchor", path_prefix="/do_")} == {"/do_ne"}
        assert hits(files, "anchor", path_prefix="/do%") == []
        slashless = files("file_search", query="anchor", path_prefix="do").ok()
        assert (slashless.data["chunks"], slashless.text.endswith("unlike the prefix 'do'.")) == ([], True)
        wait_for_words(place, files)


@pytest.mark.req("SE-15.a", "SE-18.a")
def test_what_was_just_written_is_found_and_what_it_replaced_is_not(place: Deployment, files: Files) -> None:
    files.replace("/a", "The harbour master sleeps.")
    assert hits(files, "harbour")[0]["chunk_content"] == "The harbour master sleeps."
    wait_for_words(place, files)
    files.replace("/a", "The pilot wakes.")
    assert all("harbour" not in hit["chunk_content"] for hit in hits(files, "harbour master"))
    assert hits(files, "pilot")[0]["chunk_content"] == "The pilot wakes."
    files("file_rename", from_path="/a", to_path="/b").ok()
    assert {hit["file_path"] for hit in hits(files, "pilot")} == {"/b"}
    files("file_delete", path="/b").ok()
    assert hits(files, "pilot") == []


@pytest.mark.req("SE-16.a")
def test_the_time_of_serving_moves_for_returned_chunks_alone(place: Deployment, files: Files) -> None:
    for number in range(3):
        files("file_write", path=f"/{number}", content=f"oyster number {number}").ok()
    wait_for_words(place, files)
    hits(files, "oyster 1", limit=1)
    rows = place.rows(f"SELECT file_path, last_served_at FROM mcp_file_chunks WHERE project = '{files.project}'")
    assert [row["file_path"] for row in rows if row["last_served_at"]] == ["/1"]


@pytest.mark.req("SE-17.b", "SE-19.a")
def test_a_star_searches_the_callers_own_projects_and_no_other_tool_takes_it(place: Deployment, files: Files) -> None:
    other = Files(files.agent, f"{files.project}.other")
    word = f"w{files.project[2:12]}"
    for each in (files, other):
        each("file_write", path="/a", content=f"{word} here").ok()
    with place.tenant("a key of somebody else entirely") as stranger:
        Files(stranger, files.project)("file_write", path="/a", content=f"{word} there").ok()
        wait_for_words(place, files)
        found = hits(files, word, project="*", limit=20)
        assert {(hit["project"], hit["file_path"]) for hit in found if word in hit["chunk_content"]} == {
            (files.project, "/a"),
            (other.project, "/a"),
        }
        assert all("there" not in hit["chunk_content"] for hit in found)
        theirs = stranger.call("file_search", project="*", query=word).data["chunks"]
        assert [hit["chunk_content"] for hit in theirs] == [f"{word} there"]
    for tool, arguments in (
        ("file_stat", {"path": "/a"}),
        ("file_list", {}),
        ("file_write", {"path": "/a", "content": ""}),
    ):
        assert files(tool, project="*", **arguments).code == "INVALID_PATH"


@pytest.mark.req("SE-14.c")
def test_search_that_is_off_says_so_and_writes_succeed(
    database_url: str | None, tmp_path_factory: pytest.TempPathFactory, project: str
) -> None:
    settings = {**OPEN, "mcp": {"files": {"search": {"enabled": False}}}}
    with deployed(tmp_path_factory.mktemp("off"), settings, database_url) as running:
        files = Files(running.agent, project)
        files("file_write", path="/a", content="anything").ok()
        reply = files("file_search", query="anything")
        assert reply.code == "SEARCH_BACKEND_ERROR"
        assert files.text("/a") == "anything"


@pytest.mark.req("SE-05.a")
def test_an_append_leaves_the_chunks_before_it_and_their_vectors(place: Deployment, files: Files) -> None:
    files("file_write", path="/book.md", content=LONG).ok()
    rows = f"SELECT id, content_hash FROM mcp_file_chunks WHERE project = '{files.project}'"
    wait_for_words(place, files)
    before = {row["id"] for row in place.rows(rows)}
    files("file_write", path="/book.md", content="\n\n## The end\n\nThe last light goes out.").ok()
    wait_for_words(place, files)
    after = {row["id"] for row in place.rows(rows)}
    assert len(after - before) <= 2
    assert "The last light" in hits(files, "the last light goes out")[0]["chunk_content"]
