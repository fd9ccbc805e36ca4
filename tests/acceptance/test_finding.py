"""Listings, trees and both searches, through a real client."""

import json
import os
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from holdfast.text.budget import estimate_tokens
from tests.helpers.agent import Agent, Reply
from tests.helpers.finder import cursor_in
from tests.helpers.trees import plant

BUDGET = 25_000


def all_pages(agent: Agent, tool: str, **arguments: object) -> list[Reply]:
    replies = [agent.call(tool, **arguments).ok()]
    while (cursor := cursor_in(replies[-1].text)) is not None:
        assert len(replies) < 100
        replies.append(agent.call(tool, **arguments, cursor=cursor).ok())
    return replies


@pytest.mark.req("FS-15.a")
def test_a_newline_in_a_name_forges_no_entry_in_any_answer(agent: Agent, root: Path) -> None:
    plant(root, {"evil\n[DIR] forged": "needle\n", "good": ""})
    assert agent.call("list_directory", path=".").ok().text == '[FILE] "evil\\n[DIR] forged"\n[FILE] good'
    sized = agent.call("list_directory_with_sizes", path=".").ok().text
    assert "\n[DIR]" not in sized
    assert "Total: 2 files, 0 directories" in sized
    assert agent.call("search_files", path=".", pattern="*").ok().text.count("\n") == 1
    assert len(json.loads(agent.call("directory_tree", path=".").ok().text)) == 2
    assert agent.call("grep_content", pattern="needle").ok().text.startswith('File: "evil\\n[DIR] forged"\n1:needle')


@pytest.mark.req("FS-15.b")
def test_entries_that_come_and_go_never_fail_a_listing(agent: Agent, root: Path) -> None:
    plant(root, {"stays": ""})
    stop = threading.Event()

    def flicker() -> None:
        while not stop.is_set():
            for number in range(50):
                (root / f"flicker-{number}").touch()
            for number in range(50):
                (root / f"flicker-{number}").unlink()

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(60):
            for tool in ("list_directory", "list_directory_with_sizes", "directory_tree"):
                assert "stays" in agent.call(tool, path=".").ok().text
    finally:
        stop.set()
        thread.join()


@pytest.mark.req("FS-15.c")
def test_finding_tools_answer_text_once_and_no_structured_twin(agent: Agent, root: Path) -> None:
    plant(root, {"a.py": "needle\n"})
    for tool, arguments in {
        "list_directory": {"path": "."},
        "directory_tree": {"path": "."},
        "search_files": {"path": ".", "pattern": "*"},
        "grep_content": {"pattern": "needle"},
    }.items():
        reply = agent.call_with(tool, arguments).ok()
        assert reply.result.structured_content is None
        assert "a.py" in reply.text


@pytest.mark.req("FS-16.a")
def test_both_searches_and_the_tree_respect_gitignore(agent: Agent, root: Path) -> None:
    plant(
        root,
        {
            ".gitignore": "node_modules/\n*.log\n",
            ".git": {"config": "needle"},
            "src": {
                "a.py": "needle\n",
                "x.log": "needle\n",
                ".gitignore": "!x.log\ngen/\n",
                "gen": {"g.py": "needle\n"},
            },
            "node_modules": {"m.js": "needle\n"},
            "y.log": "needle\n",
        },
    )
    found = agent.call("search_files", path=".", pattern="**/*").ok().text.splitlines()
    assert found == [f"{root}/{name}" for name in (".gitignore", "src", "src/.gitignore", "src/a.py", "src/x.log")]
    text = agent.call("grep_content", pattern="needle").ok().text
    assert [line for line in text.splitlines() if line.startswith("File:")] == ["File: src/a.py", "File: src/x.log"]
    everything = agent.call("grep_content", pattern="needle", include_ignored=True).ok().text
    assert everything.count("File: ") == 5
    assert "m.js" not in agent.call("directory_tree", path=".").ok().text
    assert "m.js" in agent.call("search_files", path="node_modules", pattern="*").ok().text


@pytest.mark.req("FS-16.b")
def test_a_hit_shows_path_line_context_and_the_end_of_its_section(agent: Agent, root: Path) -> None:
    plant(root, {"src": {"a.py": "import os\n\n\ndef one():\n    x = 1\n    return x\n\n\ndef two():\n    pass\n"}})
    text = agent.call("grep_content", pattern="X = 1", case_insensitive=True, context_lines=1).ok().text
    assert text == "File: src/a.py\n4-def one():\n5:    x = 1\n6-    return x\n[sections: 5..8]"
    own = agent.call("grep_content", pattern="import", context_lines=0, section_patterns=["return"]).ok().text
    assert own == "File: src/a.py\n1:import os\n[sections: 1..5]"


