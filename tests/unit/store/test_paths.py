"""Names and ranges of the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidPath
from holdfast.store.paths import (
    Move,
    check_project,
    first_components,
    list_ancestors,
    list_target_directories,
    next_group_start,
    parse_file_path,
    parse_path,
    plan_moves,
    span_beneath,
    span_of_path,
    span_with_prefix,
    uncovered_directories,
)

NAMES = st.text("ab!-.0/~", min_size=1, max_size=4).filter(lambda n: "/" not in n and n not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


@pytest.mark.parametrize("project", ["", "x" * 129, "a b", "项目", "*", "a/b", "a\n", "\ud800"])
def test_a_project_name_of_another_form_is_refused(project: str) -> None:
    with pytest.raises(InvalidPath):
        check_project(project)


@pytest.mark.parametrize("project", ["a", "A-b_c.9", "x" * 128, ".", "-"])
def test_a_project_name_of_allowed_characters_is_taken(project: str) -> None:
    assert check_project(project) == project


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "/a/",
        "//a",
        "/a//b",
        "/a/./b",
        "/a/../b",
        "/a b",
        "/a\x7f",
        "/你好",
        "/" + "x" * 512,
        "/a\n",
        "/\0",
        "/\ud800",
        "/..",
    ],
)
def test_a_path_of_another_form_is_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        parse_path(path)


@pytest.mark.parametrize("path", ["", "/a", "/a-b_c.d", "/.hidden", "/" + "x" * 511, "/100%", "/...", "/~"])
def test_a_path_of_allowed_characters_is_taken(path: str) -> None:
    assert parse_path(path) == path


def test_a_slash_alone_is_the_root_and_the_root_is_no_file() -> None:
    assert parse_path("/") == ""
    with pytest.raises(InvalidPath):
        parse_file_path("/")


@pytest.mark.parametrize("bad", ["\ud800", "/\ud800" + "x" * 600])
def test_the_error_of_a_bad_path_can_be_sent(bad: str) -> None:
    with pytest.raises(InvalidPath) as caught:
        parse_path(bad)
    assert caught.value.message.encode()


def test_ancestors_are_the_directories_above_without_the_root() -> None:
    assert list_ancestors("/a/b/c") == ["/a", "/a/b"]
    assert list_ancestors("/a") == []


@given(PATHS, PATHS)
def test_a_span_holds_exactly_what_lies_beneath(directory: str, path: str) -> None:
    span = span_beneath(directory)
    assert (span.low <= path < span.high) is path.startswith(directory + "/")


@given(PATHS, PATHS)
def test_the_span_of_one_path_holds_no_other(one: str, other: str) -> None:
    span = span_of_path(one)
    assert (span.low <= other < span.high) is (one == other)


@given(st.text("ab!-.0/~% é", max_size=4), PATHS)
def test_a_raw_prefix_is_a_raw_prefix(prefix: str, path: str) -> None:
    span = span_with_prefix(prefix)
    assert (span.low <= path < span.high) is path.startswith(prefix)


@given(PATHS, PATHS, st.integers(1, 4))
def test_beyond_is_the_next_path_with_another_head(path: str, other: str, components: int) -> None:
    is_after = other >= next_group_start(path, components)
    assert is_after is (
        other > path
        and not (
            first_components(path, components) != path
            and first_components(other, components) == first_components(path, components)
        )
    )


@given(st.sets(PATHS, min_size=1, max_size=8))
def test_only_late_directories_can_sort_before_the_last_path_seen(paths: set[str]) -> None:
    ordered = sorted(paths)
    for cut in range(1, len(ordered) + 1):
        last = ordered[cut - 1]
        seen = {above for path in ordered[:cut] for above in list_ancestors(path)}
        unseen = {above for path in ordered[cut:] for above in list_ancestors(path)} - seen
        early = {above for above in unseen if above < last}
        assert early <= set(uncovered_directories("", last))


def test_every_path_beneath_the_source_moves_and_a_long_one_is_refused() -> None:
    assert plan_moves("/a", "/b/c", ["/a/x", "/a/y/z"]) == [Move("/a/x", "/b/c/x"), Move("/a/y/z", "/b/c/y/z")]
    with pytest.raises(InvalidPath, match="513 bytes"):
        plan_moves("/a", "/" + "b" * 510, ["/a/x"])


def test_the_directories_that_a_rename_needs_are_named_once() -> None:
    moves = [Move("/a/x", "/b/c/x"), Move("/a/y", "/b/c/y")]
    assert list_target_directories(moves) == ["/b", "/b/c"]
