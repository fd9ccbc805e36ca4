"""search_folders through a client: what is found, how fresh it is, whose it is, and what is never shown."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers import documents
from tests.helpers.agent import Agent
from tests.helpers.beacons import Beacons, round_of
from tests.helpers.doors import House, is_alive, until
from tests.helpers.models import model_server
from tests.helpers.stores import OPEN, Deployment, deployed
from tests.helpers.trees import harvest, plant

pytestmark = pytest.mark.timeout(240)

ROUNDS = 300
SECRET = "OUTSIDE-9c41"
HIT = re.compile(r"^(?P<path>.+?)(?::(?P<line>\d+))? \((?P<score>\d\.\d\d)\)\n(?P<text>.*)", re.DOTALL)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Give a server that indexes words alone."""
    with deployed(tmp_path_factory.mktemp("searched"), OPEN, None) as place:
        yield place


@pytest.fixture
def agent(running: Deployment, root: Path) -> Iterator[Agent]:
    """Give a client of that server whose one root is the test's own."""
    with Agent([root], running.house.state) as connected:
        yield connected


def hits(agent: Agent, query: str, **arguments: object) -> list[re.Match[str]]:
    """Return the passages of an answer, notices left out."""
    texts = agent.call("search_folders", query=query, **arguments).ok().texts
    return [found for text in texts if (found := HIT.match(text))]


def names(agent: Agent, query: str, **arguments: object) -> list[str]:
    """Return the names of the files that passages are from."""
    return [Path(hit["path"]).name for hit in hits(agent, query, **arguments)]


def settled(agent: Agent) -> None:
    """Wait until the index says nothing of being unready."""
    until("the index is ready", lambda: "ready" not in agent.call("search_folders", query="settle").ok().text, 120)


@pytest.mark.req("SE-50.a")
def test_passages_come_best_first_with_path_line_and_score(agent: Agent, root: Path) -> None:
    plant(root, {"a.md": "one\n" * 800 + "The harbour at night.\n", "sub": {"b.md": "harbour harbour harbour\n"}})
    best, second = hits(agent, "harbour")
    assert (best["path"], best["line"]) == (str(root / "sub/b.md"), "1")
    assert float(best["score"]) > float(second["score"])
    assert second["text"] in (root / "a.md").read_text()
    assert (root / "a.md").read_text().split("\n")[int(second["line"]) - 1] == second["text"].split("\n")[0]
    assert names(agent, "harbour", path="sub") == ["b.md"]
    assert names(agent, "harbour", path=str(root / "a.md")) == ["a.md"]
    assert len(hits(agent, "harbour", limit=1)) == 1
    assert agent.call("search_folders", query="zeppelin").ok().text == "No matches found."
    assert agent.call("search_folders", query="  ").code == "INVALID_QUERY"
    assert agent.call("search_folders", query="harbour", path="/etc").code == "ACCESS_DENIED"
    assert agent.call("search_folders", query="harbour", path="nowhere").code == "NOT_FOUND"


@pytest.mark.req("SE-10.e")
def test_a_query_that_is_too_long_is_refused_and_the_longest_is_answered(agent: Agent, root: Path) -> None:
    plant(root, {"big.txt": "lorem ipsum dolor\n" * 200_000, "sub": {"b.md": "a walrus at last\n"}})
    longest = " ".join(["walrus", *(f"q{number}" for number in range(900))])[:4000]
    until("the longest is answered", lambda: names(agent, longest)[:1] == ["b.md"], 60)
    refused = agent.call("search_folders", query="lorem " * 2_000_000)
    assert refused.code == "INVALID_QUERY"
    assert "at most 4000 characters long: it has 12000000" in refused.text


@pytest.mark.req("SE-50.a")
def test_meaning_is_found_where_no_word_is_shared(tmp_path: Path) -> None:
    settings = {"mcp": {"files": {"search": {"embedder": {"kind": "minilm"}}}}}
    with deployed(tmp_path, settings, None) as place:
        plant(
            place.house.root,
            {
                "car.md": "The automobile would not start because its battery was flat.",
                "pie.md": "Peel the apples, roll out the pastry and bake it for an hour.",
                "a.txt": "Nothing in particular.",
            },
        )
        settled(place.agent)
        assert names(place.agent, "vehicle trouble")[0] == "car.md"
        assert names(place.agent, "dessert recipe")[0] == "pie.md"


@pytest.mark.req("SE-50.b")
def test_documents_and_pages_are_extracted(agent: Agent, root: Path) -> None:
    plant(
        root,
        {
            "a.pdf": documents.pdf("Harbour plan of the northern quay"),
            "b.docx": documents.word(),
            "c.xlsx": documents.sheet(),
            "d.pptx": documents.slides(),
            "e.html": "<html><script>var quay = 1</script><body><p>Harbour &amp; quay page</p></body></html>",
            "broken.pdf": b"%PDF-1.7 and nothing more",
        },
    )
    settled(agent)
    assert sorted(names(agent, "harbour quay")) == ["a.pdf", "e.html"]
    assert names(agent, "Größe Maß") == ["b.docx"]
    assert names(agent, "people sheet") == ["c.xlsx"]
    assert names(agent, "closing thanks") == ["d.pptx"]
    page = next(hit for hit in hits(agent, "harbour") if hit["path"].endswith(".html"))
    assert (page["line"], page["text"].strip()) == (None, "Harbour & quay page")


