"""The allowed directories: which are opened, which are skipped, and when there is nothing to serve."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.config.settings import FolderSettings
from holdfast.errors import InvalidArgument
from holdfast.folders.access.roots import close_roots, open_roots
from holdfast.folders.service import OpenFolders
from tests.helpers.trees import plant


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder with a project, and a state folder inside it."""
    plant(tmp_path, {"home": {"project": {"a.txt": "a"}, "state": {"sub": {}}, "file.txt": "x"}})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def opened(given: Sequence[str], cwd: str, home: Path) -> list[str]:
    roots = open_roots(given, cwd, str(home / "state"))
    close_roots(roots)
    return [root.path for root in roots]


def test_roots_come_in_the_order_given_and_each_once(home: Path) -> None:
    assert opened([str(home / "project"), "/usr", str(home / "project" / ".")], "/", home) == [
        str(home / "project"),
        "/usr",
    ]


def test_a_tilde_and_a_relative_root_are_expanded(home: Path) -> None:
    assert opened(["~/project"], "/", home) == [str(home / "project")]
    assert opened(["project"], str(home), home) == [str(home / "project")]


def test_a_root_given_by_a_link_is_its_real_directory(home: Path) -> None:
    (home / "link").symlink_to("project")
    assert opened([str(home / "link")], "/", home) == [str(home / "project")]


@pytest.mark.parametrize("bad", ["missing", "file.txt", "state", "state/sub"])
def test_an_invalid_root_is_skipped_with_a_warning(home: Path, bad: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert opened([str(home / bad), str(home / "project")], "/", home) == [str(home / "project")]
    assert "allowed directory 1 of 2 skipped: " in caplog.text
    assert str(home) not in caplog.text


def test_roots_given_but_none_valid_is_an_error(home: Path) -> None:
    with pytest.raises(InvalidArgument, match="None of the given directories"):
        opened([str(home / "missing")], "/", home)


def test_without_roots_the_working_directory_is_the_root(home: Path) -> None:
    assert opened([], str(home / "project"), home) == [str(home / "project")]


def test_slash_and_the_home_folder_are_never_roots_by_themselves(home: Path) -> None:
    for cwd in ("/", str(home)):
        with pytest.raises(InvalidArgument, match="too wide"):
            opened([], cwd, home)


def test_they_may_be_given_by_name(home: Path) -> None:
    assert opened([str(home)], "/", home) == [str(home)]


def test_a_root_over_the_state_folder_is_walked(home: Path) -> None:
    roots = open_roots([str(home), str(home / "project")], "/", str(home / "state"))
    assert [root.walk_only for root in roots] == [True, False]
    close_roots(roots)


def test_a_root_that_was_removed_is_opened_again_where_a_new_one_stands(home: Path) -> None:
    folders = OpenFolders(FolderSettings(), str(home / "state"))
    caller = Caller(LOCAL_USER, roots=(str(home / "brief"), str(home / "project")))
    (home / "brief").mkdir()
    before = folders.folders_of(caller)
    assert folders.folders_of(caller) is before
    (home / "brief").rmdir()
    (home / "brief").mkdir()
    after = folders.folders_of(caller)
    folders.close()
    old, new = (each.jail.roots for each in (before, after))
    assert [old[0].identity == new[0].identity, old[1].identity == new[1].identity] == [False, True]


def test_a_directory_whose_path_is_no_text_is_skipped(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/r\xff")
    os.mkdir(odd)
    with pytest.raises(InvalidArgument, match="not valid Unicode"):
        open_roots([odd], "/", str(tmp_path / "state"))
