"""Where the section around a match ends."""

import time

import pytest

from holdfast.errors import InvalidQuery
from holdfast.folders.finding.sections import DEFINITIONS, HEADINGS, compile_patterns, default_patterns, section_ends

CODE = b"import x\n\ndef a():\n    pass\n\n\nclass B:\n    x = 1\n\n    async def m(self):\n        pass\n"


def test_a_section_ends_before_the_next_definition_or_with_the_file() -> None:
    ends = section_ends(CODE, [1, 3, 4, 8, 11], compile_patterns(DEFINITIONS), is_whole=True)
    assert ends == {1: 2, 3: 6, 4: 6, 8: 9, 11: 11}


def test_a_section_of_prose_ends_before_the_next_heading() -> None:
    ends = section_ends(b"# A\ntext\n\n## B\nmore", [1, 2, 5], compile_patterns(HEADINGS), is_whole=True)
    assert ends == {1: 3, 2: 3, 5: 5}


def test_own_patterns_take_the_place_of_the_defaults() -> None:
    ends = section_ends(b"a\nBEGIN\nb\nEND\n", [1, 3], compile_patterns(["^BEGIN", "^END"]), is_whole=True)
    assert ends == {1: 1, 3: 3}


def test_of_a_file_that_is_not_known_to_its_end_only_sure_ends_are_said() -> None:
    assert section_ends(CODE, [4, 11], compile_patterns(DEFINITIONS), is_whole=False) == {4: 6}


def test_the_kind_of_file_decides_what_begins_a_section() -> None:
    assert default_patterns("README.MD") == HEADINGS
    assert default_patterns("a.py") == DEFINITIONS


def test_a_bad_section_pattern_is_refused_and_a_hostile_one_is_linear() -> None:
    with pytest.raises(InvalidQuery):
        compile_patterns(["("])
    began = time.monotonic()
    section_ends(b"a" * 100_000 + b"\n" + b"a" * 100_000, [1], compile_patterns(["(a*)*b"]), is_whole=True)
    assert time.monotonic() - began < 5
