"""The person sees, tries and changes the policy through the console's API while agents work; no agent can."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.table import TOOLS
from tests.helpers.agent import Agent
from tests.helpers.console import Page, page_of, sign_in
from tests.helpers.doors import House, post, until

pytestmark = [pytest.mark.req("RV-13.i"), pytest.mark.xdist_group("policy")]

SETTINGS = """# kept by hand
settings:
  policy:
    rules:
      # keys
      - {access: deny, glob: .env}
  review:
    wait_seconds: 0  # nobody waits in this test
"""
ENTRIES = ("policy_rules", "test_policy", "preview_rule", "change_policy", "connect_clients")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with one rule, written by hand."""
    house = House(tmp_path_factory.mktemp("policy"))
    house.settings(SETTINGS)
    (house.root / ".env").write_text("TOKEN=1\n")
    (house.root / "src").mkdir()
    for name in ("a.py", "b.py"):
        (house.root / "src" / name).write_text("x = 1\n")
    with house.serve(str(house.root)):
        yield house


@pytest.fixture(scope="module")
def page(server: House) -> Page:
    """Give a page of the person."""
    return sign_in(server)


@pytest.fixture
def house(server: House, page: Page) -> House:
    """Give the server with its first settings and files, whatever the test before did to them."""
    for path in (*server.state.glob("settings.yml*"), server.root / "src" / "a.py"):
        path.unlink()
    settings_file(server).write_text(SETTINGS)
    (server.root / "src" / "a.py").write_text("x = 1\n")
    until("the first rules are in force", lambda: globs_in_force(page) == [".env", None])
    return server


def settings_file(house: House) -> Path:
    return house.state / "settings.yml"


def globs_in_force(page: Page) -> list[str | None]:
    return [rule.get("glob") for rule in page.data("policy_rules")["in_force"]]


def change(page: Page, *rules: dict[str, str], **more: Any) -> httpx2.Response:
    """Put rules in the place of those that are there."""
    read = page.data("policy_rules")
    return page.post("change_policy", {"expected_hash": read["hash"], "rules": list(rules), **more})


@pytest.mark.req("RV-13.g")
def test_the_rules_are_shown_as_they_are_written_and_as_they_are_in_force(house: House, page: Page) -> None:
    read = page.data("policy_rules")
    assert read["path"] == str(settings_file(house))
    assert read["rules"] == [{"access": "deny", "root": "", "glob": ".env", "client": ""}]
    assert [rule.get("number") for rule in read["in_force"]] == [1, None]
    assert "problem" not in read


