"""Search on both databases: what is found, what never is, and what changes when files change."""

from dataclasses import dataclass, field

import pytest

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import Hit, SearchLimits
from holdfast.search.ports import Index
from holdfast.search.service import Search
from holdfast.store.service import Store
from tests.helpers.databases import Backend
from tests.helpers.indexing import Topics, drain

SEA = "sea ocean wave ship sailor"
FIRE = "fire flame smoke burn heat"


@dataclass
class Bench:
    """One database with a store, an index, a search and what brings the index up to date."""

    backend: Backend
    me: AuthContext
    model: Topics = field(default_factory=lambda: Topics(SEA, FIRE, "paper ink letter"))

    def __post_init__(self) -> None:
        self.store: Store = self.backend.store()
        self.index: Index = self.backend.open_index()
        self.queue = self.backend.open_queue()
        self.search = Search(self.index, SearchLimits(), self.model)
        self.words_only = Search(self.index, SearchLimits())

    def write(self, path: str, text: str, project: str = "p") -> None:
        self.store.write(self.me, project, path, text, mode="TRUNCATE")

    def drain(self, *, meaning: bool = True) -> int:
        return drain(self.queue, Indexer(self.index, self.model), meaning=meaning)

    def paths(self, query: str, prefix: str = "", project: str = "p", limit: int = 20) -> list[str]:
        return [hit.path for hit in self.search.search(self.me, project, query, prefix, limit)]

    def hits(self, query: str) -> list[Hit]:
        return self.words_only.search(self.me, "p", query, limit=20)


@pytest.fixture
def bench(backend: Backend, me: AuthContext) -> Bench:
    return Bench(backend, me)


@pytest.mark.req("SE-12.b")
def test_indexed_words_are_found(bench: Bench) -> None:
    bench.write("/a", "The quick brown fox")
    bench.write("/b", "A slow brown bear")
    bench.drain()
    assert [hit.path for hit in bench.hits("quick foxes")] == ["/a"]
    assert {hit.path for hit in bench.hits("brown")} == {"/a", "/b"}
    assert bench.hits("absent") == []


@pytest.mark.req("SE-12.a")
def test_meaning_is_found_where_no_word_is_shared(bench: Bench) -> None:
    bench.write("/harbour", "sailor and ship")
    bench.write("/oven", "smoke and heat")
    bench.drain()
    assert bench.paths("ocean wave")[0] == "/harbour"
    assert bench.paths("flame")[0] == "/oven"


@pytest.mark.req("SE-18.a")
def test_text_is_found_before_any_worker_ran_and_its_old_text_is_not(bench: Bench) -> None:
    bench.write("/a", "zebra stripes")
    assert [hit.path for hit in bench.hits("zebra")] == ["/a"]
    bench.drain()
    bench.write("/a", "giraffe spots")
    assert bench.hits("zebra") == []
    (hit,) = bench.hits("giraffe")
    assert hit.text == "giraffe spots" and hit.is_full_file and hit.score > 0
    bench.drain()
    assert bench.paths("zebra stripes") == ["/a"], "the only file is nearest to anything"
    assert [hit.text for hit in bench.hits("giraffe")] == ["giraffe spots"]


@pytest.mark.req("SE-15.a")
def test_a_deleted_file_is_not_found_even_before_the_worker_ran(bench: Bench) -> None:
    bench.write("/a", "sailor")
    bench.write("/b", "sailor too")
    bench.drain()
    bench.store.delete(bench.me, "p", "/a")
    assert bench.paths("sailor") == ["/b"]
    bench.drain()
    assert bench.paths("sailor") == ["/b"]


@pytest.mark.req("SE-05.b")
def test_a_renamed_file_is_found_at_its_new_path_alone_and_is_not_embedded_again(bench: Bench) -> None:
    bench.write("/a", "sailor and ship")
    bench.drain()
    embedded = len(bench.model.embedded)
    bench.store.rename(bench.me, "p", "/a", "/b")
    assert [hit.path for hit in bench.hits("sailor")] == ["/b"]
    bench.drain()
    assert bench.paths("ocean") == ["/b"]
    assert bench.model.embedded[embedded:] == ["ocean"]


@pytest.mark.req("SE-05.a")
def test_an_append_to_a_long_file_embeds_only_what_is_new(bench: Bench) -> None:
    text = "\n\n".join(f"Paragraph {number} tells of the sea and of ship number {number}." for number in range(400))
    bench.write("/long", text)
    bench.drain()
    whole = len(bench.model.embedded)
    assert whole > 10
    bench.store.write(bench.me, "p", "/long", "\n\nAnd at last a fire.")
    bench.drain()
    assert len(bench.model.embedded) - whole <= 2
    (first, *_) = bench.hits("at last a fire")
    assert "And at last a fire." in first.text
    known = bench.index.load_indexed_chunks(bench.me.apikey_hash, "p", "/long")
    assert [chunk.position for chunk in known] == list(range(len(known)))
    assert [chunk.start for chunk in known[1:]] == [chunk.end for chunk in known[:-1]]


@pytest.mark.req("SE-05.b")
def test_an_edit_in_the_middle_keeps_the_other_chunks(bench: Bench) -> None:
    lines = [f"Line {number} speaks of letter {number} and its ink." for number in range(600)]
    bench.write("/long", "\n".join(lines))
    bench.drain()
    before = {chunk.id for chunk in bench.index.load_indexed_chunks(bench.me.apikey_hash, "p", "/long")}
    bench.write("/long", "\n".join([*lines[:300], "A new line about a fire.", *lines[300:]]))
    bench.drain()
    after = bench.index.load_indexed_chunks(bench.me.apikey_hash, "p", "/long")
    assert len({chunk.id for chunk in after} - before) <= 3
    assert [chunk.position for chunk in after] == list(range(len(after)))
    for hit in bench.hits("line letter ink"):
        assert bench.store.read(bench.me, "p", "/long", hit.start, hit.end - hit.start).text == hit.text


