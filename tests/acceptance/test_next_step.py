"""An error and an empty answer say what to do next, for every mistake that agents are seen to make."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.documents import pdf, word
from tests.helpers.trees import Tree, harvest, plant

TREE: Tree = {
    "src": {"app.py": "import os\n", "lib": {"util.py": "x = 1\n"}},
    "README.md": "Read me.\n",
    "Straße.txt": "a street",
}


@pytest.fixture
def proj(tmp_path: Path) -> Path:
    """Give a folder with a few files."""
    folder = tmp_path / "proj"
    folder.mkdir()
    plant(folder, TREE)
    return folder


@pytest.fixture
def agent(proj: Path, state_dir: Path) -> Iterator[Agent]:
    """Give an agent of that folder."""
    with Agent([proj], state_dir) as connected:
        yield connected


def message(agent: Agent, tool: str, /, **arguments: Any) -> str:
    """Return the message of an error."""
    return str(agent.call(tool, **arguments).error["message"])


@pytest.mark.req("FS-03.b")
def test_a_denial_names_the_allowed_directories_and_is_the_same_whatever_is_there(
    tmp_path: Path, proj: Path, state_dir: Path
) -> None:
    other, outside = tmp_path / "other", tmp_path / "secret.txt"
    other.mkdir()
    outside.write_text("x")
    with Agent([proj, other], state_dir) as agent:
        for path in (str(outside), str(tmp_path / "not-there.txt")):
            expected = f"Access denied: {path} is outside allowed directories: {proj}, {other}"
            assert message(agent, "read_text_file", path=path) == expected
            assert message(agent, "write_file", path=path, content="x") == expected
            assert expected in agent.call("read_files", files=[{"path": path}]).text
            assert expected in agent.call("read_multiple_files", paths=[path]).text
            edit = {"path": path, "edits": [{"old_string": "x", "new_string": "y"}]}
            assert expected in message(agent, "edit_files", files=[edit])
            assert message(agent, "propose_and_review", path=path, new_string="x") == expected
            assert message(agent, "create_organization_plan", folder_path=path) == expected


@pytest.mark.req("FS-03.b")
def test_a_path_that_leaves_and_returns_is_told_its_direct_form(agent: Agent, proj: Path) -> None:
    path = f"{proj}/../proj/src/app.py"
    said = message(agent, "read_text_file", path=path)
    assert said == (
        f"Access denied: {path} is outside allowed directories: {proj}. "
        f"A path must not leave them on its way: write {proj}/src/app.py"
    )
    assert agent.call("read_text_file", path=f"{proj}/src/app.py").ok().text == "import os\n"
    gone = message(agent, "read_text_file", path=f"{proj}/../proj/src/none.py")
    assert gone == said.replace("app.py", "none.py")


@pytest.mark.req("SV-06.f")
@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("src/App.py", "src/app.py"),
        ("SRC/APP.PY", "src/app.py"),
        ("src/app.py ", "src/app.py"),
        (" src/app.py", "src/app.py"),
        ("src/ap.py", "src/app.py"),
        ("proj/src/app.py", "src/app.py"),
        ("src\\lib\\util.py", "src/lib/util.py"),
        ("C:\\work\\proj\\src\\app.py", "src/app.py"),
        ("~/proj/src/app.py", "src/app.py"),
        ("file:///{proj}/src/app.py", "src/app.py"),
        ("file://{proj}/README.md", "README.md"),
        ("{proj}/src/App.py", "src/app.py"),
        ("{proj}/lib/util.py", None),
        ("STRASSE.txt", "Straße.txt"),
        ("Stra\u00dfe.TXT", "Straße.txt"),
        ("Readme.md", "README.md"),
        ("proj", "{proj}"),
        ("~/proj", "{proj}"),
    ],
)
def test_a_path_that_is_not_there_names_the_nearest_one(agent: Agent, proj: Path, path: str, meant: str | None) -> None:
    given = path.replace("{proj}", str(proj))
    if given != given.strip():
        assert json.dumps(given) in message(agent, "get_file_info", path=given)
    for tool in ("read_text_file", "get_file_info", "read_media_file"):
        reply = agent.call(tool, path=given)
        assert reply.code == "NOT_FOUND"
        assert ("Did you mean" in reply.error["message"]) == (meant is not None), reply.text
        if meant is not None:
            right = meant.replace("{proj}", str(proj))
            assert reply.error["message"].endswith(f"Did you mean {right}?")
            assert right == str(proj) or agent.call(tool, path=right).ok()


@pytest.mark.req("SV-06.f")
def test_a_missing_directory_on_the_way_is_named_with_the_one_that_may_be_meant(agent: Agent, proj: Path) -> None:
    said = message(agent, "write_file", path="Src/new.py", content="x")
    assert said == (
        "The directory of Src/new.py does not exist. Call create_directory first. Src is not there, but src is."
    )
    said = message(agent, "write_file", path="docs/api/new.md", content="x")
    assert said == "The directory of docs/api/new.md does not exist. Call create_directory first. docs is not there."
    said = message(agent, "write_file", path="proj/src/new.py", content="x")
    assert said.endswith(f"Call create_directory first. Beneath {proj} the path is src/new.py.")
    assert message(agent, "list_directory", path="docs/api/old") == (
        "No such file or directory: docs/api/old. docs is not there."
    )


@pytest.mark.req("SV-06.f")
def test_forms_of_paths_that_are_not_taken_are_told_so(agent: Agent, proj: Path) -> None:
    assert message(agent, "list_directory", path="~/none") == (
        f"No such file or directory: ~/none. '~' is not expanded here. Relative paths start at {proj}."
    )
    assert message(agent, "read_text_file", path="file:///etc/none").endswith(
        f"Give a path, not a URI. Relative paths start at {proj}."
    )
    gone = message(agent, "read_text_file", path="~/proj/none")
    assert gone.endswith(f"'~' is not expanded here. Beneath {proj} the path is none.")
    assert "have no drive" in message(agent, "read_text_file", path="D:\\none")


@pytest.mark.req("SV-06.f", "FS-02.a")
def test_no_suggestion_names_what_the_caller_cannot_see(tmp_path: Path) -> None:
    root = tmp_path / "home"
    state = root / "statefolder"
    state.mkdir(parents=True, mode=0o700)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("x")
    (root / "door").symlink_to(tmp_path / "outside")
    with Agent([root], state) as agent:
        agent.call("write_file", path="a.txt", content="x").ok()
        for path in ("StateFolder", "statefolde", "statefolder/person.kez", "x/statefolder/person.key"):
            assert "Did you mean" not in message(agent, "read_text_file", path=path)
        for path in ("secret.txt", "outside/secret.txt", "x/outside/secret.txt"):
            assert "Did you mean" not in message(agent, "read_text_file", path=path)


@pytest.mark.req("SV-06.f")
def test_an_unknown_tool_names_the_one_that_is_meant_and_runs_nothing(agent: Agent, proj: Path) -> None:
    meant = {
        "read_file": "read_text_file",
        "readFile": "read_text_file",
        "list_files": "list_directory",
        "cat": "read_text_file",
        "rm": "delete_file",
        "delete": "delete_file",
        "mkdir": "create_directory",
        "search": "grep_content",
        "grep": "grep_content",
        "str_replace": "edit_files",
        "write_files": "write_file",
    }
    before = harvest(proj)
    for name, tool in meant.items():
        assert message(agent, name, path="README.md") == f"There is no tool '{name}'. Did you mean '{tool}'?"
    unknown = message(agent, "zzzzzz")
    assert unknown.startswith("There is no tool 'zzzzzz'. The tools: ")
    assert {"read_text_file", "edit_files", "file_write"} <= set(unknown.replace(",", "").split())
    assert harvest(proj) == before


@pytest.mark.req("SV-06.f")
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read_files", {"files": ["a"]}, """argument 'files.0': an object is expected, for example {"path": "a"}"""),
        ("read_multiple_files", {"paths": "a"}, """argument 'paths': a list is expected, for example ["a"]"""),
        ("read_files", {"files": '[{"path": "a"}]'}, "give it without the quotes"),
        (
            "revise_plan",
            {"plan_id": "p", "changes": [{"file": "a"}]},
            "'changes.0.file' (did you mean 'changes.0.path'?)",
        ),
        ("read_text_file", {"file_path": "a"}, "'file_path' (did you mean 'path'?)"),
        ("query_json", {"path": "a", "expression": "."}, "'path' (did you mean 'file_path'?)"),
        ("grep_content", {"query": "a", "path": "."}, "'query' (did you mean 'pattern'?)"),
        ("grep_content", {"query": "a", "path": "."}, "'path' (did you mean 'search_path'?)"),
        ("create_organization_plan", {"path": "."}, "'path' (did you mean 'folder_path'?)"),
        (
            "edit_files",
            {"files": [{"path": "a", "edits": [{"oldText": "a", "newText": "b"}]}]},
            "'files.0.edits.0.oldText' (did you mean 'files.0.edits.0.old_string'?)",
        ),
        (
            "edit_file",
            {"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]},
            "'edits.0.new_string' (did you mean 'edits.0.newText'?)",
        ),
        ("undo_change", {"plan_id": "a"}, "'plan_id' (did you mean 'change_id'?)"),
        ("edit_files", {"changes": [{"file": "a"}]}, "edit_files: unknown argument 'changes' (did you mean 'files'?)"),
        ("read_text_file", {"path": "a", "start_line": 3}, "'start_line'; read_text_file takes path, head, tail"),
        (
            "edit_file",
            {
                "file_path": "a",
                "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}],
            },
            "unknown argument 'file_path' (did you mean 'path'?)",
        ),
    ],
)
def test_a_wrong_argument_is_told_the_right_one(agent: Agent, tool: str, arguments: dict[str, Any], said: str) -> None:
    error = agent.call(tool, **arguments).error
    assert error["code"] == "INVALID_ARGUMENT"
    assert said in error["message"]


@pytest.mark.req("SV-06.f", "FS-16.b")
def test_a_glob_that_finds_nothing_at_the_top_names_the_one_that_does(agent: Agent, proj: Path) -> None:
    said = agent.call("search_files", path=".", pattern="*.py").ok().text
    assert said == ("No matches found.\n[*.py matches in the searched directory alone. **/*.py finds src/app.py.]")
    assert agent.call("search_files", path=".", pattern="*.rs").ok().text == "No matches found."
    assert agent.call("search_files", path=".", pattern="*.py", excludePatterns=["src"]).text == "No matches found."
    assert "does not begin with '/'" in agent.call("search_files", path=".", pattern=f"{proj}/*.py").text


@pytest.mark.req("SV-06.f", "FS-16.b")
def test_an_empty_search_says_that_ignored_files_match(agent: Agent, proj: Path) -> None:
    plant(proj, {".gitignore": "build/\n", "build": {"made.txt": "needle\n"}})
    said = agent.call("grep_content", pattern="needle").ok().text
    assert said == "No matches found.\n[Ignored files match, such as build/made.txt: include_ignored searches them.]"
    assert "needle" in agent.call("grep_content", pattern="needle", include_ignored=True).text
    assert agent.call("grep_content", pattern="nowhere").ok().text == "No matches found."
    assert "build/made.txt matches and is left out" in agent.call("search_files", path=".", pattern="**/made.txt").text


@pytest.mark.req("SV-06.f", "FS-16.b")
def test_an_empty_search_says_that_documents_are_not_searched(agent: Agent, proj: Path) -> None:
    (proj / "paper.docx").write_bytes(word())
    said = agent.call("grep_content", pattern="paragraph").ok().text
    assert said.startswith("No matches found.\n[Documents such as paper.docx are not searched: search_folders finds")
    assert agent.call("grep_content", pattern="paragraph", glob="*.py").ok().text == "No matches found."
    said = agent.call("grep_content", pattern="paragraph", search_path="paper.docx").ok().text
    assert "paper.docx is a document, whose text this does not search: search_folders does" in said


@pytest.mark.req("SV-06.f", "FS-30")
def test_edits_that_changed_no_file_are_an_error_that_names_each_file_and_text(agent: Agent, proj: Path) -> None:
    edits = [{"old_string": "import sys", "new_string": "import re"}]
    wanted = [{"path": "src/app.py", "edits": edits}, {"path": "src/App.py", "edits": edits}]
    error = agent.call("edit_files", files=wanted).error
    assert error["code"] == "INVALID_ARGUMENT"
    first, second = error["message"].splitlines()[1:]
    assert first.startswith("src/app.py: INVALID_ARGUMENT: edits[0]: The text to match was found 0 times in the file.")
    assert first.endswith('Text to match: "import sys"')
    assert second.startswith(
        "src/App.py: INVALID_ARGUMENT: edits[0]: The file does not exist. Did you mean src/app.py?"
    )
    assert [file["status"] for file in error["files"]] == ["failed", "failed"]
    assert error["files"][0]["error"]["file_content"] == "import os\n"
    good = [{"old_string": "import os", "new_string": "import re"}]
    reply = agent.call(
        "edit_files", files=[wanted[0], {"path": "README.md", "edits": edits}, {"path": "src/app.py", "edits": good}]
    ).ok()
    assert reply.text.startswith("Files edited: 1 of 3.")
    long = agent.call("edit_file", path="README.md", edits=[{"oldText": "z" * 5000, "newText": "y"}]).error
    assert long["text_to_match"] == "z" * 119 + "…"


@pytest.mark.req("SV-06.f", "FS-35")
@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_a_document_is_not_edited_in_place_and_nothing_of_it_is_shown(agent: Agent, proj: Path, name: str) -> None:
    content = pdf("Some text.") if name == "a.pdf" else b"PK\x03\x04\x14\x00[Content_Types].xml word/" + b"\0" * 99
    (proj / name).write_bytes(content)
    refused = [
        agent.call("edit_file", path=name, edits=[{"oldText": "Some text.", "newText": "x"}]).error,
        agent.call("edit_files", files=[{"path": name, "edits": [{"old_string": "Some", "new_string": "x"}]}]).error[
            "files"
        ][0]["error"],
        agent.call("propose_and_review", path=name, old_string="Some", new_string="x").error,
    ]
    assert f"{name} is {'a PDF' if name == 'a.pdf' else 'an Office'} document." in refused[0]["message"]
    for error in refused:
        assert "document" in error["message"] and "cannot be edited in place" in error["message"]
        assert "write_file" in error["hint"]
        assert "file_content" not in error
    assert (proj / name).read_bytes() == content


@pytest.mark.req("SV-06.f", "FS-17.b")
def test_text_over_a_file_that_is_no_text_is_written_with_a_warning_and_a_way_back(agent: Agent, proj: Path) -> None:
    content = pdf("Some text.")
    (proj / "a.pdf").write_bytes(content)
    for tool, arguments, verb in (
        ("write_file", {"content": "plain"}, "replaced"),
        ("append_text", {"content": "more"}, "was added to"),
    ):
        said = agent.call(tool, path="a.pdf", **arguments).ok().text
        assert f"[This text {verb} a file that is no text (application/pdf)." in said
        change_id = said.rpartition('change_id="')[2].partition('"')[0]
        agent.call("undo_change", change_id=change_id).ok()
        assert (proj / "a.pdf").read_bytes() == content
    assert "no text" not in agent.call("write_file", path="README.md", content="text").ok().text
    assert "no text" not in agent.call("append_text", path="README.md", content="text").ok().text


@pytest.mark.req("SV-06.f", "FS-11.a")
@pytest.mark.parametrize(
    ("text", "selection", "lines"),
    [
        ("one\n\n\nfour\nfive\n", {"start_line": 1, "end_line": 3}, "lines 1-3"),
        ("one\n\nthree\n", {"head": 2}, "lines 1-2"),
        ("\nb\n", {"head": 1}, "lines 1-1"),
        ("a\nb\nc\nd\n", {"tail": 2}, "lines 3-4"),
        ("a\nb\nc\nd", {"tail": 2}, "lines 3-4"),
        ("a\nb\n", {}, "lines 1-2"),
    ],
)
def test_the_lines_that_were_read_are_counted_right(
    agent: Agent, proj: Path, text: str, selection: dict[str, int], lines: str
) -> None:
    (proj / "a.txt").write_text(text)
    said = agent.call("read_files", files=[{"path": "a.txt", **selection}]).ok().text
    assert said.splitlines()[0].endswith(f"a.txt {lines}")


@pytest.mark.req("SV-06.f")
def test_a_name_that_cannot_be_given_back_is_not_suggested(agent: Agent, proj: Path) -> None:
    with open(os.open(os.fsencode(proj) + b"/caf\xe9.txt", os.O_CREAT | os.O_WRONLY), "w") as file:
        file.write("x")
    assert "Did you mean" not in message(agent, "read_text_file", path="cafe.txt")


@pytest.mark.req("SV-06.f")
def test_a_link_to_nothing_is_told_as_such(agent: Agent, proj: Path) -> None:
    (proj / "latest").symlink_to("release-7")
    assert message(agent, "read_text_file", path="latest") == (
        "No such file or directory: latest. It is a link, and what it points to is not there."
    )


@pytest.mark.req("SV-06.f")
def test_a_plan_a_pattern_and_a_file_for_a_directory_that_cannot_be_used_say_what_can(agent: Agent) -> None:
    for tool in ("get_plan", "execute_plan", "undo_plan"):
        assert message(agent, tool, plan_id="abcd").endswith("list_plans shows those that there are.")
    assert message(agent, "grep_content", pattern="f(").endswith("put a backslash before each.")
    assert message(agent, "list_directory", path="README.md") == (
        "README.md is not a directory, or lies beneath a file."
    )
    assert message(agent, "edit_file", path="README.md", edits=[]) == (
        "edit_file: argument 'edits': list should have at least 1 item, not 0"
    )
