"""The verbs of the store on both databases: what goes in, what comes out, what is refused."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.auth.context import AuthContext
from holdfast.errors import HoldfastError
from holdfast.store.model import ContentSlice, PathType, StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import Backend


def code_of(action: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the error code of a call that must fail."""
    with pytest.raises(HoldfastError) as caught:
        action(*arguments, **options)
    assert json.dumps(caught.value.payload()).encode()
    return caught.value.code


def plant(store: Store, me: AuthContext, *paths: str, project: str = "p") -> None:
    """Write each path with its own name as content."""
    for path in paths:
        store.write(me, project, path, path)


def paths_of(store: Store, me: AuthContext, path: str = "", depth: int = 99, project: str = "p") -> list[str]:
    """Return the files beneath a path."""
    entries = store.listing(me, project, path, depth, 1024).entries
    return [entry.path for entry in entries if entry.type is PathType.FILE]


@pytest.mark.req("ST-01", "ST-02")
def test_every_verb_refuses_bad_projects_and_paths(store: Store, me: AuthContext) -> None:
    for project, path in [
        ("", "/a"),
        ("x" * 129, "/a"),
        ("a b", "/a"),
        ("项目", "/a"),
        ("*", "/a"),
        ("p", "a"),
        ("p", "/a/../b"),
    ]:
        assert code_of(store.stat, me, project, path) == "INVALID_PATH"
        assert code_of(store.read, me, project, path) == "INVALID_PATH"
        assert code_of(store.write, me, project, path, "x") == "INVALID_PATH"
        assert code_of(store.delete, me, project, path) == "INVALID_PATH"
        assert code_of(store.rename, me, project, path, "/b") == "INVALID_PATH"
        assert code_of(store.rename, me, project, "/b", path) == "INVALID_PATH"
        assert code_of(store.listing, me, project, path) == "INVALID_PATH"
        assert code_of(store.history, me, project, path) == "INVALID_PATH"
        assert code_of(store.restore, me, project, path, 1) == "INVALID_PATH"
    assert store.write(me, "p", "/" + "x" * 511, "x").bytes_written == 1
    assert store.projects(me)[0].file_count == 1


@pytest.mark.req("ST-03")
def test_nobody_reads_or_writes(backend: Backend, store: Store, me: AuthContext) -> None:
    plant(store, me, "/a")
    for nobody in (None, AuthContext("", "a name that never authorises")):
        assert code_of(store.stat, nobody, "p", "/a") == "PERMISSION_DENIED"
        assert code_of(store.read, nobody, "p", "/a") == "PERMISSION_DENIED"
        assert code_of(store.write, nobody, "p", "/b", "x") == "PERMISSION_DENIED"
        assert code_of(store.delete, nobody, "p", "/a") == "PERMISSION_DENIED"
        assert code_of(store.rename, nobody, "p", "/a", "/b") == "PERMISSION_DENIED"
        assert code_of(store.listing, nobody, "p") == "PERMISSION_DENIED"
        assert code_of(backend.search().search, nobody, "p", "a") == "PERMISSION_DENIED"
        assert code_of(store.history, nobody, "p", "/a") == "PERMISSION_DENIED"
        assert code_of(store.restore, nobody, "p", "/a", 1) == "PERMISSION_DENIED"
        assert code_of(store.projects, nobody) == "PERMISSION_DENIED"
    assert paths_of(store, me) == ["/a"]


@pytest.mark.req("ST-04")
def test_content_is_utf_8_or_refused(store: Store, me: AuthContext) -> None:
    for encoding in ("", "utf-8", "UTF-8"):
        assert store.write(me, "p", "/a", "é€😀\0", encoding, mode="TRUNCATE").bytes_written == 10
    assert store.read(me, "p", "/a").text == "é€😀\0"
    assert code_of(store.write, me, "p", "/b", "x", "latin-1") == "INVALID_QUERY"
    assert code_of(store.write, me, "p", "/b", "x\ud800") == "INVALID_QUERY"
    assert not store.stat(me, "p", "/b").exists