@pytest.mark.req("RV-13.g")
def test_a_path_is_tried_for_a_client(house: House, page: Page) -> None:
    change(page, {"access": "review", "root": str(house.root), "glob": "src/**", "client": "claude-*"})
    tried = page.data("test_policy", path=str(house.root / "src/new.py"), client="claude-code")
    assert (tried["access"], tried["may_read"], tried["may_write"], tried["rule"]) == (
        "review", "yes", "after your approval", 1,
    )  # fmt: skip
    assert page.data("test_policy", path=str(house.root / "src/new.py"), client="cursor")["access"] == "allow"
    own = page.data("test_policy", path=str(settings_file(house)))
    assert (own["may_read"], own.get("rule")) == ("no", None)
    assert page.post("test_policy", path="src/a.py").json()["error"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.req("RV-13.g")
def test_a_preview_counts_the_files_that_a_rule_is_about(house: House, page: Page) -> None:
    preview = page.data("preview_rule", glob="src/*.py")
    assert (preview["files"], preview["of"], preview["is_complete"]) == (2, 4, True)
    assert preview["examples"] == [str(house.root / "src" / name) for name in ("a.py", "b.py")]
    assert page.data("preview_rule", root=str(house.root / "src"))["files"] == 2
    assert page.data("preview_rule", root="/nowhere", glob="*")["files"] == 0
    assert page.post("preview_rule", glob="!x").json()["error"]["code"] == "INVALID_ARGUMENT"


def test_a_change_is_in_force_at_once_for_a_client_that_is_connected(house: House, page: Page) -> None:
    with Agent([house.root], house.state, name="claude-code") as agent:
        agent.call("write_file", path="src/a.py", content="x = 2\n").ok()
        answer = change(page, {"access": "deny", "glob": ".env"}, {"access": "review", "glob": "src/**"})
        assert answer.status_code == 200, answer.text
        written = agent.call("write_file", path="src/a.py", content="x = 3\n").ok()
        assert "PENDING" in written.text
        assert (house.root / "src/a.py").read_text() == "x = 2\n"
        assert change(page, {"access": "deny", "glob": "src/"}).status_code == 200
        assert agent.call("read_text_file", path="src/a.py").code == "NOT_FOUND"
        assert change(page).status_code == 200
        agent.call("read_text_file", path="src/a.py").ok()
        agent.call("read_text_file", path=".env").ok()


def test_a_change_touches_nothing_else_in_the_file_and_keeps_a_backup(house: House, page: Page) -> None:
    deny, allow = {"access": "deny", "glob": ".env"}, {"access": "allow", "client": "mine"}
    answer = change(page, deny, allow).json()["data"]
    text = settings_file(house).read_text()
    assert text == SETTINGS.replace(".env}\n", '.env}\n      - access: allow\n        client: "mine"\n')
    assert Path(answer["backup"]).read_text() == SETTINGS
    assert settings_file(house).stat().st_mode & 0o777 == Path(answer["backup"]).stat().st_mode & 0o777
    assert change(page, deny).json()["data"].get("backup") is None
    assert settings_file(house).read_text() == SETTINGS
    assert page.data("policy_rules")["hash"] != answer["hash"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(house: House, page: Page) -> None:
    read = page.data("policy_rules")
    settings_file(house).write_text(SETTINGS + "  organiser:\n    include_hidden: true\n")
    answer = page.post("change_policy", expected_hash=read["hash"], rules=[])
    assert answer.status_code == 409
    assert answer.json()["error"]["present_hash"] == page.data("policy_rules")["hash"]
    assert "include_hidden" in settings_file(house).read_text()


def test_a_file_or_a_rule_that_cannot_be_used_is_told_and_changes_nothing(house: House, page: Page) -> None:
    for rule in ({"access": "deny", "glob": "!x"}, {"access": "deny", "root": "relative"}, {"access": "sometimes"}):
        assert change(page, rule).status_code == 400
    assert settings_file(house).read_text() == SETTINGS
    settings_file(house).write_text("settings: {policy: {rulez: []}}\n")
    read = page.data("policy_rules")
    assert "did you mean" in read["problem"]
    assert "hash" not in read
    assert [rule.get("number") for rule in read["in_force"]] == [1, None]
    assert page.post("change_policy", expected_hash="absent", rules=[]).status_code == 400


def test_a_settings_file_is_made_when_there_is_none(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve(str(house.root)):
        page = sign_in(house)
        assert page.data("policy_rules")["hash"] == "absent"
        assert change(page, {"access": "read-only"}).status_code == 200
        assert settings_file(house).stat().st_mode & 0o077 == 0
        with Agent([house.root], house.state) as agent:
            assert agent.call("write_file", path="a.txt", content="no").is_error
    assert house.run("config", "check").returncode == 0


def test_a_link_to_the_settings_stays_one(house: House, page: Page, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.yml"
    settings_file(house).rename(elsewhere)
    settings_file(house).symlink_to(elsewhere)
    assert change(page, {"access": "read-only"}).status_code == 200
    assert settings_file(house).is_symlink()
    assert "read-only" in elsewhere.read_text()


@pytest.mark.req("RV-13.f")
@pytest.mark.parametrize("name", ENTRIES)
def test_no_agent_reaches_the_policy_by_any_door(house: House, name: str) -> None:
    before = settings_file(house).read_bytes()
    arguments = {"expected_hash": "absent", "rules": []} if name == "change_policy" else {}
    assert TOOLS.get(name).audience is CallerKind.PERSON  # type: ignore[union-attr]
    with Agent([house.root], house.state, name="console") as agent:
        assert name not in [tool.name for tool in agent.tools()]
        assert "There is no tool" in agent.call_with(name, arguments).error["message"]
        step = {"id": "a", "tool": name, "arguments": arguments}
        assert "There is no tool" in agent.call("mcp_pipe", steps=[step]).error["message"]
    sent = post(
        house, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    )
    assert "There is no tool" in sent.text
    assert settings_file(house).read_bytes() == before


@pytest.mark.req("RV-13.f", "SV-11.d")
def test_a_tenant_neither_sees_nor_changes_the_policy(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings(SETTINGS + "  auth:\n    mode: open\n")
    with house.serve(str(house.root)):
        tenant = page_of(house.url, {"api_key": "a-long-key-of-a-tenant"})
        for name in ENTRIES:
            answer = tenant.post(name, {"expected_hash": "absent", "rules": []})
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
        assert not {tool["name"] for tool in tenant.get("tools").json()["tools"]} & set(ENTRIES)


@pytest.mark.req("SV-07")
def test_the_snippets_are_those_that_install_prints(house: House, page: Page) -> None:
    data = page.data("connect_clients", folders=[str(house.root)])
    clients = {client["client"]: client for client in data["clients"]}
    for name in ("claude-desktop", "claude-code", "codex", "goose"):
        assert clients[name]["snippet"] == house.run("install", name, str(house.root), "--print").stdout
    assert clients["other"]["snippet"] == house.run("install", "--print", str(house.root)).stdout
    assert data["token_file"] == str(house.state / "agent.token")
    assert house.token not in page.post("connect_clients").text
    assert page.post("connect_clients", folders=["relative"]).status_code == 400