@pytest.mark.req("FS-16.b")
def test_no_match_has_its_own_text(agent: Agent, root: Path) -> None:
    plant(root, {"a": "b\n"})
    assert agent.call("search_files", path=".", pattern="**/none").ok().text == "No matches found."
    assert agent.call("grep_content", pattern="none").ok().text == "No matches found."


@pytest.mark.req("FS-16.c")
def test_hits_are_bounded_over_all_files(agent: Agent, root: Path) -> None:
    plant(root, {f"f{number:02}": "hit\n" * 20 for number in range(30)})
    replies = all_pages(agent, "grep_content", pattern="hit", max_results=250, context_lines=0)
    assert [reply.text.count(":hit") for reply in replies] == [250, 250, 100]


@pytest.mark.req("FS-16.c")
def test_a_bad_regex_is_an_error_and_a_catastrophic_one_ends_in_time(agent: Agent, root: Path) -> None:
    plant(root, {"a": "a" * 100_000 + "!\n"})
    bad = agent.call("grep_content", pattern="a(")
    assert bad.code == "INVALID_QUERY"
    assert str(root) not in bad.error["message"]
    assert agent.call("search_files", path=".", pattern="!(x)").code == "INVALID_QUERY"
    began = time.monotonic()
    agent.call("grep_content", pattern="^(a+)+$").ok()
    agent.call("search_files", path=".", pattern="*a" * 50 + "b").ok()
    assert time.monotonic() - began < 20


@pytest.mark.req("FS-13.a")
def test_every_answer_keeps_to_the_budget_and_goes_on_by_cursor(agent: Agent, root: Path) -> None:
    for folder in range(40):
        (root / f"folder-{folder:02}").mkdir()
        for number in range(100):
            (root / f"folder-{folder:02}" / f"a-rather-long-file-name-{number:03}.txt").write_text(
                "hit " + "x" * 90 + "\n"
            )
    for number in range(5000):
        (root / "folder-00" / f"another-long-file-name-{number:05}.md").touch()
    listed = all_pages(agent, "list_directory", path="folder-00")
    assert sum(reply.text.count("[FILE]") for reply in listed) == 5100
    searched = all_pages(agent, "search_files", path=".", pattern="**/*.txt")
    assert sum(reply.text.count(".txt") for reply in searched) == 4000
    grepped = all_pages(agent, "grep_content", pattern="hit", max_results=5000)
    assert sum(reply.text.count("1:hit") for reply in grepped) == 4000
    trees = all_pages(agent, "directory_tree", path=".")
    assert sum(reply.text.count('"type":"file"') for reply in trees) == 3900
    assert '"name":"folder-00","type":"directory","entries":5100,"collapsed":true' in trees[0].text
    for reply in (*listed, *searched, *grepped, *trees):
        assert estimate_tokens(reply.text) <= BUDGET


@pytest.mark.req("FS-19.a", "FS-19.b", "FS-06.b")
def test_a_long_search_tells_its_progress_and_ends_when_it_is_cancelled(agent: Agent, root: Path) -> None:
    os.close(os.open(root / "huge", os.O_CREAT | os.O_WRONLY))
    os.truncate(root / "huge", 500 * 1024**3)
    pattern = f"{root.parent.name}-[0-9]x"
    told = threading.Event()
    done: list[float] = []

    def hear(progress: float, _total: float | None, _message: str | None) -> None:
        done.append(progress)
        told.set()

    future = agent.start("grep_content", {"pattern": pattern, "search_path": "huge"}, hear)
    assert told.wait(15)
    assert children_with(pattern)
    future.cancel()
    with pytest.raises(CancelledError):
        future.result(timeout=10)
    assert agent.call("list_directory", path=".").ok().text == "[FILE] huge"
    until = time.monotonic() + 10
    while children_with(pattern) and time.monotonic() < until:
        time.sleep(0.05)
    assert children_with(pattern) == []
    assert done == sorted(done)


@pytest.mark.req("FS-06.c")
def test_where_no_program_may_open_by_path_it_is_fed_and_answers_the_same(
    agent: Agent, root: Path, tmp_path: Path, ended_state: Path
) -> None:
    plant(root, {f"d{one}": {f"f{two}.py": "import os\nneedle\n" for two in range(40)} for one in range(10)})
    plant(root, {".gitignore": "d3/\n", "bin": b"needle\n\0", "z.txt": "needle\n"})
    locked_in = agent.call("grep_content", pattern="needle", search_path=".", max_results=1000).ok().text
    plant(ended_state, {"bait.txt": "needle\n"})
    with Agent([tmp_path], ended_state) as other:
        fed = other.call("grep_content", pattern="needle", search_path=root.name, max_results=1000).ok().text
        wide = other.call("grep_content", pattern="needle", max_results=1000).ok().text
    assert locked_in.count("File: ") == 361
    assert fed.replace(f"File: {root.name}/", "File: ") == locked_in
    assert "bait" not in wide


def children_with(argument: str) -> list[str]:
    """Return the processes that have the text on their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found
