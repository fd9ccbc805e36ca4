"""Name patterns mean what they mean in the reference server."""

import time

import pytest

from holdfast.errors import InvalidQuery
from holdfast.text.glob import Glob


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py", ".hidden.py"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/.x.py"], ["a.txt"]),
        ("**", ["a", "a/b", ".git"], []),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/b/c", "b"]),
        ("**/a/**", ["a/b", "x/a/b/c"], ["a", "x/a"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py"]),
        ("**.py", ["a.py"], ["d/a.py"]),
        ("a?c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("[a-c]x", ["ax", "cx"], ["dx"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[[:digit:]]", ["7"], ["x"]),
        ("[]]", ["]"], ["x"]),
        ("[", ["["], ["x"]),
        (r"\*", ["*"], ["x"]),
        ("{a,b}.{c,d}", ["a.c", "b.d"], ["a.b"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"], ["b", "d"]),
        ("{src,lib}/**/*.js", ["src/a.js", "lib/x/y.js"], ["a.js"]),
        ("x{1..3}", ["x1", "x3"], ["x4"]),
        ("{c..a}", ["b"], ["d"]),
        ("{a}", ["{a}"], ["a"]),
        ("{a,b", ["{a,b"], ["a"]),
        ("+(a|b).c", ["a.c", "abba.c"], [".c"]),
        ("@(a|b)", ["a"], ["ab"]),
        ("x?(y)z", ["xz", "xyz"], ["xyyz"]),
        ("*(ab)", ["abab"], ["aba"]),
        ("!*.py", ["a.txt", "d/a.py"], ["a.py"]),
        ("!!*.py", ["a.py"], ["a.txt"]),
        ("./a", ["a"], ["b"]),
        ("a*b*c", ["abc", "axbxc"], ["acb"]),
        ("é*", ["éa", "é"], ["e"]),
        ("*\udcff".replace("\udcff", "x?"), ["ax\udcff"], ["ax"]),
    ],
)
def test_a_pattern_matches_what_it_should(pattern: str, yes: list[str], no: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in yes if not glob.matches(path)] == []
    assert [path for path in no if glob.matches(path)] == []


def test_a_directory_in_which_nothing_can_match_is_known() -> None:
    assert Glob("src/*.py").start.enter("docs").is_dead
    assert Glob("*.py").start.enter("docs").is_dead
    assert not Glob("**/x").start.enter("docs").is_dead
    assert not Glob("!src/*").start.enter("docs").is_dead


@pytest.mark.parametrize("pattern", ["{1..9999}", "{a,b}" * 12, "x" * 5000, "!(a|b)"])
def test_a_pattern_that_is_too_much_or_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidQuery):
        Glob(pattern)


def test_a_hostile_pattern_is_matched_in_linear_time() -> None:
    glob = Glob("*a" * 60 + "b?")
    began = time.monotonic()
    assert not glob.matches("a" * 255)
    assert not Glob("+(+(a|aa)|a)b").matches("a" * 255)
    assert time.monotonic() - began < 2


def test_a_pattern_that_stands_for_too_much_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="in all"):
        Glob("{a,b}" * 8 + "/a" * 1900)
