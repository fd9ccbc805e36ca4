"""An agent that slips past rules by what it moves, undoes, narrows or follows, and by what it did before a rule came."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_declared_roots import RootsClient
from tests.attack.test_policy import RULES, SECRET, Guarded, is_silent, make_guarded, snapshot
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer, with_settings
from tests.helpers.verbs import CHANGING, EDIT, READING

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("policy")]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Guarded]:
    yield from make_guarded(tmp_path)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.end()


def plant_links(root: Path) -> None:
    """Make two years and a chain of links to the first of them."""
    for folder in ("y2026", "y2027", "shelf"):
        (root / folder).mkdir()
        (root / folder / "a.txt").write_text(SECRET)
    (root / "shelf" / "current").symlink_to("../y2026")
    (root / "chain").symlink_to("shelf/current")


@pytest.mark.req("RV-13.b", "RV-13.c")
@pytest.mark.parametrize("link", ["chain", "shelf/current", "shelf"])
def test_a_link_that_a_rule_leads_through_cannot_be_taken_away(own: Guarded, link: str) -> None:
    """Without it the rule would hold for nothing, from the next connection on."""
    plant_links(own.root)
    before = snapshot(own.root)
    rules = [{"glob": "chain/**", "access": "deny"}]
    with own.agent() as agent:
        own.take_up(agent, rules)
        for tool, arguments in (
            ("move_file", {"source": link, "destination": "free/gone"}),
            ("delete_file", {"path": link, "recursive": True}),
        ):
            assert agent.call(tool, **arguments).code == "PERMISSION_DENIED"
    assert snapshot(own.root) == before


@pytest.mark.req("RV-13.h")
def test_a_link_that_a_rule_of_review_leads_through_goes_only_with_the_person(own: Guarded) -> None:
    plant_links(own.root)
    own.settings["review"] = {"wait_seconds": 0.1}
    with own.agent() as agent:
        own.take_up(agent, [{"glob": "chain/**", "access": "review"}])
        for link in ("chain", "shelf/current"):
            assert "PENDING" in agent.call("delete_file", path=link).ok().text
            assert (own.root / link).is_symlink()


@pytest.mark.req("RV-13.f")
def test_a_link_on_the_way_to_the_settings_cannot_be_exchanged(house: House) -> None:
    """Another directory in its place would bring rules of the agent at the next start."""
    (house.root / "conf-real").mkdir()
    (house.root / "conf-real" / "holdfast.yml").write_text("settings: {}\n")
    (house.root / "conf").symlink_to("conf-real")
    house.environment["HOLDFAST_SETTINGS"] = str(house.root / "conf" / "holdfast.yml")
    with house.serve(str(house.root)), house.relay() as client:
        client.initialize()
        for number, (tool, arguments) in enumerate(
            (
                ("move_file", {"source": "conf", "destination": "other"}),
                ("delete_file", {"path": "conf"}),
                ("delete_file", {"path": "conf-real", "recursive": True}),
                ("write_file", {"path": "conf-real/holdfast.yml", "content": "settings: {}"}),
            )
        ):
            answer = client.ask(number, "tools/call", name=tool, arguments=arguments)["result"]
            assert answer["isError"], (tool, answer)
    assert (house.root / "conf").is_symlink()


@pytest.mark.req("RV-13.b", "RV-13.e")
def test_a_rule_follows_a_link_that_the_person_points_elsewhere(own: Guarded) -> None:
    plant_links(own.root)
    with own.agent() as agent:
        own.take_up(agent, [{"glob": "chain/**", "access": "deny"}])
        assert agent.call("read_text_file", path="y2026/a.txt").code == "NOT_FOUND"
        agent.call("read_text_file", path="y2027/a.txt").ok()
        (own.root / "shelf" / "new").symlink_to("../y2027")
        os.replace(own.root / "shelf" / "new", own.root / "shelf" / "current")
        until("the rule follows", lambda: agent.call("read_text_file", path="y2027/a.txt").is_error)
        agent.call("read_text_file", path="y2026/a.txt").ok()


@pytest.mark.req("RV-13.d")
def test_a_rule_reaches_a_folder_by_a_link_in_another_one(own: Guarded, tmp_path: Path) -> None:
    """The link lies outside of what the client was given; what it leads to does not."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secrets").symlink_to(own.root / "vault")
    with own.agent() as agent:
        own.take_up(agent, [{"root": str(tmp_path / "elsewhere"), "glob": "secrets/**", "access": "deny"}])
        assert agent.call("read_text_file", path="vault/buried.txt").code == "NOT_FOUND"
        agent.call("read_text_file", path="key.hush").ok()


