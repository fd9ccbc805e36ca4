"""Renames and listings in the project store through a real client, on SQLite and on PostgreSQL."""

from typing import Any

import pytest

from tests.helpers.stores import Deployment, Files

pytestmark = pytest.mark.timeout(90)

PLANT = {
    "sqlite": """
        INSERT INTO mcp_files (apikey_hash, project, path, size, created_at, updated_at, version, written_version, content)
        WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < 100000)
        SELECT 'local', '{project}', '/big/d' || (i % 3) || '/f' || i, 1,
            '2030-01-01T00:00:00.000000Z', '2030-01-01T00:00:00.000000Z', 1, 1, x'61' FROM n
        """,
    "postgres": """
        WITH planted AS (
            INSERT INTO mcp_files
                (apikey_hash, project, path, size, created_at, updated_at, version, written_version, content)
            SELECT 'local', '{project}', '/big/d' || (i % 3) || '/f' || i, 1, now(), now(), 1, 1, 'a'
            FROM generate_series(0, 99999) AS i RETURNING 1
        ) SELECT count(*) FROM planted
        """,
}


@pytest.mark.req("ST-23", "ST-28")
def test_prefixes_are_literal_in_every_tool(files: Files) -> None:
    others = ["/A_B/x", "/a%b/x", "/aXb/x", "/a_b2/x"]
    files.write("/a_b/x", *others)
    assert [entry["path"] for entry in files.data("file_list", path="/a_b", depth=9)["entries"]] == ["/a_b/x"]
    assert files.data("file_stat", path="/a_")["exists"] is False
    hits = files.data("file_search", query="x", path_prefix="/a_b/", limit=20)["chunks"]
    assert [hit["file_path"] for hit in hits] == ["/a_b/x"]
    assert files.data("file_rename", from_path="/a_b", to_path="/c_d") == {"moved_count": 1}
    assert files.data("file_rename", from_path="/c_d", to_path="/a_b") == {"moved_count": 1}
    assert files.data("file_delete", path="/a_b", recursive=True) == {"deleted_count": 1}
    assert files.paths() == others


@pytest.mark.req("ST-24", "ST-28")
def test_files_and_subtrees_move_with_their_content(files: Files) -> None:
    files.write("/docs/a", "/docs/sub/b", "/docs2/x", "/f")
    assert files.data("file_rename", from_path="/docs", to_path="/new/place") == {"moved_count": 2}
    assert files.data("file_rename", from_path="/f", to_path="/g") == {"moved_count": 1}
    assert files("file_read", path="/docs/a").code == files("file_read", path="/f").code == "NOT_FOUND"
    assert files.paths() == ["/docs2/x", "/g", "/new/place/a", "/new/place/sub/b"]
    assert [files.text(path) for path in files.paths()] == ["/docs2/x", "/f", "/docs/a", "/docs/sub/b"]


@pytest.mark.req("ST-25")
def test_a_target_that_exists(files: Files) -> None:
    files.write("/f", "/g", "/d/x", "/e/x", "/e/y")
    assert files("file_rename", from_path="/f", to_path="/g").code == "ALREADY_EXISTS"
    assert files("file_rename", from_path="/d", to_path="/e").code == "ALREADY_EXISTS"
    assert files("file_rename", from_path="/d", to_path="/e", overwrite=True).code == "ALREADY_EXISTS"
    assert files.data("file_rename", from_path="/f", to_path="/g", overwrite=True) == {"moved_count": 1}
    assert files.text("/g") == "/f"
    assert files.paths() == ["/d/x", "/e/x", "/e/y", "/g"]


@pytest.mark.req("ST-26", "ST-27")
def test_renames_that_cannot_be_move_nothing(files: Files) -> None:
    long = "/" + "l" * 500
    files.write("/docs/a", "/docs/long-name-of-a-file", "/f", "/e/a/deep", "/g/x")
    before = files.paths()
    refused = {
        ("/docs", "/docs/sub"): "INVALID_PATH",
        ("/f", "/f/sub"): "NOT_DIRECTORY",
        ("", "/x"): "INVALID_PATH",
        ("/f", ""): "INVALID_PATH",
        ("/none", "/none"): "NOT_FOUND",
        ("/none", "/x"): "NOT_FOUND",
        ("/docs", "/f/sub"): "NOT_DIRECTORY",
        ("/f", "/g"): "ALREADY_EXISTS",
        ("/docs", long): "INVALID_PATH",
    }
    for (source, target), code in refused.items():
        assert files("file_rename", from_path=source, to_path=target, overwrite=True).code == code, (source, target)
    assert files("file_rename", from_path="/docs", to_path="/e", overwrite=True).code == "ALREADY_EXISTS"
    assert files.data("file_rename", from_path="/f", to_path="/f") == {"moved_count": 0}
    assert files.data("file_rename", from_path="/docs", to_path="/docs") == {"moved_count": 0}
    assert files.paths() == before


@pytest.mark.req("ST-29")
def test_listings_by_depth_in_byte_order(files: Files) -> None:
    files.write("/a/x", "/a/b/y", "/a-b", "/b", "/Z")

    def listed(**arguments: Any) -> list[tuple[str, str, bool]]:
        entries = files.data("file_list", **arguments)["entries"]
        return [(entry["path"], entry["type"][0], entry["created_at"] is None) for entry in entries]

    top = [("/Z", "F", False), ("/a", "D", True), ("/a-b", "F", False), ("/b", "F", False)]
    assert listed() == listed(path="/") == top
    assert listed(path="/a", depth=0) == [("/a", "D", True)]
    assert listed(path="/b", depth=0) == [("/b", "F", False)]
    assert [path for path, _, _ in listed(depth=2)] == ["/Z", "/a", "/a-b", "/a/b", "/a/x", "/b"]
    assert [path for path, _, _ in listed(depth=9)] == ["/Z", "/a", "/a-b", "/a/b", "/a/b/y", "/a/x", "/b"]
    (file,) = files.data("file_list", path="/b", depth=0)["entries"]
    assert (file["name"], file["size"]) == ("b", 2)


@pytest.mark.req("ST-31")
def test_listings_of_what_is_no_directory(files: Files) -> None:
    assert files.data("file_list") == files.data("file_list", path="/") == {"entries": [], "has_more": False}
    files.write("/b")
    assert files("file_list", path="/none").code == "NOT_FOUND"
    assert files("file_list", path="/b").code == "NOT_FOUND"
    assert files("file_list", depth=-1).code == "INVALID_OFFSET"


@pytest.mark.req("ST-30")
def test_listings_have_limits_also_among_a_hundred_thousand_files(place: Deployment, files: Files) -> None:
    files.write("/1", "/2", "/3")
    two = files.data("file_list", limit=2)
    assert ([entry["path"] for entry in two["entries"]], two["has_more"]) == (["/1", "/2"], True)
    assert files.data("file_list", limit=3)["has_more"] is False

    place.rows(PLANT[place.backend.name].format(project=files.project))
    assert len(files.data("file_list", path="/big/d0", limit=0)["entries"]) == 256
    most = files.data("file_list", path="/big/d0", limit=5000)
    assert (len(most["entries"]), most["has_more"]) == (1024, True)
    assert [entry["path"] for entry in files.data("file_list")["entries"]] == ["/1", "/2", "/3", "/big"]