@pytest.mark.req("SE-50.c", "SE-50.m")
def test_ignored_hidden_huge_and_linked_files_are_left_out(agent: Agent, root: Path, tmp_path: Path) -> None:
    outside = plant(tmp_path / "outside", {"x.md": f"harbour {SECRET}"})
    plant(
        root,
        {
            ".gitignore": "build/\n",
            "build": {"b.md": "harbour"},
            ".secret": {"h.md": "harbour"},
            ".env": "harbour",
            "huge.md": "harbour " * 800_000,
            "seen.md": "harbour",
        },
    )
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "way").symlink_to(outside)
    assert names(agent, "harbour", limit=20) == ["seen.md"]
    assert "left out" in agent.call("search_folders", query="harbour", path="build").ok().text
    told = f"[Not searched in {root}: 1 file over the size that the settings allow.]"
    assert agent.call("search_folders", query="zeppelin").ok().texts == ["No matches found.", told]
    assert agent.call("search_folders", query="harbour", path="huge.md").ok().texts == ["No matches found.", told]
    assert agent.call("search_folders", query="harbour", path="link.md").code == "ACCESS_DENIED"


@pytest.mark.req("SE-50.d")
def test_an_edit_a_rename_and_a_removal_by_another_program_show(agent: Agent, root: Path) -> None:
    plant(root, {"a.md": "harbour", "b.md": "meadow", "sub": {"c.md": "desert"}})
    assert names(agent, "harbour") == ["a.md"]
    (root / "a.md").write_text("mountain")
    assert names(agent, "harbour") == []
    assert names(agent, "mountain") == ["a.md"]
    (root / "sub").rename(root / "other")
    assert [hit["path"] for hit in hits(agent, "desert")] == [str(root / "other/c.md")]
    (root / "b.md").unlink()
    assert names(agent, "meadow") == []
    plant(root, {"new": {"d.md": "volcano"}})
    assert names(agent, "volcano") == ["d.md"]


@pytest.mark.req("SE-50.e")
def test_no_answer_holds_old_text_or_text_from_outside_while_files_change(
    agent: Agent, root: Path, tmp_path: Path
) -> None:
    secret = plant(tmp_path / "outside", {"x.md": f"beacon round 9999999 end {SECRET}"}) / "x.md"
    seen = 0
    with Beacons(root, secret) as beacons:
        for _ in range(ROUNDS):
            before = dict(beacons.done)
            for hit in hits(agent, "beacon round"):
                seen += 1
                assert SECRET not in hit["text"]
                assert round_of(hit["text"]) >= before[Path(hit["path"]).name]
    assert seen > ROUNDS / 2
    settled(agent)
    last = {Path(hit["path"]).name: round_of(hit["text"]) for hit in hits(agent, "beacon round")}
    assert last == beacons.done


@pytest.mark.req("SE-50.f")
def test_a_client_never_sees_passages_of_other_roots(running: Deployment, tmp_path: Path) -> None:
    plant(
        tmp_path,
        {"mine": {"a.md": "harbour mine"}, "yours": {"b.md": f"harbour {SECRET}", "in": {"c.md": "harbour in"}}},
    )
    state = running.house.state
    with Agent([tmp_path / "yours"], state) as you, Agent([tmp_path / "mine"], state) as me:
        assert sorted(names(you, "harbour")) == ["b.md", "c.md"]
        assert names(me, f"harbour {SECRET}", limit=20) == ["a.md"]
        assert SECRET not in me.call("search_folders", query=f"{SECRET} harbour").ok().text
        with Agent([tmp_path / "yours/in", tmp_path / "mine"], state) as both:
            assert sorted(names(both, f"harbour {SECRET}")) == ["a.md", "c.md"]


@pytest.mark.req("SE-50.f")
def test_a_tenant_without_folders_has_no_such_tool(running: Deployment) -> None:
    with running.tenant("a-long-key-of-somebody-else-0123456789") as tenant:
        assert "search_folders" not in {tool.name for tool in tenant.tools()}
        assert tenant.call("search_folders", query="harbour").code == "NOT_FOUND"


@pytest.mark.req("SE-50.g")
def test_the_first_search_says_how_far_the_index_is_and_searches_the_rest_by_words(
    running: Deployment, root: Path
) -> None:
    plant(root, {f"{number:04d}.md": f"filler {number} " * 400 for number in range(4000)})
    (root / "zz.md").write_text("the harbour at the very end")
    told: list[tuple[float, float | None, str | None]] = []
    with Agent([root], running.house.state) as agent:
        reply = agent.call_with("search_folders", {"query": "harbour"}, lambda *notice: told.append(notice)).ok()
        assert "zz.md" in reply.text
        found = re.search(r"is (\d+) % ready", reply.text)
        assert found is not None, reply.texts[-1]
        assert int(found[1]) < 100
        assert told
        settled(agent)
        assert names(agent, "harbour") == ["zz.md"]