@pytest.mark.req("RV-13.d", "SV-02.k")
def test_declared_roots_move_no_pattern(house: House) -> None:
    """A client that narrows its folders would otherwise move the place where `src/private/**` begins."""
    (house.root / "src" / "private").mkdir(parents=True)
    (house.root / "src" / "private" / "a.txt").write_text(SECRET)
    (house.root / "src" / "open.txt").write_text("open")
    rules = [
        {"glob": "src/private/**", "access": "deny"},
        {"glob": "/private/**", "access": "deny"},
        {"glob": "src/open.txt", "access": "read-only"},
    ]
    house.settings(json.dumps({"settings": {"policy": {"rules": rules}}}))
    for declared in ("src", "src/private"):
        with RootsClient(house, [house.root / declared], str(house.root)) as client:
            assert client.allowed() == [str(house.root / declared)]
            for tool in ("read_text_file", "get_file_info"):
                assert client.call(tool, path=str(house.root / "src/private/a.txt")).is_error
            assert "a.txt" not in str(client.call("list_directory", path=".").content)
            if declared == "src":
                assert not client.call("read_text_file", path="open.txt").is_error
                assert client.call("write_file", path="open.txt", content="x").is_error
    assert (house.root / "src" / "open.txt").read_text() == "open"


NEAR_NAMES = (
    "key.hus", "keyhush", "vaul", "vaul/buried.txt", "buried.txt", "free/key.hush", "holder/key.hus",
    "vault2/x", "free/vault/buried.txt", "empty-looking/y.txt", "deep/buried.json",
)  # fmt: skip


@pytest.mark.req("RV-13.b")
def test_no_suggestion_for_a_mistyped_path_names_what_is_hidden(own: Guarded) -> None:
    with own.agent() as agent:
        own.take_up(agent, RULES)
        for tool, arguments in {**READING, **CHANGING}.items():
            for path in NEAR_NAMES:
                if tool not in ("write_file", "append_text", "create_directory", "create_organization_plan"):
                    is_silent(agent.call(tool, **arguments(path)), asked=path)


@pytest.mark.req("RV-13.b", "RV-13.c")
@pytest.mark.parametrize("access", ["deny", "read-only"])
def test_no_undo_reaches_into_what_came_under_a_rule(own: Guarded, access: str) -> None:
    """Of a tree that was deleted or moved, and of directories that were made, a part is restricted by now."""
    for folder in ("box", "tray"):
        (own.root / folder / "inner").mkdir(parents=True)
        (own.root / folder / "inner" / "x.txt").write_text(SECRET)
    with own.agent() as agent:
        own.take_up(agent, [])
        agent.call("delete_file", path="box", recursive=True).ok()
        agent.call("move_file", source="tray", destination="tray2").ok()
        agent.call("create_directory", path="made/inner").ok()
        changes = [each["change_id"] for each in agent.call("list_changes").ok().data["changes"]]
        own.take_up(agent, [{"glob": "inner", "access": access}])
        before = snapshot(own.root)
        codes = {agent.call("undo_change", change_id=change).code for change in changes}
        assert codes == {"ACCESS_DENIED" if access == "deny" else "PERMISSION_DENIED"}
        assert snapshot(own.root) == before
        assert (own.root / "made" / "inner").is_dir()


@pytest.mark.req("RV-13.c", "RV-13.e")
def test_an_approved_edit_is_not_made_where_a_rule_came_meanwhile(own: Guarded) -> None:
    own.settings["review"] = {"wait_seconds": 0.1}
    with_settings(own.state, {**own.settings, "policy": {"rules": []}})
    with own.agent() as agent:
        own.take_up(agent, [])
        desk = Reviewer(agent, own.root, own.state)
        session = desk.propose(path="free/a.txt", edits=EDIT)["session_path"]
        (review,) = desk.waiting()
        desk.decide(review, "approve")
        for access, code in (("read-only", "PERMISSION_DENIED"), ("deny", "NOT_FOUND")):
            own.take_up(agent, [{"glob": "free/**", "access": access}])
            assert desk.commit(session, "free/a.txt").code == code
        assert (own.root / "free" / "a.txt").read_text() == "plain text about harbours\n"
        own.take_up(agent, [])
        desk.commit(session, "free/a.txt").ok()