@pytest.mark.req("ST-05")
def test_sizes_up_to_the_limit_are_fine(backend: Backend, me: AuthContext) -> None:
    store = backend.store(StoreLimits(max_payload_bytes=10, max_file_bytes=15, max_project_bytes=20))
    assert code_of(store.write, me, "p", "/a", "x" * 11) == "PAYLOAD_TOO_LARGE"
    assert store.write(me, "p", "/a", "x" * 10).bytes_written == 10
    assert code_of(store.write, me, "p", "/a", "x" * 6) == "PAYLOAD_TOO_LARGE"
    assert store.write(me, "p", "/a", "x" * 5).bytes_written == 5
    assert code_of(store.write, me, "p", "/b", "x" * 6) == "QUOTA_EXCEEDED"
    assert store.write(me, "p", "/b", "x" * 5).bytes_written == 5
    assert code_of(store.write, me, "p", "/b", "x") == "QUOTA_EXCEEDED"
    assert store.write(me, "p", "/b", "y" * 5, mode="OVERWRITE").bytes_written == 5
    assert store.write(me, "q", "/other", "x" * 10).bytes_written == 10
    smaller = backend.store(StoreLimits(max_project_bytes=3))
    assert smaller.write(me, "p", "/b", "xxxx", mode="TRUNCATE").bytes_written == 4, (
        "a shrinking write to a project that is over"
    )
    store.delete(me, "p", "/a")
    assert store.write(me, "p", "/c", "x" * 10).bytes_written == 10, "deleted files do not count"
    assert store.read(me, "p", "/b").text == "xxxx"


@pytest.mark.req("ST-06", "ST-07", "ST-08")
def test_stat_of_nothing_a_directory_and_the_root(store: Store, me: AuthContext) -> None:
    assert not store.stat(me, "p", "/d").exists
    assert not store.stat(me, "p", "").exists
    plant(store, me, "/d/x", "/d/e/y")
    newest = store.stat(me, "p", "/d/e/y").updated_at
    found = store.stat(me, "p", "/d")
    assert (found.type, found.size, found.created_at, found.updated_at) == (PathType.DIRECTORY, 0, None, newest)
    assert store.stat(me, "p", "").type is PathType.DIRECTORY
    file = store.stat(me, "p", "/d/x")
    assert (file.type, file.size) == (PathType.FILE, 4)
    store.delete(me, "p", "/d", recursive=True)
    assert not store.stat(me, "p", "").exists


@pytest.mark.req("ST-09", "ST-10")
def test_reads_of_what_is_no_file_and_of_ranges(store: Store, me: AuthContext) -> None:
    plant(store, me, "/d/x")
    store.write(me, "p", "/h", "hello")
    assert code_of(store.read, me, "p", "/d") == "IS_DIRECTORY"
    assert code_of(store.read, me, "p", "/none") == "NOT_FOUND"
    assert code_of(store.read, me, "p", "") == "INVALID_PATH"
    ranges = {(0, -1): "hello", (1, 3): "ell", (5, -1): "", (99, -1): "", (0, 0): "", (10**30, 10**30): ""}
    assert {asked: store.read(me, "p", "/h", *asked).text for asked in ranges} == ranges
    for offset, length in ((-1, -1), (0, -2)):
        for path in ("/h", "/none"):
            assert code_of(store.read, me, "p", path, offset, length) == "INVALID_OFFSET"


@pytest.mark.req("ST-11")
def test_a_slice_keeps_characters_whole_and_says_where_it_is(store: Store, me: AuthContext) -> None:
    store.write(me, "p", "/a", "aé€b")
    found = store.read(me, "p", "/a", 2, 3)
    assert (found.text, found.start, found.end, found.moved) == ("é", 1, 3, True)
    assert store.read(me, "p", "/a", 1, 2).moved is False
    assert store.read(me, "p", "/a", 3, 1).text == "€"
    store.write(me, "p", "/b", "😀😀")
    assert store.read(me, "p", "/b", 0, 1) == ContentSlice("😀", 0, 4, moved=True)
    assert store.read(me, "p", "/b", 5, 2) == ContentSlice("😀", 4, 8, moved=True)


