"""Projects leave and enter the store as plain files, byte for byte; an erased tenant is in no table and no page any more."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.helpers.doors import House, post, until
from tests.helpers.remote import RemoteAgent
from tests.helpers.trees import Tree, harvest, plant

pytestmark = pytest.mark.timeout(240)

LISTED = {"settings": {"auth": {"mode": "listed"}, "mcp": {"files": {"search": {"embedder": {"kind": "none"}}}}}}
PLAIN: Tree = {
    "a.md": "one\r\ntwo\r",
    "empty.txt": "",
    "deep": {"er": {"b-_.~!$&'()+,;=@[]{}^%#": "\ufeffümläut 🙂\x00\x1b[31m\n"}},
    "long.txt": "x" * 300_000,
}
CANARY = "a-word-that-nobody-else-would-write-4711"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server_url: str
) -> Iterator[House]:
    """Give a running server for listed keys on each database."""
    from tests.helpers.databases import postgres_database

    folder = tmp_path_factory.mktemp("care")
    if request.param == "sqlite":
        made = House(folder)
        made.settings(json.dumps(LISTED))
        with made.serve():
            yield made
        return
    with postgres_database(postgres_server_url) as url:
        made = House(folder, DATABASE_URL=url)
        made.settings(json.dumps(LISTED))
        with made.serve():
            yield made


def answer_of(house: House, *arguments: str) -> Any:
    ran = house.run(*arguments, "--json", timeout=120)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def test_a_project_comes_back_byte_for_byte(house: House, tmp_path: Path) -> None:
    plain = plant(tmp_path / "plain", PLAIN)
    counts = answer_of(house, "files", "import", str(plain), "round")
    assert counts == {"created": 4, "replaced": 0, "unchanged": 0, "bytes": sum(map(len, harvest(plain).values()))}
    exported = answer_of(house, "files", "export", "round", str(tmp_path / "out"))
    assert exported["files"] == 4
    assert harvest(tmp_path / "out") == harvest(plain)
    assert (tmp_path / "out" / "a.md").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    again = answer_of(house, "files", "import", str(tmp_path / "out"), "round")
    assert again == {"created": 0, "replaced": 0, "unchanged": 4, "bytes": 0}


def test_an_import_replaces_nothing_unless_told_to_and_keeps_what_was_there(house: House, tmp_path: Path) -> None:
    plain = plant(tmp_path / "plain", {"a": "first", "b": "same"})
    answer_of(house, "files", "import", str(plain), "kept")
    (plain / "a").write_text("second")
    (plain / "c").write_text("new")
    refused = house.run("files", "import", str(plain), "kept")
    assert refused.returncode == 1 and "/a" in refused.stderr and "--overwrite" in refused.stderr
    assert house.run("files", "cat", "-p", "kept", "/a").stdout == "first"
    assert house.run("files", "cat", "-p", "kept", "/c").returncode == 1, "nothing was written"
    counts = answer_of(house, "files", "import", str(plain), "kept", "--overwrite")
    assert (counts["created"], counts["replaced"], counts["unchanged"]) == (1, 1, 1)
    assert answer_of(house, "files", "history", "-p", "kept", "/a")["versions"]


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"a b.txt": "x"}, "printable ASCII"),
        ({"ü.txt": "x"}, "printable ASCII"),
        ({"good.txt": "x", "bad.bin": b"\xff\xfe"}, "no UTF-8 text"),
    ],
)
def test_what_the_store_cannot_keep_is_named_before_anything_is_written(
    house: House, tmp_path: Path, tree: Tree, words: str
) -> None:
    refused = house.run("files", "import", str(plant(tmp_path / "plain", tree)), "nothing")
    assert refused.returncode == 2 and words in refused.stderr
    assert "nothing" not in [row["project"] for row in answer_of(house, "files", "projects")["projects"]]


def test_links_are_not_followed_and_directories_in_the_way_stay(house: House, tmp_path: Path) -> None:
    plain = plant(tmp_path / "plain", {"a": "x"})
    (plain / "link").symlink_to("/etc/passwd")
    assert "is a link" in house.run("files", "import", str(plain), "links").stderr
    (plain / "link").unlink()
    answer_of(house, "files", "import", str(plain), "links")
    taken = house.run("files", "export", "links", str(plain))
    assert taken.returncode == 1 and "replaces nothing" in taken.stderr
    missing = house.run("files", "export", "no-such-project", str(tmp_path / "out"))
    assert missing.returncode == 1 and list(tmp_path.iterdir()) == [plain]


def test_a_tenant_is_exported_and_imported_by_its_label(house: House, tmp_path: Path) -> None:
    key = answer_of(house, "keys", "create", "--label", "export farm")["key"]
    with RemoteAgent(house.url, key) as tenant:
        tenant.call("file_write", project="mine", path="/a.md", content="of the tenant").ok()
        answer_of(house, "files", "export", "mine", str(tmp_path / "out"), "--tenant", "export farm")
        assert harvest(tmp_path / "out") == {"a.md": b"of the tenant"}
        answer_of(house, "files", "import", str(tmp_path / "out"), "copy", "--tenant", "export farm")
        assert tenant.call("file_read", project="copy", path="/a.md").ok().text == "of the tenant"
    assert "copy" not in [row["project"] for row in answer_of(house, "files", "projects")["projects"]]
    unknown = house.run("files", "export", "mine", str(tmp_path / "x"), "--tenant", "nobody")
    assert unknown.returncode == 1 and "holdfast keys list" in unknown.stderr


def test_an_erased_tenant_leaves_no_trace_and_others_keep_everything(house: House) -> None:
    doomed, other = (answer_of(house, "keys", "create", "--label", name) for name in ("doomed", "other"))
    ended = threading.Event()
    with RemoteAgent(house.url, doomed["key"]) as tenant, RemoteAgent(house.url, other["key"]) as neighbour:
        for number in range(30):
            text = f"{CANARY} {number}\n" * 40
            tenant.call("file_write", project="p", path=f"/{number}", content=text, mode="TRUNCATE").ok()
            tenant.call("file_write", project="p", path=f"/{number}", content=text + "again", mode="TRUNCATE").ok()
            neighbour.call("file_write", project="p", path=f"/{number}", content="of the neighbour").ok()
        tenant.call("file_delete", project="p", path="/7").ok()
        until("it is found", lambda: tenant.call("file_search", project="p", query=CANARY).ok().data["chunks"])

        def write_on() -> None:
            number = 0
            with suppress(Exception):  # once the key is revoked
                while not ended.is_set():
                    number += 1
                    tenant.call("file_write", project="p", path=f"/more{number}", content=CANARY).ok()

        writer = threading.Thread(target=write_on)
        writer.start()
        try:
            unasked = house.run("keys", "erase", doomed["id"])
            assert unasked.returncode == 2 and "Give --yes" in unasked.stderr
            proof = answer_of(house, "keys", "erase", doomed["id"], "--yes", "--rewrite")
        finally:
            ended.set()
            writer.join(30)
        assert proof["before"]["mcp_files"] >= 30 and proof["before"]["mcp_file_versions"] >= 30
        assert proof["before"]["mcp_calls"] > 0 and proof["before"]["mcp_file_chunks"] > 0
        assert set(proof["after"].values()) == {0}
        assert proof["after"].keys() == proof["before"].keys()
        assert [trace["occurrences"] for trace in proof["traces"]] == [0] * len(proof["traces"]) != []
        assert post(house, authorization=f"Bearer {doomed['key']}").status_code == 401
        assert "doomed" not in house.run("keys", "list").stdout
        for number in range(30):
            assert neighbour.call("file_read", project="p", path=f"/{number}").ok().text == "of the neighbour"
    assert files_with(house, CANARY) == []
    assert files_with(house, doomed["tenant"]) == []
    rows = sum(proof["before"].values())
    print(f"rows erased: {rows} of {len(proof['before'])} tables; traces in {len(proof['traces'])} places: 0")


def files_with(house: House, text: str) -> list[Path]:
    """Return the files of the state folder, and of PostgreSQL's tables, that have a text in any byte of them."""
    folders = [house.state]
    if url := house.environment.get("DATABASE_URL"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        folders.append(Path(data) / "base")
    ran = subprocess.run(["grep", "-rlaF", "--", text, *map(str, folders)], capture_output=True, text=True, check=False)
    return [Path(name) for name in ran.stdout.splitlines()]


def test_the_user_of_this_machine_is_not_erased_as_a_tenant(house: House) -> None:
    assert house.run("keys", "erase", "local", "--yes").returncode == 1
    assert house.run("keys", "erase", "nothing", "--yes").returncode == 1
