"""Which directories a client's answer to `roots/list` names, and how they narrow those that a person named."""

import pytest

from holdfast.transport.doors.streams.client_roots import declared_paths, narrow


@pytest.mark.parametrize(
    ("uri", "paths"),
    [
        ("file:///home/me", ["/home/me"]),
        ("file://localhost/a%20b/%C3%A9", ["/a b/é"]),
        ("FILE:///x", ["/x"]),
        ("file:///a%ffb", ["/a\udcffb"]),
        ("file://server/share", []),
        ("file:relative", []),
        ("file:///a%00b", []),
        ("https://example.org/x", []),
        ("/home/me", []),
        ("file://[", []),
        ("", []),
    ],
)
def test_a_root_is_a_local_directory_by_its_uri(uri: str, paths: list[str]) -> None:
    assert declared_paths({"roots": [{"uri": uri}]}) == paths


@pytest.mark.parametrize("answer", [None, {}, [], "x", {"roots": None}, {"roots": [None, 1, {}, {"uri": 7}]}])
def test_an_answer_of_another_form_declares_nothing(answer: object) -> None:
    assert declared_paths(answer) == []


def test_only_so_many_roots_are_taken() -> None:
    assert len(declared_paths({"roots": [{"uri": f"file:///{number}"} for number in range(1000)]})) == 100


@pytest.mark.parametrize(
    ("named", "declared", "narrowed"),
    [
        (("/a",), ["/a/b", "/a/c"], ["/a/b", "/a/c"]),
        (("/a",), ["/a"], ["/a"]),
        (("/a",), ["/"], ["/a"]),
        (("/a",), ["/ab", "/c"], ["/a"]),
        (("/a", "/b"), ["/b/x"], ["/a", "/b/x"]),
        (("/a", "/a/b"), ["/a/b"], ["/a/b"]),
        (("/",), ["/x"], ["/x"]),
        (("/a",), [], ["/a"]),
    ],
)
def test_declared_roots_narrow_what_was_named_and_never_widen_it(
    named: tuple[str, ...], declared: list[str], narrowed: list[str]
) -> None:
    assert narrow(named, declared) == narrowed