@pytest.mark.req("ST-12", "ST-13", "ST-14", "ST-16")
def test_modes_of_writing(store: Store, me: AuthContext) -> None:
    def after(*writes: tuple[str, int, str]) -> str:
        store.write(me, "p", "/f", "", mode="TRUNCATE")
        for content, offset, mode in writes:
            assert store.write(me, "p", "/f", content, offset=offset, mode=mode).bytes_written == len(content.encode())
        return store.read(me, "p", "/f").text

    assert after(("hello", 0, "APPEND"), ("world", 77, "append")) == "helloworld"
    assert after(("hello", 0, "Append"), ("yo", 0, "OVERWRITE")) == "yollo"
    assert after(("ABCDE", 0, "APPEND"), ("XX", 2, "overwrite")) == "ABXXE"
    assert after(("AB", 0, "APPEND"), ("C", 2, "OVERWRITE")) == "ABC"
    assert after(("AB", 0, "APPEND"), ("XYZ", 1, "OVERWRITE")) == "AXYZ"
    assert after(("AB", 0, "APPEND"), ("Z", 0, "truncate")) == "Z"
    assert after(("AB", 0, "APPEND"), ("", 0, "TRUNCATE")) == ""
    assert store.stat(me, "p", "/f").exists
    store.write(me, "p", "/f", "é")
    for content, offset, mode in [
        ("x", -1, "APPEND"),
        ("x", 3, "OVERWRITE"),
        ("x", 1, "OVERWRITE"),
        ("x", 0, "OVERWRITE"),
        ("x", 1, "TRUNCATE"),
        ("x", 0, "MERGE"),
    ]:
        assert code_of(store.write, me, "p", "/f", content, offset=offset, mode=mode) == "INVALID_OFFSET"
    assert store.write(me, "p", "/new", "n", mode="OVERWRITE").bytes_written == 1
    assert code_of(store.write, me, "p", "/other", "n", offset=1, mode="OVERWRITE") == "INVALID_OFFSET"
    assert store.read(me, "p", "/f").text == "é"


@pytest.mark.req("ST-12")
def test_appends_keep_every_byte(store: Store, me: AuthContext) -> None:
    pieces = ["\0", "é\0", "", "😀", "plain\0\0", "\x7f", "9" * 70_000]
    for piece in pieces:
        store.write(me, "p", "/f", piece)
    assert store.read(me, "p", "/f").text == "".join(pieces)
    assert store.stat(me, "p", "/f").size == len("".join(pieces).encode())


@pytest.mark.req("ST-15", "ST-17")
def test_files_and_directories_do_not_mix(store: Store, me: AuthContext) -> None:
    plant(store, me, "/d/e/x", "/f")
    assert code_of(store.write, me, "p", "/d", "x") == "IS_DIRECTORY"
    assert code_of(store.write, me, "p", "/d/e", "x") == "IS_DIRECTORY"
    assert code_of(store.write, me, "p", "/f/x", "x") == "NOT_DIRECTORY"
    assert code_of(store.write, me, "p", "/f/x/y/z", "x") == "NOT_DIRECTORY"
    assert code_of(store.write, me, "p", "", "x") == "INVALID_PATH"
    assert paths_of(store, me) == ["/d/e/x", "/f"]


@pytest.mark.req("ST-18")
def test_created_at_stays_and_updated_at_moves_forward_whatever_the_clock_does(
    backend: Backend, me: AuthContext
) -> None:
    clock = iter([datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)])
    store = backend.store(now=lambda: next(clock))
    seen = []
    for _ in range(3):
        store.write(me, "p", "/a", "x")
        seen.append(store.stat(me, "p", "/a"))
    assert len({one.created_at for one in seen}) == 1
    times = [one.updated_at for one in seen]
    assert times[0] < times[1] < times[2]  # type: ignore[operator]  # a file has times


@pytest.mark.req("ST-20", "ST-21")
def test_deletes(backend: Backend, store: Store, me: AuthContext) -> None:
    plant(store, me, "/a", "/d/x", "/d/e/y", "/d2/z")
    assert store.delete(me, "p", "/a") == 1
    assert code_of(store.delete, me, "p", "/a") == "NOT_FOUND"
    assert code_of(store.delete, me, "p", "/d") == "NOT_EMPTY"
    assert store.delete(me, "p", "/d", recursive=True) == 2
    assert paths_of(store, me) == ["/d2/z"]
    assert code_of(store.delete, me, "p", "") == "INVALID_PATH"
    assert code_of(store.delete, me, "p", "", recursive=True) == "PERMISSION_DENIED"
    wiping = backend.store(StoreLimits(allow_root_wipe=True))
    assert wiping.delete(me, "p", "", recursive=True) == 1
    assert code_of(wiping.delete, me, "p", "", recursive=True) == "NOT_FOUND"
    assert store.listing(me, "p").entries == ()


