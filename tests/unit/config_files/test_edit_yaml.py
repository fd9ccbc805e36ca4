"""YAML: the entry is a block of lines of its own, and everything around it stays byte for byte."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config_files.config_format import CannotEdit, ConfigFault, install_entry, uninstall_entry
from holdfast.config_files.edit_yaml import YAML

ENTRY = {"cmd": "/opt/holdfast", "args": ["stdio", "/notes"]}
GOOSE = """\
# my Goose
GOOSE_PROVIDER: anthropic   # the one
extensions:
  developer:
    enabled: true
    # tools
    args:
    - "a: b"
    - |
      two
      lines
  # the last
  memory: {enabled: false}  # off

GOOSE_MODE: 'auto'
"""
LINES = '  holdfast:\n    cmd: "/opt/holdfast"\n    args: ["stdio", "/notes"]\n'


def install(text: str, fields: dict[str, Any] = ENTRY) -> str:
    return install_entry(YAML, text, "extensions", "holdfast", fields, {})


def uninstall(text: str) -> str:
    return uninstall_entry(YAML, text, "extensions", "holdfast")


def test_an_entry_is_added_after_the_last_one_and_goes_again() -> None:
    after = install(GOOSE)
    assert after == GOOSE.replace("# off\n", "# off\n" + LINES)
    assert install(after) == after
    assert uninstall(after) == GOOSE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "extensions:\n" + LINES),
        ("# only this", "# only this\nextensions:\n" + LINES),
        ("a: 1", "a: 1\nextensions:\n" + LINES),
        ("---\na: 1 # x\n\n# end\n", "---\na: 1 # x\nextensions:\n" + LINES + "\n# end\n"),
        ("extensions: {}  # none\nb: 2\n", "extensions:   # none\n" + LINES + "b: 2\n"),
        ("extensions:\nb: 2\n", "extensions:\n" + LINES + "b: 2\n"),
        ("a: 1\n...\n", "a: 1\nextensions:\n" + LINES + "...\n"),
        ("extensions: null\n", "extensions:\n" + LINES),
        ("a: 1\r\nextensions:\r\n    x:\r\n        y: 1\r\n", None),
        ("extensions:\n  x:\n    y: |+\n      text\n\nz: 1\n", None),
        ("extensions:\n  x:\n", None),
        ("extensions:\n- x\n", ""),
    ],
)
def test_an_entry_is_added_in_the_style_of_what_is_there(before: str, after: str | None) -> None:
    if after == "":
        with pytest.raises(CannotEdit):
            install(before)
        return
    installed = install(before)
    assert installed == after or after is None
    assert yaml.safe_load(installed)["extensions"]["holdfast"] == ENTRY
    assert installed.count("\n") == installed.count("\r\n") or "\r" not in before
    if after is None:
        assert uninstall(installed) == before


def test_a_changed_option_changes_its_value_alone() -> None:
    before = """\
extensions:
  holdfast:   # mine
    enabled: false
    args:
    - stdio
    - /old
    cmd: '/opt/holdfast'  # here
  next:
    cmd: y
"""
    after = install(before, {**ENTRY, "envs": {"A": "b"}})
    assert (
        after
        == """\
extensions:
  holdfast:   # mine
    enabled: false
    args: ["stdio", "/notes"]
    cmd: '/opt/holdfast'  # here
    envs: {"A": "b"}
  next:
    cmd: y
"""
    )
    assert uninstall(after) == "extensions:\n  next:\n    cmd: y\n"


def test_the_section_stays_as_an_empty_one() -> None:
    assert uninstall("a: 1\nextensions:\n" + LINES + "b: 2\n") == "a: 1\nextensions: {}\nb: 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "{extensions: {a: {cmd: x}}}\n",
        "extensions: {a: {cmd: x}}\n",
        "base: &base\n  holdfast:\n    cmd: x\nextensions: *base\n",
        "extensions: none\n",
    ],
)
def test_a_form_that_is_not_edited_is_left_alone(text: str) -> None:
    with pytest.raises(CannotEdit):
        install(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("a: 1\n b: 2\n", 2, 3), ("a: [1\n", 2, 1), ("- x\n", 1, 1), ("a: 1\n\tb: 2\n", 2, 1), ("a: \x07\n", 1, 4)],
)
def test_a_broken_file_is_refused_with_its_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(ConfigFault) as raised:
        install(text)
    assert (raised.value.line, raised.value.column) == (line, column)


NAMES = st.text(alphabet="ab: #-'\"", min_size=1, max_size=3)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
SECTIONS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)


@given(st.dictionaries(NAMES, VALUES, max_size=3), SECTIONS, st.sampled_from([2, 4]), st.booleans())
def test_in_any_file_the_entry_comes_and_goes_and_nothing_else_moves(
    others: dict[str, Any], section: dict[str, Any], indent: int, is_last: bool
) -> None:
    data = {**others, "extensions": section} if is_last else {"extensions": section, **others}
    text = yaml.safe_dump(data, indent=indent, sort_keys=False, allow_unicode=True)
    data = yaml.safe_load(text)
    installed = install(text)
    assert yaml.safe_load(installed) == {**data, "extensions": {**data["extensions"], "holdfast": ENTRY}}
    assert install(installed) == installed
    assert uninstall(installed) == text