def kill_server(state: Path) -> None:
    """Kill the server of a state folder, as soon as it says where it is."""
    pid: int = until("a server is up", lambda: server_pid(state))
    os.kill(pid, signal.SIGKILL)
    until("it is gone", lambda: not is_alive(pid))


def server_pid(state: Path) -> int | None:
    """Return the process of the server, None when none is up."""
    with suppress(FileNotFoundError, ValueError):
        pid = int(json.loads((state / "server.json").read_text())["pid"])
        return pid if is_alive(pid) else None
    return None


@pytest.mark.req("SE-50.h")
def test_an_index_survives_a_kill_and_is_made_again_when_damaged(ended_state: Path, root: Path) -> None:
    (ended_state / "settings.yml").write_text(
        json.dumps({"settings": {"mcp": {"files": {"search": {"embedder": {"kind": "none"}}}}}})
    )
    plant(root, {f"{number:03d}.md": f"harbour {number} " * 200 for number in range(400)})
    index = ended_state / "folders"
    with Agent([root], ended_state) as agent:
        settled(agent)
        assert len(hits(agent, "harbour", limit=20)) == 20
        assert {path.stat().st_mode & 0o777 for path in index.iterdir()} == {0o600}
    kill_server(ended_state)
    for path in index.iterdir():
        path.write_bytes(b"\xff" * 20_000)
    with Agent([root], ended_state) as agent:
        settled(agent)
        assert names(agent, "harbour 399", limit=1) == ["399.md"]


@pytest.mark.req("SE-50.h")
def test_an_index_holds_no_more_than_the_settings_allow(tmp_path: Path) -> None:
    with deployed(tmp_path, {"search_folders": {"max_files": 3}}, None) as place:
        plant(place.house.root, {f"{number}.md": "harbour" for number in range(5)})
        assert len(hits(place.agent, "harbour")) <= 3
        assert "left out" in place.agent.call("search_folders", query="harbour").ok().text


@pytest.mark.req("SE-50.i")
def test_nothing_is_indexed_before_the_first_search_and_nothing_is_sent_away(tmp_path: Path) -> None:
    with model_server() as remote:
        embedder = {"kind": "openai", "endpoint": f"{remote.url}/v1/embeddings", "api_key": "local-key-1"}
        rerank = {"endpoint": f"{remote.url}/v2/rerank"}
        settings = {"mcp": {"files": {"search": {"embedder": embedder, "rerank": rerank}}}}
        with deployed(tmp_path, settings, None) as place:
            plant(place.house.root, {"a.md": "harbour"})
            place.agent.call("read_text_file", path="a.md").ok()
            assert not list((place.house.state / "folders").iterdir())
            settled(place.agent)
            assert names(place.agent, "harbour")[0] == "a.md"
        assert remote.requests == []
        assert not any(b"harbour" in held for name, held in harvest(place.house.state).items() if name.endswith(".log"))


@pytest.mark.req("SE-10.e", "SE-50.j")
def test_a_person_searches_in_the_terminal(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings(json.dumps({"settings": {"mcp": {"files": {"search": {"embedder": {"kind": "none"}}}}}}))
    plant(house.root, {"sub": {"b.md": "one\n\nThe harbours at night \x1b[31m.\n"}})
    try:
        ran = house.run("search", "harbour", str(house.root), "--wait")
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith(f"{house.root}/sub/b.md:1  ")
        assert "The harbours at night" in ran.stdout
        assert r"\x1b[31m" in ran.stdout, "what a terminal would obey is shown"
        found = json.loads(house.run("search", "harbour", str(house.root), "--json").stdout)
        assert [Path(hit["path"]).name for hit in found["hits"]] == ["b.md"]
        assert found["ready"] == 100
        assert house.run("search", "zeppelin", str(house.root)).returncode == 1
        assert house.run("search", " ", str(house.root)).returncode == 2
        long = house.run("search", "harbour " * 501, str(house.root))
        assert (long.returncode, "at most 4000 characters long: it has 4008" in long.stderr) == (2, True)
        assert house.run("search", "harbour", str(house.root / "nowhere")).returncode == 2
    finally:
        house.end()


@pytest.mark.req("SE-50.l")
def test_where_rules_are_too_many_to_follow_nothing_is_shown_and_that_is_said(agent: Agent, root: Path) -> None:
    rules = "".join(f"made{number}.txt\n" for number in range(6_000))
    plant(
        root, {"a.txt": "harbour", "repo": {".gitignore": rules + "b.txt\n", "b.txt": "harbour", "c": {"d": "harbour"}}}
    )
    said = agent.call("search_folders", query="harbour").ok().text
    assert f"{root}/repo has more ignore rules than are followed" in said
    assert names(agent, "harbour") == ["a.txt"]
    (root / "repo/.gitignore").write_text("# a comment\n" * 6_000 + "b.txt\n")
    until("the rules are followed again", lambda: sorted(names(agent, "harbour")) == ["a.txt", "d"])