@pytest.mark.req("ST-22")
def test_after_a_delete_a_write_creates_anew(store: Store, me: AuthContext) -> None:
    store.write(me, "p", "/a", "old")
    born = store.stat(me, "p", "/a").created_at
    store.delete(me, "p", "/a")
    assert not store.stat(me, "p", "/a").exists
    assert store.listing(me, "p").entries == ()
    assert code_of(store.read, me, "p", "/a") == "NOT_FOUND"
    store.write(me, "p", "/a", "new")
    assert store.read(me, "p", "/a").text == "new"
    assert store.stat(me, "p", "/a").created_at > born  # type: ignore[operator]  # a file has times
    assert [one.size for one in store.history(me, "p", "/a")] == [3]


@pytest.mark.req("ST-23", "ST-28")
def test_prefixes_are_literal(backend: Backend, store: Store, me: AuthContext) -> None:
    files = ["/A_B/x", "/a%b/x", "/aXb/x", "/a_b/x", "/a_b2/x", "/a_b-c"]
    plant(store, me, *files)
    assert paths_of(store, me, "/a_b") == ["/a_b/x"]
    assert paths_of(store, me, "/a%b") == ["/a%b/x"]
    assert not store.stat(me, "p", "/a_").exists
    assert [hit.path for hit in backend.search().search(me, "p", "x", "/a_b/")] == ["/a_b/x"]
    assert store.rename(me, "p", "/a_b", "/moved") == 1
    assert store.rename(me, "p", "/moved", "/a_b") == 1
    assert store.delete(me, "p", "/a_b", recursive=True) == 1
    assert paths_of(store, me) == sorted(set(files) - {"/a_b/x"})


@pytest.mark.req("ST-24")
def test_files_and_subtrees_move_with_their_content(store: Store, me: AuthContext) -> None:
    plant(store, me, "/docs/a", "/docs/b/c", "/docs2/x", "/one")
    assert store.rename(me, "p", "/docs", "/new/place") == 2
    assert store.rename(me, "p", "/one", "/new/one") == 1
    assert paths_of(store, me) == ["/docs2/x", "/new/one", "/new/place/a", "/new/place/b/c"]
    assert store.read(me, "p", "/new/place/b/c").text == "/docs/b/c"
    assert code_of(store.read, me, "p", "/docs/a") == "NOT_FOUND"
    assert code_of(store.rename, me, "p", "/docs", "/x") == "NOT_FOUND"


@pytest.mark.req("ST-25")
def test_a_target_that_exists(store: Store, me: AuthContext) -> None:
    plant(store, me, "/a", "/b", "/d/x", "/d/y", "/e/x", "/g/z")
    assert code_of(store.rename, me, "p", "/a", "/b") == "ALREADY_EXISTS"
    assert store.rename(me, "p", "/a", "/b", overwrite=True) == 1
    assert store.read(me, "p", "/b").text == "/a"
    assert code_of(store.rename, me, "p", "/d", "/e") == "ALREADY_EXISTS"
    assert code_of(store.rename, me, "p", "/d", "/e", overwrite=True) == "ALREADY_EXISTS"
    assert code_of(store.rename, me, "p", "/d", "/b", overwrite=True) == "ALREADY_EXISTS"
    assert code_of(store.rename, me, "p", "/d", "/g") == "ALREADY_EXISTS"
    assert store.rename(me, "p", "/d", "/g", overwrite=True) == 2
    assert paths_of(store, me) == ["/b", "/e/x", "/g/x", "/g/y", "/g/z"]
    assert store.projects(me)[0].total_bytes == sum(len(p) for p in ("/a", "/e/x", "/d/x", "/d/y", "/g/z"))


