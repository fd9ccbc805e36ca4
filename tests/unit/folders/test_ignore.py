"""What .gitignore and its kin leave out of a walk: the same as ripgrep does."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.folders.finding.ignore import MAX_FILE_BYTES, MAX_PATTERNS
from holdfast.folders.finding.ripgrep import ripgrep_path
from holdfast.folders.finding.walk import EntryType, IgnoreChecker, Walk, open_start
from tests.helpers.finder import folders_over, new_call
from tests.helpers.trees import Tree, plant


def walked(root: Path, path: str = ".") -> list[str]:
    folders = folders_over(root)
    with open_start(folders.jail, path, ignore=True) as start:
        walk = Walk(folders.jail, new_call(), start, ignore=True)
        return [run.folder.relative + name for run in walk for name, kind in run.entries if kind is EntryType.FILE]


def listed_by_ripgrep(root: Path, path: str = ".") -> list[str]:
    options = [
        "--no-config",
        "--files",
        "--hidden",
        "--no-require-git",
        "--no-ignore-global",
        "--sort=path",
        "--glob=!.git",
    ]
    done = subprocess.run([ripgrep_path(), *options, "."], cwd=root / path, capture_output=True, text=True, check=False)
    return [line.removeprefix("./") for line in done.stdout.splitlines()]


TREES: dict[str, Tree] = {
    "by name and suffix": {
        ".gitignore": "*.log\nbuild/\n/top\n# a comment\n\n!keep.log\n",
        "a.log": "",
        "keep.log": "",
        "top": "",
        "build": {"x": ""},
        "sub": {"build": "a file", "top": "", "b.log": "", "keep.log": ""},
    },
    "nested files, the deeper wins": {
        ".gitignore": "*.txt\n",
        "a.txt": "",
        "sub": {".gitignore": "!*.txt\n*.md\n", "b.txt": "", "c.md": "", "deep": {"d.txt": "", "e.md": ""}},
        "c.md": "",
    },
    "anchored and with wildcards": {
        ".gitignore": "docs/*.html\n**/cache/*.bin\nx[0-9]?.dat\nlogs/**\n*~\ntmp*\n\\#odd\\#\n",
        "docs": {"a.html": "", "b.md": "", "sub": {"c.html": ""}},
        "p": {"cache": {"a.bin": "", "a.txt": ""}},
        "x12.dat": "",
        "xa2.dat": "",
        "logs": {"l": "", "deep": {"m": ""}},
        "file~": "",
        "tmpfile": "",
        "#odd#": "",
    },
    "other files and a repository": {
        ".gitignore": "secret\n",
        ".ignore": "!secret\n*.bak\n",
        "secret": "",
        "x.bak": "",
        ".git": {"info": {"exclude": "*.local\n"}, "config": ""},
        "y.local": "",
        "nested": {".git": {"HEAD": ""}, "secret": "", "z.local": "", "w.bak": ""},
    },
    "everything but": {".gitignore": "*\n!*/\n!*.py\n", "a.py": "", "b.js": "", "pkg": {"c.py": "", "d.js": ""}},
    "lines that mean nothing": {".gitignore": "!\n/\n   \nreal\n!(x)\n", "real": "", "other": ""},
}


@pytest.mark.parametrize("name", TREES)
def test_the_walk_leaves_out_what_ripgrep_leaves_out(tmp_path: Path, name: str) -> None:
    root = plant(tmp_path / "root", TREES[name])
    assert walked(root) == listed_by_ripgrep(root)


@pytest.mark.parametrize("name", TREES)
def test_a_single_path_is_judged_as_the_walk_does(tmp_path: Path, name: str) -> None:
    root = plant(tmp_path / "root", TREES[name])
    kept = set(walked(root))
    folders = folders_over(root)
    with open_start(folders.jail, ".", ignore=True) as start:
        judge = IgnoreChecker(folders.jail, start)
        for folder, _, names in os.walk(root):
            if "/.git" not in folder:
                for each in names:
                    relative = str(Path(folder, each).relative_to(root))
                    assert judge.ignores(relative) == (relative not in kept), relative


def test_rules_from_above_hold_where_the_walk_starts(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {".gitignore": "*.log\n/sub/x\n", "sub": {"a.log": "", "x": "", "b": ""}})
    assert walked(root, "sub") == listed_by_ripgrep(root, "sub") == ["b"]


def test_an_ignored_directory_can_be_looked_into_by_name(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {".gitignore": "node_modules/\n", "node_modules": {"pkg": {"index.js": ""}}})
    assert walked(root) == [".gitignore"]
    assert walked(root, "node_modules/pkg") == ["index.js"]


def test_rules_above_the_root_do_not_count(tmp_path: Path) -> None:
    root = plant(tmp_path, {".gitignore": "*\n", "root": {"a": ""}}) / "root"
    assert walked(root) == ["a"]


def test_a_gitignore_that_is_a_link_or_a_fifo_is_not_read(tmp_path: Path) -> None:
    root = plant(tmp_path, {"rules": "*\n", "root": {"a": "", "sub": {"b": ""}}}) / "root"
    (root / ".gitignore").symlink_to(tmp_path / "rules")
    os.mkfifo(root / "sub" / ".gitignore")
    assert walked(root) == ["a", "sub/b"]


def test_an_ignore_file_of_any_size_is_read_in_bounded_time(tmp_path: Path) -> None:
    plant(tmp_path, {".gitignore": "secret\n" + "".join(f"*{n}?\n" for n in range(120_000)), "secret": "", "plain": ""})
    began = time.monotonic()
    assert walked(tmp_path) == [".gitignore", "plain"]
    assert time.monotonic() - began < 10


def test_comments_and_empty_lines_do_not_count_as_patterns(tmp_path: Path) -> None:
    root = plant(
        tmp_path / "root", {".gitignore": "# a comment\n\n  \n\r\n" * 20_000 + "a.txt\n", "a.txt": "", "b": ""}
    )
    assert walked(root) == listed_by_ripgrep(root) == [".gitignore", "b"]


@pytest.mark.parametrize("rules", ["".join(f"x{n}\n" for n in range(MAX_PATTERNS + 1)), "#" * MAX_FILE_BYTES + "\na"])
def test_a_file_with_more_rules_than_are_followed_is_marked_with_all_beneath(tmp_path: Path, rules: str) -> None:
    root = plant(tmp_path / "root", {"a": "", "sub": {".gitignore": rules, "b": "", "deep": {"c": ""}}})
    folders = folders_over(root)
    with open_start(folders.jail, ".", ignore=True) as start:
        marked = {
            run.folder.relative: run.folder.rules.is_cut for run in Walk(folders.jail, new_call(), start, ignore=True)
        }
    assert marked == {"": False, "sub/": True, "sub/deep/": True}
