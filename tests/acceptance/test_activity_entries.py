"""What the Activity page reads: the net effect of the changes it lists, and the figures of the server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.console import sign_in
from tests.helpers.doors import House

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose server ends with the test."""
    made = House(tmp_path)
    yield made
    made.run("stop")
    made.end()


@pytest.mark.req("SV-44")
def test_the_net_effect_of_listed_changes_is_of_these_and_of_no_other(house: House) -> None:
    with Agent([house.root], house.state, name="desk") as desk:
        desk.call("write_file", path="new.txt", content="1\n").ok()
        desk.call("write_file", path="other.txt", content="1\n").ok()
        desk.call("edit_file", path="new.txt", edits=[{"oldText": "1", "newText": "2"}]).ok()
        page = sign_in(house)
        listed = page.data("all_changes")["changes"]
        ids = [change["change_id"] for change in listed if change["path"].endswith("new.txt")]
        net = page.data("net_changes", change_ids=ids)
        both = page.post("net_changes", change_ids=ids, client="desk")
    assert net["changes"] == 2
    (file,) = net["files"]
    assert (file["effect"], Path(file["path"]).name) == ("created", "new.txt")
    assert [line for line in file["diff"].splitlines() if line.startswith(("+", "-"))][2:] == ["+2"]
    assert both.json()["error"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.req("SV-44")
def test_the_figures_of_the_server_are_added_up_over_tools_and_are_no_agents(house: House) -> None:
    with Agent([house.root], house.state, name="desk") as desk:
        desk.call("list_directory", path=".").ok()
        assert desk.call("read_text_file", path="gone.txt").code == "NOT_FOUND"
        assert desk.call("server_figures").code == "NOT_FOUND"
        answer = sign_in(house).data("server_figures")
    assert answer["is_measured"]
    figures = answer["figures"]
    ended = {entry["labels"]["status"]: entry["value"] for entry in figures["holdfast_calls_total"]}
    assert ended["ok"] >= 1
    assert ended["error"] >= 1
    bounds = [entry["labels"]["le"] for entry in figures["holdfast_call_duration_seconds_bucket"]]
    assert len(bounds) == len(set(bounds))
    assert "+Inf" in bounds
    assert "mcp_files_index_queue_depth" in figures
