"""JSON with comments: an edit touches the entry and nothing else, whatever the file looks like."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config_files.config_format import CannotEdit, ConfigFault, install_entry, uninstall_entry
from holdfast.config_files.edit_jsonc import JSONC, read

ENTRY = {"command": "/opt/holdfast", "args": ["stdio", "/notes"]}


def install(text: str, fields: dict[str, Any] = ENTRY, name: str = "holdfast") -> str:
    return install_entry(JSONC, text, "mcpServers", name, fields, {})


def uninstall(text: str) -> str:
    return uninstall_entry(JSONC, text, "mcpServers", "holdfast")


def test_comments_commas_and_key_order_stay_and_the_entry_has_the_style_of_the_file() -> None:
    before = """\
// mine
{
\t"theme": "dark", // why
\t/* servers */
\t"mcpServers": {
\t\t"other": { "command": "x", "args": [] }, // keep
\t},
}
"""
    after = """\
// mine
{
\t"theme": "dark", // why
\t/* servers */
\t"mcpServers": {
\t\t"other": { "command": "x", "args": [] }, // keep
\t\t"holdfast": {
\t\t\t"command": "/opt/holdfast",
\t\t\t"args": [
\t\t\t\t"stdio",
\t\t\t\t"/notes"
\t\t\t]
\t\t},
\t},
}
"""
    assert install(before) == after
    assert uninstall(after) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "mcpServers": {\n    "holdfast": {\n      "k": 1\n    }\n  }\n}'),
        ('{"a":1}', '{"a":1,"mcpServers":{"holdfast":{"k":1}}}'),
        ('{"a": 1,}', '{"a": 1, "mcpServers": {"holdfast": {"k": 1}},}'),
        ('{"mcpServers":{"b":{}},"z":2}', '{"mcpServers":{"b":{},"holdfast":{"k":1}},"z":2}'),
        (
            '{\r\n    "mcpServers": {}\r\n}\r\n',
            '{\r\n    "mcpServers": {\r\n        "holdfast": {\r\n            "k": 1\r\n        }\r\n    }\r\n}\r\n',
        ),
        (
            '{\n  "mcpServers": {\n    // none yet\n  }\n}',
            '{\n  "mcpServers": {\n    // none yet\n    "holdfast": {\n      "k": 1\n    }\n  }\n}',
        ),
        (
            '{\n  "a": 1 // last\n}',
            '{\n  "a": 1, // last\n  "mcpServers": {\n    "holdfast": {\n      "k": 1\n    }\n  }\n}',
        ),
        ("// only this", '// only this\n{\n  "mcpServers": {\n    "holdfast": {\n      "k": 1\n    }\n  }\n}\n'),
        ("", '{\n  "mcpServers": {\n    "holdfast": {\n      "k": 1\n    }\n  }\n}\n'),
    ],
)
def test_an_entry_is_added_in_the_style_of_what_is_there(before: str, after: str) -> None:
    assert install(before, {"k": 1}) == after


def test_servers_that_are_null_become_an_object() -> None:
    before = '{\n  "mcpServers": null, // none yet\n  "a": 1\n}\n'
    after = install(before)
    assert read(after) == {"mcpServers": {"holdfast": ENTRY}, "a": 1}
    assert "// none yet" in after


def test_a_changed_option_changes_its_value_alone() -> None:
    before = """{
  "mcpServers": {
    "holdfast": {
      // by hand
      "args": ["stdio", "/old"], // folders
      "disabled": true,
      "command": "/opt/holdfast"
    }
  }
}"""
    assert install(before) == before.replace('"/old"', '"/notes"')
    with_env = install(before, {**ENTRY, "env": {"A": "b"}})
    assert '"command": "/opt/holdfast",\n      "env": {\n        "A": "b"\n      }\n    }' in with_env
    assert '"disabled": true' in with_env


def test_a_second_run_has_nothing_to_do() -> None:
    once = install('{"mcpServers": {"a": {}}}')
    assert install(once) == once


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ('{"a": nope}', 1, 7),
        ('{"a": 1', 1, 8),
        ('{\n  "a": "x\n}', 2, 8),
        ("{\n/* for ever", 2, 1),
        ("[]", 1, 1),
        ("{} {}", 1, 4),
        ('{"a": 01}', 1, 7),
        ("{'a': 1}", 1, 2),
        ('{"a": [1 2]}', 1, 10),
        ('{"a" 1}', 1, 6),
        ('{"a": ' + "[" * 300, 1, 207),
        ("<<<<<<< HEAD\n{}", 1, 1),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(ConfigFault) as raised:
        install(text)
    assert (raised.value.line, raised.value.column) == (line, column)


@pytest.mark.parametrize("text", ['{"mcpServers": []}', '{"mcpServers": {"holdfast": "x"}}'])
def test_what_is_no_mapping_is_left_alone(text: str) -> None:
    with pytest.raises(CannotEdit):
        install(text)


def test_a_section_that_is_written_twice_is_never_half_edited() -> None:
    twice = '{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}'
    assert read(install(twice))["mcpServers"] == {"b": {}, "holdfast": ENTRY}
    doubled = '{"mcpServers": {"holdfast": {"k": 1}, "holdfast": {"k": 2}}}'
    with pytest.raises(CannotEdit):
        uninstall(doubled)


TRIVIA = st.lists(st.sampled_from([" ", "\t", "\n", "\r\n", "/* { */", '// " }\n', "/*\n,*/"]), max_size=3).map("".join)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)
)
NAMES = st.text(alphabet='ab"\\/{é☃\U0001f600\n', min_size=1, max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


@st.composite
def written(draw: Callable[..., Any], value: Any) -> str:
    """Write a value with blanks, comments and commas wherever they may stand."""
    if isinstance(value, dict):
        items = [
            draw(TRIVIA) + json.dumps(key, ensure_ascii=draw(st.booleans())) + draw(TRIVIA) + ":" + draw(TRIVIA)
            + draw(written(item)) + draw(TRIVIA)
            for key, item in value.items()
        ]  # fmt: skip
        comma = "," + draw(TRIVIA) if items and draw(st.booleans()) else draw(TRIVIA)
        return f"{{{','.join(items)}{comma}}}"
    if isinstance(value, list):
        items = [draw(TRIVIA) + draw(written(item)) + draw(TRIVIA) for item in value]
        comma = "," + draw(TRIVIA) if items and draw(st.booleans()) else draw(TRIVIA)
        return f"[{','.join(items)}{comma}]"
    return json.dumps(value)


@st.composite
def configurations(draw: Callable[..., Any]) -> tuple[dict[str, Any], str]:
    data: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    if draw(st.booleans()):
        data["mcpServers"] = draw(st.dictionaries(NAMES, VALUES, max_size=3))
        data = dict(draw(st.permutations(list(data.items()))))
    return data, draw(TRIVIA) + draw(written(data)) + draw(TRIVIA)


def comments(text: str) -> list[str]:
    """Return what is left of the text's comments once each stands on its own."""
    return [mark for mark in ("/* { */", '// " }', "/*\n,*/") for _ in range(text.count(mark))]


@given(configurations())
def test_any_file_is_read_as_it_was_written(configuration: tuple[dict[str, Any], str]) -> None:
    data, text = configuration
    assert read(text) == data


@given(configurations())
def test_in_any_file_the_entry_comes_and_goes_and_nothing_else_moves(configuration: tuple[dict[str, Any], str]) -> None:
    data, text = configuration
    installed = install(text)
    assert read(installed) == {**data, "mcpServers": {**data.get("mcpServers", {}), "holdfast": ENTRY}}
    assert install(installed) == installed
    assert sorted(comments(installed)) == sorted(comments(text))
    without = uninstall(installed)
    assert read(without) == {**data, "mcpServers": data.get("mcpServers", {})}
    if data.get("mcpServers"):
        assert without == text


@given(configurations())
def test_in_any_file_an_edit_only_inserts(configuration: tuple[dict[str, Any], str]) -> None:
    """Every character that was there is there, in its order."""
    _, text = configuration
    characters = iter(install(text))
    assert all(char in characters for char in text if not char.isspace())
