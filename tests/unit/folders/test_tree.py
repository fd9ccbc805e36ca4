"""The tree: JSON of the reference's shape, the top first, within its budget, and complete over its pages."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidArgument
from holdfast.folders.finding import tree as module
from holdfast.folders.finding.tree import directory_tree
from holdfast.folders.service import Folders
from holdfast.text.budget import encode_cursor, estimate_tokens
from tests.helpers.finder import cursor_in, folders_over, new_call
from tests.helpers.swapper import swapping
from tests.helpers.trees import plant


def tree(folders: Folders, path: str = ".", **options: Any) -> Any:
    text, notice = directory_tree(folders, new_call(), path, **options)
    assert not notice
    return json.loads(text)


def leaves(nodes: list[dict[str, Any]], above: str = "") -> list[str]:
    found = []
    for node in nodes:
        path = f"{above}{node['name']}"
        found += [path] if node["type"] != "directory" else leaves(node.get("children", []), f"{path}/")
    return found


def all_leaves(folders: Folders, path: str = ".") -> list[str]:
    found, cursor = [], None
    for _ in range(500):
        text, notice = directory_tree(folders, new_call(), path, cursor=cursor)
        assert estimate_tokens(text + notice) <= folders.settings.max_answer_tokens
        found += leaves(json.loads(text))
        cursor = cursor_in(notice)
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")


def test_a_tree_has_the_shape_of_the_reference(tmp_path: Path) -> None:
    plant(tmp_path, {"b.txt": "", "a": {"x": "", "empty": {}}})
    (tmp_path / "l").symlink_to("a")
    assert tree(folders_over(tmp_path)) == [
        {
            "name": "a",
            "type": "directory",
            "children": [
                {"name": "empty", "type": "directory", "children": []},
                {"name": "x", "type": "file"},
            ],
        },
        {"name": "b.txt", "type": "file"},
        {"name": "l", "type": "link"},
    ]


def test_ignored_and_excluded_entries_are_not_in_it(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            ".gitignore": "node_modules/\n",
            ".git": {"config": ""},
            "node_modules": {"m": ""},
            "src": {"a.py": "", "a.pyc": "", "vendor": {"v": ""}},
            "vendor": {"w": ""},
        },
    )
    folders = folders_over(tmp_path)
    assert leaves(tree(folders)) == [".gitignore", "src/a.py", "src/a.pyc", "src/vendor/v", "vendor/w"]
    assert leaves(tree(folders, exclude=["vendor", "**/*.pyc"])) == [".gitignore", "src/a.py"]
    assert leaves(tree(folders, exclude=["vendor*"])) == [".gitignore", "src/a.py", "src/a.pyc", "src/vendor/v"]


def test_a_directory_at_the_depth_limit_is_collapsed_with_its_count(tmp_path: Path) -> None:
    plant(tmp_path, {"a": {"b": {"c": ""}, "x": ""}})
    assert tree(folders_over(tmp_path), max_depth=1) == [
        {"name": "a", "type": "directory", "entries": 2, "collapsed": True}
    ]


def test_a_big_directory_is_collapsed_unless_the_tree_starts_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BIG_DIRECTORY", 10)
    plant(tmp_path, {"big": {f"f{number:02}": "" for number in range(11)}, "small": {"f": ""}})
    folders = folders_over(tmp_path)
    big, small = tree(folders)
    assert big == {"name": "big", "type": "directory", "entries": 11, "collapsed": True}
    assert small["children"]
    assert len(tree(folders, "big")) == 11


def test_the_top_is_always_there_and_the_pages_together_are_complete(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {f"d{one}": {f"e{two}": {f"f{number}": "" for number in range(9)} for two in range(9)} for one in range(9)},
    )
    folders = folders_over(tmp_path, max_answer_tokens=1200)
    text, notice = directory_tree(folders, new_call(), ".")
    assert notice
    assert [node["name"] for node in json.loads(text)] == [f"d{one}" for one in range(9)]
    found = all_leaves(folders)
    assert len(found) == len(set(found)) == 729
    assert set(found) == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("f*")}


def test_a_flat_directory_that_exceeds_the_budget_is_paged(tmp_path: Path) -> None:
    plant(tmp_path, {**{f"file-{number:04}": "" for number in range(900)}, "a-dir": {"inside": ""}})
    found = all_leaves(folders_over(tmp_path, max_answer_tokens=1000))
    assert sorted(found) == ["a-dir/inside", *(f"file-{number:04}" for number in range(900))]


def test_twenty_thousand_files_are_walked_only_as_far_as_they_are_shown(tmp_path: Path) -> None:
    for folder in range(200):
        (tmp_path / f"d{folder:03}").mkdir()
        for number in range(100):
            os.close(os.open(tmp_path / f"d{folder:03}" / f"f{number:03}.py", os.O_CREAT))
    folders = folders_over(tmp_path)
    text, notice = directory_tree(folders, new_call(), ".")
    assert notice
    assert len(text) < 400_000
    assert len(json.loads(text)) == 200
    assert len(all_leaves(folders)) == 20_000


def test_strange_names_stay_valid_and_visible_json(tmp_path: Path) -> None:
    plant(tmp_path, {'a\n","type":"directory': "", "rtl\u202ename": "", "é": ""})
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff", os.O_CREAT))
    text, _ = directory_tree(folders_over(tmp_path), new_call(), ".")
    assert text.isprintable()
    assert [node["name"] for node in json.loads(text)] == ['a\n","type":"directory', "rtl\u202ename", "é", '"\\xff"']


def test_a_deep_tree_ends_at_a_collapsed_directory(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 200)).mkdir(parents=True)
    node = tree(folders_over(tmp_path))[0]
    depth = 1
    while not node.get("collapsed"):
        node, depth = node["children"][0], depth + 1
    assert depth == module.MAX_DEPTH
    assert node["entries"] == 1


def test_a_cursor_of_another_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument):
        directory_tree(folders_over(tmp_path), new_call(), ".", cursor=encode_cursor({"in": 1}))


def test_a_swapped_link_never_brings_an_outside_name_into_the_tree(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": {"secret": {"deep": ""}}, "root": {"door": {"inside": {"x": ""}}}})
    root = tmp_path / "root"
    (root / "link").symlink_to(tmp_path / "outside")
    folders = folders_over(root)
    seen = set()
    with swapping(root / "door", root / "link", at_least=100):
        until = time.monotonic() + 2
        while time.monotonic() < until:
            seen.add(directory_tree(folders, new_call(), ".")[0])
    assert any("inside" in text for text in seen)
    assert not [text for text in seen if "secret" in text or "deep" in text]