@pytest.mark.req("RV-13.b", "RV-13.c")
def test_a_link_to_nothing_makes_nothing_where_a_rule_holds(own: Guarded) -> None:
    for name, target in (("d1", "../fixed/new.txt"), ("d2", "../vault/new.txt"), ("d3", "../fixed")):
        (own.root / "free" / name).symlink_to(target)
    before = snapshot(own.root)
    with own.agent() as agent:
        own.take_up(agent, RULES)
        for path, code in (("d1", "PERMISSION_DENIED"), ("d2", "ACCESS_DENIED"), ("d3/new.txt", "PERMISSION_DENIED")):
            for tool in ("write_file", "append_text", "create_directory", "propose_and_review"):
                assert agent.call(tool, **CHANGING[tool](f"free/{path}")).code == code, (tool, path)
    assert snapshot(own.root) == before


@pytest.mark.req("RV-13.b")
def test_a_plan_with_a_file_that_was_denied_later_does_not_exist(own: Guarded) -> None:
    for folder in ("Invoices", "Letters"):
        (own.root / folder).mkdir()
        for number in range(6):
            (own.root / folder / f"{folder} {number}.txt").write_text(f"{folder} about money and paper {number}\n")
    for number in range(3):
        (own.root / f"Invoices extra {number}.txt").write_text("Invoices about money and paper\n")
    with own.agent() as agent:
        own.take_up(agent, RULES)
        plan = agent.call("create_organization_plan", folder_path=".").ok().data
        assert plan["totals"]["moves"], plan
        plan_id, change = plan["plan_id"], {"path": "Invoices extra 1.txt"}
        revised = agent.call("revise_plan", plan_id=plan_id, changes=[{**change, "folder": "vault"}])
        assert revised.is_error, revised.text
        is_silent(revised, asked="vault")
        agent.call("revise_plan", plan_id=plan_id, changes=[{**change, "folder": "fixed"}]).ok()
        before = snapshot(own.root)
        assert agent.call("execute_plan", plan_id=plan_id).code == "PERMISSION_DENIED"
        assert snapshot(own.root) == before
        own.take_up(agent, [{"glob": "Invoices extra 0*", "access": "deny"}, *RULES])
        for tool in ("get_plan", "execute_plan", "undo_plan"):
            reply = agent.call(tool, plan_id=plan_id)
            assert reply.code == "NOT_FOUND", (tool, reply.text)
        assert agent.call("revise_plan", plan_id=plan_id, changes=[{**change, "folder": "Letters"}]).code == "NOT_FOUND"
        assert "extra 0" not in agent.call("list_plans").ok().text
        own.take_up(agent, [{"glob": "Invoices/", "access": "deny"}, *RULES])
        explained = agent.call("explain_file", path="Invoices extra 2.txt").text.replace("Invoices extra", "")
        assert "Invoices" not in explained, explained
    assert (own.root / "Invoices extra 0.txt").exists()


@pytest.mark.req("RV-13.d", "RV-13.b")
def test_what_is_denied_to_one_client_is_indexed_for_others_and_never_given_to_it(own: Guarded) -> None:
    rules = [{"glob": glob, "access": "deny", "client": "nosy*"} for glob in ("vault/", "*.hush")]
    with_settings(own.state, {**own.settings, "policy": {"rules": rules}})
    with own.agent() as free, own.agent_named("nosy-agent") as nosy:
        until("it is found", lambda: "buried" in free.call("search_folders", query="token").text)
        for _ in range(20):
            is_silent(nosy.call("search_folders", query="token").ok())
        is_silent(nosy.call("directory_tree", path=".").ok())
        assert nosy.call("read_text_file", path="vault/buried.txt").code == "NOT_FOUND"
        free.call("read_text_file", path="vault/buried.txt").ok()
