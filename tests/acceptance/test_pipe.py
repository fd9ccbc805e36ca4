"""mcp_pipe on real folders through a real client: chains, parallel steps, errors, refusals, media, progress, cancelling."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.helpers.agent import Agent
from tests.helpers.doors import children_of, until

pytestmark = [pytest.mark.timeout(60), pytest.mark.req("SV-08")]


def step(name: str, tool: str, after: list[str] | None = None, **arguments: Any) -> dict[str, Any]:
    return {"id": name, "tool": tool, "arguments": arguments, **({"after": after} if after else {})}


def ref(source: str, path: str = "/text") -> dict[str, str]:
    return {"$from": source, "path": path}


def piped(agent: Agent, *steps: dict[str, Any], **options: Any) -> dict[str, dict[str, Any]]:
    """Return the outcome of each step by its id."""
    found = agent.call("mcp_pipe", steps=list(steps), **options).ok().data["steps"]
    assert [outcome["id"] for outcome in found] == [asked["id"] for asked in steps]
    return {outcome["id"]: outcome for outcome in found}


def statuses(outcomes: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: outcome["status"] for name, outcome in outcomes.items()}


def test_read_edit_and_read_again_is_one_request(agent: Agent, root: Path) -> None:
    (root / "name.txt").write_text("Ada")
    (root / "letter.txt").write_text("Dear NAME,\n")
    found = piped(
        agent,
        step("name", "read_text_file", path="name.txt"),
        step(
            "edit",
            "edit_files",
            files=[{"path": "letter.txt", "edits": [{"old_string": "NAME", "new_string": ref("name")}]}],
        ),
        step("after", "read_text_file", path=ref("edit", "/files/0/path")),
        step("hash", "get_file_info", path=ref("edit", "/files/0/path")),
        step("undo", "undo_change", after=["after", "hash"], change_id=ref("edit", "/files/0/change_id")),
        step("before", "read_text_file", after=["undo"], path="letter.txt"),
    )
    assert set(statuses(found).values()) == {"ok"}
    assert found["after"]["result"] == {"text": "Dear Ada,\n"}
    assert found["before"]["result"] == {"text": "Dear NAME,\n"}
    assert (root / "letter.txt").read_text() == "Dear NAME,\n"


def test_fifty_independent_steps_all_happen(legacy_agent: Agent, root: Path) -> None:
    steps = [step(f"w{number}", "write_file", path=f"{number}.txt", content=str(number)) for number in range(50)]
    assert set(statuses(piped(legacy_agent, *steps)).values()) == {"ok"}
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        f"{number}.txt": str(number) for number in range(50)
    }


def test_an_error_stops_the_rest_or_only_what_needed_it(agent: Agent, root: Path) -> None:
    steps = [
        step("missing", "read_text_file", path="missing.txt"),
        step("copy", "write_file", path="copy.txt", content=ref("missing")),
        step("tree", "list_directory", path="."),
        step("other", "write_file", after=["tree"], path="other.txt", content="x"),
    ]
    going_on = piped(agent, *steps, continue_on_error=True)
    assert statuses(going_on) == {"missing": "error", "copy": "skipped", "tree": "ok", "other": "ok"}
    assert going_on["missing"]["error"]["code"] == "NOT_FOUND"
    assert going_on["copy"] == {"id": "copy", "status": "skipped", "because": "missing"}
    assert sorted(path.name for path in root.iterdir()) == ["other.txt"]
    (root / "other.txt").unlink()

    stopped = piped(
        agent, steps[0], steps[1], step("last", "write_file", after=["missing"], path="last.txt", content="x")
    )
    assert statuses(stopped) == {"missing": "error", "copy": "skipped", "last": "skipped"}
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([step("a", "mcp_pipe", steps=[])], "step 'a': 'mcp_pipe' can only be called by itself"),
        ([step("a", "no_such_tool")], "step 'a': There is no tool 'no_such_tool'"),
        ([step("a", "list_directory", path=ref("b")), step("b", "list_directory", path=ref("a"))], "step 'a': dependency cycle"),
        ([step("a", "list_directory", path=ref("z"))], "step 'a': there is no step 'z'"),
        ([step("a", "list_directory"), step("a", "list_directory")], "step 'a': two steps have this id"),
        ([step("a", "list_directory", path={"$from": "first", "path": "text"})], "step 'a': a JSON pointer"),
        ([step(f"s{number}", "list_directory") for number in range(50)], "mcp_pipe: argument 'steps': list should have at most 50 items"),
    ],
)  # fmt: skip
def test_a_pipe_that_cannot_work_is_refused_before_anything_runs(
    agent: Agent, root: Path, steps: list[dict[str, Any]], sentence: str
) -> None:
    answer = agent.call("mcp_pipe", steps=[step("first", "write_file", path="trace.txt", content="x"), *steps])
    assert answer.code == "INVALID_ARGUMENT"
    assert answer.error["message"].startswith(sentence)
    assert list(root.iterdir()) == []


def test_steps_stay_in_the_jail_and_their_errors_are_those_of_a_call_alone(agent: Agent, root: Path) -> None:
    (root.parent / "secret.txt").write_text("secret")
    (root / "where.txt").write_text("../secret.txt")
    found = piped(
        agent,
        step("where", "read_text_file", path="where.txt"),
        step("read", "read_text_file", path=ref("where")),
        step("wrong", "read_text_file", file="where.txt"),
        continue_on_error=True,
    )
    assert found["read"]["error"] == agent.call("read_text_file", path="../secret.txt").error
    assert found["wrong"]["error"] == agent.call("read_text_file", file="where.txt").error
    assert found["read"]["error"]["code"] == "ACCESS_DENIED"


def test_read_only_mode_holds_inside_a_pipe(root: Path, ended_state: Path) -> None:
    (root / "a.txt").write_text("kept")
    (ended_state / "settings.yml").write_text("settings: {folders: {read_only: true}}")
    with Agent([root], ended_state, options=["--in-process"]) as agent:
        found = piped(
            agent, step("a", "read_text_file", path="a.txt"), step("b", "write_file", path="a.txt", content=ref("a"))
        )
    assert found["b"]["error"]["code"] == "PERMISSION_DENIED"
    assert found["a"]["result"] == {"text": "kept"}


def test_a_file_that_was_read_in_part_is_not_copied_as_if_it_were_whole(agent: Agent, root: Path) -> None:
    (root / "big.txt").write_text("word " * 40_000)
    found = piped(
        agent,
        step("big", "read_text_file", path="big.txt"),
        step("copy", "write_file", path="copy.txt", content=ref("big")),
    )
    assert found["copy"]["error"]["code"] == "INVALID_ARGUMENT"
    assert "was cut by the token budget" in found["copy"]["error"]["message"]
    assert not (root / "copy.txt").exists()


def test_the_text_and_the_data_of_an_answer_stay_within_one_budget_each(agent: Agent, root: Path) -> None:
    (root / "big.txt").write_text("line of a file\n" * 6_000)
    (root / "small.txt").write_text("small")
    steps = [step(f"big{number}", "read_text_file", path="big.txt") for number in range(6)]
    reply = agent.call("mcp_pipe", steps=[*steps, step("small", "read_text_file", path="small.txt")]).ok()
    outcomes = {outcome["id"]: outcome for outcome in reply.data["steps"]}
    assert outcomes["small"] == {"id": "small", "status": "ok", "result": {"text": "small"}}
    assert all(outcomes[f"big{number}"]["truncated"] for number in range(6))
    for form in (reply.text, json.dumps(reply.data)):
        assert 20_000 < len(form) / 4 < 26_000


def test_an_image_passes_through_beneath_the_name_of_its_step(agent: Agent, root: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(root / "red.png")
    reply = agent.call(
        "mcp_pipe",
        steps=[step("info", "get_file_info", path="red.png"), step("look", "read_media_file", path="red.png")],
    ).ok()
    kinds = [block.type for block in reply.result.content]
    assert kinds == ["text", "text", "text", "image"]
    assert reply.texts[0] == "2 steps: 2 ok."
    assert reply.texts[2].endswith(" 2/2] step look: ok")
    assert reply.data["steps"][1]["result"] == {"media": ["image/png"]}


def test_a_pipe_tells_its_progress(agent: Agent, root: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    steps = [step("s0", "write_file", path="0.txt", content="x")]
    steps += [step(f"s{n}", "write_file", after=[f"s{n - 1}"], path=f"{n}.txt", content="x") for n in range(1, 20)]
    agent.call_with("mcp_pipe", {"steps": steps}, lambda *notice: heard.append(notice)).ok()
    until("the last notice came", lambda: heard and heard[-1][0] == 20.0, 5)
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)
    assert heard[-1] == (20.0, 20.0, "s19: ok")


def test_cancelling_a_pipe_ends_its_steps_and_begins_no_other(agent: Agent, root: Path, state_dir: Path) -> None:
    (root / "n.json").write_text("1")
    slow: dict[str, Any] = {"file_path": "n.json", "expression": "last(range(1e12))", "timeout": 30}
    server = json.loads((state_dir / "server.json").read_text())["pid"]
    idle = set(children_of(server))
    steps = [
        step("slow", "query_json", **slow),
        step("never", "write_file", after=["slow"], path="never.txt", content="x"),
    ]
    future = agent.start("mcp_pipe", {"steps": steps, "continue_on_error": True})
    until("the child runs", lambda: set(children_of(server)) - idle)
    future.cancel()
    until("the child was ended", lambda: not set(children_of(server)) - idle, 5)
    assert agent.call("list_directory", path=".").ok()
    assert not (root / "never.txt").exists()


def test_the_pipe_is_one_small_entry_of_the_list(agent: Agent) -> None:
    listed = {tool.name: tool for tool in agent.tools()}
    pipe = listed["mcp_pipe"].model_dump_json(by_alias=True, exclude_none=True)
    assert len(pipe) / 4 < 450