@pytest.mark.req("ST-26", "ST-27")
def test_renames_that_cannot_be_move_nothing(store: Store, me: AuthContext) -> None:
    plant(store, me, "/docs/a", "/docs/b/c", "/file", "/e/b", "/h/b/c/d")
    before = paths_of(store, me)
    for source, target, overwrite, code in [
        ("/docs", "/docs/sub", True, "INVALID_PATH"),
        ("/file", "/file/b", True, "NOT_DIRECTORY"),
        ("", "/x", True, "INVALID_PATH"),
        ("/docs", "", True, "INVALID_PATH"),
        ("/none", "/none", False, "NOT_FOUND"),
        ("/none", "/none/x", False, "NOT_FOUND"),
        ("/docs", "/file/x", False, "NOT_DIRECTORY"),
        ("/file", "/docs/a/x", False, "NOT_DIRECTORY"),
        ("/docs", "/e", True, "NOT_DIRECTORY"),
        ("/docs", "/h", True, "ALREADY_EXISTS"),
        ("/file", "/docs", True, "ALREADY_EXISTS"),
        ("/docs", "/" + "x" * 508, False, "INVALID_PATH"),
    ]:
        assert code_of(store.rename, me, "p", source, target, overwrite=overwrite) == code, (source, target)
        assert paths_of(store, me) == before
    assert store.rename(me, "p", "/file", "/file") == 0
    assert store.rename(me, "p", "/docs", "/docs") == 0
    assert store.rename(me, "p", "/docs/b", "/docs", overwrite=True) == 1
    assert paths_of(store, me, "/docs") == ["/docs/a", "/docs/c"]


@pytest.mark.req("ST-29")
def test_listings_by_depth_in_byte_order(store: Store, me: AuthContext) -> None:
    plant(store, me, "/a/x", "/a/b/y", "/a-b", "/a.c/z", "/Z", "/b")
    for depth, expected in {
        1: ["/Z", "/a", "/a-b", "/a.c", "/b"],
        2: ["/Z", "/a", "/a-b", "/a.c", "/a.c/z", "/a/b", "/a/x", "/b"],
        9: ["/Z", "/a", "/a-b", "/a.c", "/a.c/z", "/a/b", "/a/b/y", "/a/x", "/b"],
    }.items():
        found = store.listing(me, "p", "", depth)
        assert [entry.path for entry in found.entries] == expected
        assert not found.has_more
        for limit in range(1, len(expected) + 1):
            page = store.listing(me, "p", "", depth, limit)
            assert [entry.path for entry in page.entries] == expected[:limit]
            assert page.has_more is (limit < len(expected))
    (itself,) = store.listing(me, "p", "/a", 0).entries
    assert (itself.name, itself.path, itself.type, itself.created_at) == ("a", "/a", PathType.DIRECTORY, None)
    (file,) = store.listing(me, "p", "/b", 0).entries
    assert (file.type, file.size, file.created_at) == (PathType.FILE, 2, store.stat(me, "p", "/b").created_at)


@pytest.mark.req("ST-30")
def test_listing_limits(backend: Backend, me: AuthContext) -> None:
    store = backend.store(StoreLimits(list_limit_default=3, list_limit_max=5))
    plant(store, me, *(f"/f{n}" for n in range(7)))
    assert [
        (len(store.listing(me, "p", "", 1, n).entries), store.listing(me, "p", "", 1, n).has_more)
        for n in (2, 0, 5, 99)
    ] == [
        (2, True),
        (3, True),
        (5, True),
        (5, True),
    ]


@pytest.mark.req("ST-31")
def test_listing_edge_cases(store: Store, me: AuthContext) -> None:
    assert store.listing(me, "p", "", 1).entries == ()
    assert store.listing(me, "p", "", 0).entries == ()
    plant(store, me, "/a", "/d/x")
    assert store.listing(me, "p", "/", 1) == store.listing(me, "p", "", 1)
    assert code_of(store.listing, me, "p", "/none", 1) == "NOT_FOUND"
    assert code_of(store.listing, me, "p", "/none", 0) == "NOT_FOUND"
    assert code_of(store.listing, me, "p", "", -1) == "INVALID_OFFSET"
    assert code_of(store.listing, me, "p", "/a", 1) == "NOT_FOUND"
    assert len(store.listing(me, "p", "", 10**30).entries) == 3