@pytest.mark.req("SE-11")
def test_prefixes_are_raw_and_projects_apart(bench: Bench) -> None:
    for path in ("/docs/a", "/done", "/other"):
        bench.write(path, "one needle")
    bench.write("/docs/a", "one needle", project="q")
    for _ in range(2):
        assert bench.paths("needle", "/do") == ["/docs/a", "/done"]
        assert bench.paths("needle", "/docs/") == ["/docs/a"]
        assert bench.paths("needle", "/doc%") == []
        hits = bench.search.search(bench.me, "*", "needle", "/docs")
        assert [(hit.project, hit.path) for hit in hits] == [("p", "/docs/a"), ("q", "/docs/a")]
        bench.drain()


@pytest.mark.req("SE-19.a")
def test_other_tenants_are_as_if_absent(bench: Bench, backend: Backend) -> None:
    stranger = Bench(backend, AuthContext("f" * 64, "stranger"))
    bench.write("/a", "needle in the sea")
    stranger.write("/theirs", "needle in a fire")
    bench.drain()
    assert bench.paths("needle", project="*") == ["/a"]
    assert stranger.paths("needle", project="*") == ["/theirs"]
    stranger.store.delete(stranger.me, "p", "/theirs")
    stranger.drain()
    assert stranger.paths("needle", project="*") == []


def test_a_file_with_the_character_nul_is_found_as_it_is(bench: Bench) -> None:
    bench.write("/a", "before\0after \ufffd needle")
    bench.drain()
    (hit,) = bench.hits("needle")
    assert hit.text == "before\0after \ufffd needle"


@pytest.mark.req("SE-01.b")
def test_an_empty_file_has_no_chunks_and_its_job_is_done(bench: Bench) -> None:
    bench.write("/a", "something")
    bench.drain()
    bench.write("/a", "")
    bench.drain()
    assert bench.index.load_indexed_chunks(bench.me.apikey_hash, "p", "/a") == []
    jobs = bench.backend.look(
        bench.me, f"SELECT status FROM mcp_file_index_jobs WHERE apikey_hash = '{bench.me.apikey_hash}'"
    )
    assert {job["status"] for job in jobs} == {"done"}


@pytest.mark.req("SE-32")
def test_the_old_models_vectors_answer_until_the_new_one_has_come_to_them(bench: Bench) -> None:
    bench.write("/harbour", "sailor and ship")
    bench.drain()
    new = Topics(SEA, FIRE, "stone", model="new")
    search = Search(bench.index, SearchLimits(), new, bench.model)
    bench.write("/oven", "smoke and heat")
    drain(bench.queue, Indexer(bench.index, new))
    assert next(hit.path for hit in search.search(bench.me, "p", "ocean wave")) == "/harbour"
    assert next(hit.path for hit in search.search(bench.me, "p", "flame")) == "/oven"
    for project, path in bench.index.find_files_without_vectors(bench.me.apikey_hash, "new", 9):
        chunks = bench.index.load_chunks_without_vectors(bench.me.apikey_hash, project, path, "new")
        vectors = new.embed([chunk.text for chunk in chunks], None, lambda: None)
        rows = [(chunk.id, chunk.content_hash, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        bench.index.put_vectors(bench.me.apikey_hash, "new", rows, utc_clock())
    asked = len(bench.model.embedded)
    search = Search(bench.index, SearchLimits(), new, bench.model)
    assert next(hit.path for hit in search.search(bench.me, "p", "ocean wave")) == "/harbour"
    assert len(bench.model.embedded) == asked, "the old model is not asked any more"


@pytest.mark.req("SE-14.a")
def test_a_model_whose_vectors_change_their_length_finds_by_those_as_long_as_the_querys(bench: Bench) -> None:
    bench.write("/harbour", "sailor and ship")
    bench.drain()
    assert bench.paths("ocean wave") == ["/harbour"]
    longer = Topics(SEA, FIRE, "stone", "paper ink letter")
    bench.write("/pier", "ship and sailor")
    drain(bench.queue, Indexer(bench.index, longer))
    assert bench.paths("ocean wave") == ["/harbour"], "what has another length is left out"
    assert bench.paths("ocean wave", prefix="/") == bench.paths("ocean wave", prefix="/har") == ["/harbour"]
    search = Search(bench.index, SearchLimits(), longer)
    assert [hit.path for hit in search.search(bench.me, "p", "ocean wave")] == ["/pier"]


@pytest.mark.req("SE-12.b")
def test_many_chunks_of_one_tenant_change_and_all_is_found(bench: Bench) -> None:
    text = "\n".join(f"Line {number} of the ledger names ship{number}x and its sailor." for number in range(9000))
    bench.write("/ledger", text)
    bench.drain(meaning=False)
    for number in (0, 4321, 8999):
        (first, *_) = bench.hits(f"ship{number}x")
        assert f"ship{number}x" in first.text
    bench.write("/ledger", text[: len(text) // 2])
    bench.drain(meaning=False)
    assert all("ship8999x" not in hit.text for hit in bench.hits("ship8999x"))
    assert "ship4321x" in bench.hits("ship4321x")[0].text
