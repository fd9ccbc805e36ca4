"""The symlink-swap race: while a directory and a link to the outside trade places, every verb is called for 30 seconds.

Not one answer may hold anything from outside, and not one byte outside may change.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.agent import Agent, Reply
from tests.helpers.swapper import swapping
from tests.helpers.trees import harvest, plant

SECONDS = 30.0
SECRET = "OUTSIDE-b7e1"

Attempt = Callable[[Agent, int], Reply]


def read(agent: Agent, turn: int) -> Reply:
    if turn % 50 == 0:
        return agent.call("query_json", file_path="door/f.json", expression=".")
    if turn % 2:
        return agent.call("read_text_file", path="door/f.txt")
    return agent.call("get_file_info", path="door/f.txt")


def write(agent: Agent, turn: int) -> Reply:
    if turn % 3 == 0:
        return agent.call("append_text", path="door/f.txt", content="more")
    if turn % 3 == 1:
        return agent.call("create_directory", path=f"door/made/{turn}")
    return agent.call("write_file", path=f"door/written-{turn % 4}.txt", content="inside")


def edit(agent: Agent, turn: int) -> Reply:
    old, new = ("alpha", "omega") if turn % 2 == 0 else ("omega", "alpha")
    return agent.call("edit_file", path="door/edit.txt", edits=[{"oldText": old, "newText": new}])


def move(agent: Agent, turn: int) -> Reply:
    names = [("door/m1.txt", "door/m2.txt"), ("door/m2.txt", "door/m1.txt"), ("door/m1.txt", "kept.txt")]
    source, destination = names[turn % 3]
    if turn % 7 == 0:
        source, destination = "kept.txt", "door/m1.txt"
    return agent.call("move_file", source=source, destination=destination)


def delete(agent: Agent, turn: int) -> Reply:
    if turn % 2 == 0:
        return agent.call("write_file", path="door/d.txt", content="inside")
    if turn % 5 == 0:
        return agent.call("delete_file", path="door/sub", recursive=True)
    return agent.call("delete_file", path="door/d.txt")


def listing(agent: Agent, turn: int) -> Reply:
    return agent.call("list_directory" if turn % 2 else "list_directory_with_sizes", path="door")


def tree(agent: Agent, turn: int) -> Reply:
    return agent.call("directory_tree", path="door" if turn % 2 else ".")


def search(agent: Agent, turn: int) -> Reply:
    return agent.call("search_files", path="door" if turn % 2 else ".", pattern="**/*")


def grep(agent: Agent, turn: int) -> Reply:
    return agent.call("grep_content", pattern="inside|OUTSIDE", search_path="door" if turn % 2 else ".")


GROUPS: dict[str, dict[str, Attempt]] = {
    "reading": {"read": read, "list": listing, "tree": tree},
    "finding": {"search": search, "grep": grep},
    "changing": {"write": write, "edit": edit, "move": move, "delete": delete},
}


def outside_tree() -> dict[str, str]:
    files = dict.fromkeys(("f.txt", "edit.txt", "m1.txt", "m2.txt", "d.txt", f"{SECRET}.txt"), f"{SECRET} alpha")
    return {**files, "f.json": json.dumps({"is": SECRET})}


@pytest.mark.req("FS-02.c", "FS-06.d")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_no_verb_escapes_while_a_directory_and_a_link_trade_places(
    group: str, agent: Agent, root: Path, tmp_path: Path
) -> None:
    outside = plant(tmp_path / "outside", {**outside_tree(), "sub": {f"{SECRET}.txt": SECRET}})
    inside = dict.fromkeys(("f.txt", "edit.txt", "m1.txt", "d.txt"), "inside alpha")
    plant(root / "door", {**inside, "f.json": '{"is": "inside"}', "sub": {"g.txt": "inside"}})
    (root / "link").symlink_to(outside)
    before = harvest(outside)
    outcomes: dict[str, Counter[str]] = {verb: Counter() for verb in GROUPS[group]}
    leaks: list[str] = []

    def hammer(verb: str, attempt: Attempt) -> None:
        end, turn = time.monotonic() + SECONDS, 0
        while time.monotonic() < end and not leaks:
            reply = attempt(agent, turn)
            outcomes[verb][reply.code if reply.is_error else "ok"] += 1
            if SECRET in reply.result.model_dump_json():
                leaks.append(f"{verb}: {reply.text[:300]}")
            turn += 1

    with swapping(root / "door", root / "link"):
        threads = [threading.Thread(target=hammer, args=item) for item in GROUPS[group].items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert leaks == []
    assert harvest(outside) == before
    assert sorted(path.name for path in outside.iterdir()) == sorted([*outside_tree(), "sub"])
    for verb, seen in outcomes.items():
        assert seen["ok"] > 20, (verb, seen)
        assert sum(seen.values()) - seen["ok"] > 0, (verb, seen)
        assert seen["INTERNAL"] == 0, (verb, seen)
