"""The console's event stream of a real server: what is told, and how it goes on after a break and after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.console import sign_in
from tests.helpers.doors import House, until
from tests.helpers.events import EventReader

pytestmark = [pytest.mark.timeout(90), pytest.mark.req("SV-44")]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder with nothing running."""
    given = House(tmp_path)
    yield given
    given.end()


def test_a_change_by_an_agent_is_told_as_ids_and_not_by_what_is_in_it(house: House) -> None:
    with house.serve(str(house.root)):
        page = sign_in(house)
        with EventReader(page) as events, house.relay() as relay:
            facts = events.wait_for("hello").data
            assert facts["server_id"] == page.me["server_id"]
            relay.initialize()
            arguments = {"path": "told.txt", "content": "canary-in-a-change"}
            relay.ask(2, "tools/call", name="write_file", arguments=arguments)
            change = events.wait_for("change.made")
            assert change.data["id"] == page.data("all_changes")["changes"][0]["change_id"]
            assert "canary" not in str(events.events)
            assert "told.txt" not in str(events.events)
        with EventReader(page, change.id) as events:
            page.post("write_file", path="again.txt", content="x")
            assert events.wait_for("change.made").data["id"] != change.data["id"]
            assert {event.name for event in events.events} == {"hello", "change.made"}


def test_a_server_that_ends_says_bye_and_the_next_one_says_to_look_at_everything_anew(house: House) -> None:
    with house.serve(str(house.root)):
        page = sign_in(house)
        port = house.facts()["port"]
        with EventReader(page) as events:
            page.post("write_file", path="a1.txt", content="x")
            last = events.wait_for("change.made")
            assert house.run("stop").returncode == 0
            assert events.wait_for("bye").data == {"reason": "the server ends"}
            assert events.has_ended.wait(5)
    with house.serve(str(house.root), "--port", str(port)), EventReader(page, last.id) as events:
        assert events.wait_for("resync").data["reason"]
        assert events.wait_for("hello").data["server_id"] != page.me["server_id"]


def test_a_background_server_with_a_console_on_it_does_not_end(house: House) -> None:
    house.settings("settings:\n  server:\n    idle_exit_seconds: 1\n    port: 0\n")
    with house.relay() as relay:
        relay.initialize()
        page = sign_in(house)
        with EventReader(page) as events:
            events.wait_for("hello")
            relay.close_stdin()
            events.collect(3.0)
            assert page.get("me").status_code == 200
        until("it ends once nobody is there", lambda: not house.facts(), 20)
