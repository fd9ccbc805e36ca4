"""TOML: the entry is a table of its own, and everything around it stays byte for byte."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config_files.config_format import CannotEdit, ConfigFault, install_entry, uninstall_entry
from holdfast.config_files.edit_toml import TOML, scan_toml

ENTRY = {"command": "/opt/holdfast", "args": ["stdio", "/notes"]}
TABLE = '[mcp_servers.holdfast]\ncommand = "/opt/holdfast"\nargs = ["stdio", "/notes"]\n'
CODEX = '''\
# my Codex
model = "o4"  # the small one
notify = [
  "say", # "]"
]

[mcp_servers.other]
command = 'x'
note = """a
[mcp_servers.holdfast]
"""

[profiles."a.b"]
x = { y = 1 }
# the end
'''


def install(text: str, fields: dict[str, Any] = ENTRY) -> str:
    return install_entry(TOML, text, "mcp_servers", "holdfast", fields, {})


def uninstall(text: str) -> str:
    return uninstall_entry(TOML, text, "mcp_servers", "holdfast")


def test_a_table_is_added_at_the_end_and_goes_again() -> None:
    assert install(CODEX) == CODEX + "\n" + TABLE
    assert uninstall(CODEX + "\n" + TABLE) == CODEX


@pytest.mark.parametrize("text", ["", "a = 1\n", "a = 1\r\n\r\n[b]\r\nc = 2\r\n", "[mcp_servers]\n"])
def test_a_file_is_as_before_when_the_entry_came_and_went(text: str) -> None:
    installed = install(text)
    assert tomllib.loads(installed)["mcp_servers"]["holdfast"] == ENTRY
    assert ("\r\n" in text) == ("\r\n" in installed)
    assert installed.count("\n") == installed.count("\r\n") or "\r" not in text
    assert uninstall(installed) == text


def test_a_changed_option_changes_its_value_alone() -> None:
    before = """\
[mcp_servers.holdfast] # mine
command = "/opt/holdfast"
args = [
  "stdio", # this ] is no end
  "/old",
] # folders
startup_timeout_sec = 20

# about the next
[mcp_servers.next]
command = "y"
"""
    after = install(before, {**ENTRY, "env": {"HOLDFAST_STATE_DIR": "/s"}})
    assert (
        after
        == """\
[mcp_servers.holdfast] # mine
command = "/opt/holdfast"
args = ["stdio", "/notes"] # folders
startup_timeout_sec = 20
env = { HOLDFAST_STATE_DIR = "/s" }

# about the next
[mcp_servers.next]
command = "y"
"""
    )
    assert uninstall(after) == '\n# about the next\n[mcp_servers.next]\ncommand = "y"\n'


def test_an_environment_in_a_table_of_its_own_is_changed_and_goes_with_the_entry() -> None:
    before = TABLE + '\n[mcp_servers.holdfast.env]\nA = "1"\n\n[z]\n'
    after = install(before, {**ENTRY, "env": {"A": "1", "B": "2"}})
    assert after == TABLE + 'env = { A = "1", B = "2" }\n\n[z]\n'
    assert uninstall(before) == "\n[z]\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        'mcp_servers = { holdfast = { command = "x" } }\n',
        'mcp_servers.holdfast.command = "x"\n',
        '[mcp_servers]\nholdfast = { command = "x" }\n',
        'mcp_servers = "none"\n',
        "[[mcp_servers]]\na = 1\n",
    ],
)
def test_a_form_that_is_not_edited_is_left_alone(text: str) -> None:
    with pytest.raises(CannotEdit):
        install(text)


def test_servers_with_dotted_keys_stay() -> None:
    text = 'mcp_servers.other.command = "x"\nmodel = "y"\n'
    assert install(text) == text + "\n" + TABLE


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = 1\nb = \n", 2, 5),
        ('a = "x', 1, 7),
        ("[a]\n[a]\n", 2, 3),
        ("a = 1\n\nb == 2", 3, 4),
        ("<<<<<<< HEAD", 1, 1),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(ConfigFault) as raised:
        install(text)
    assert (raised.value.line, raised.value.column) == (line, column)


TRIVIA = st.sampled_from(["", "\n", "# [x]\n", "  \n\n# a = '''\n"])
ENDS = st.sampled_from(["\n", " # note\n", '\t# "\n', "\r\n"])
KEYS = st.sampled_from(["a", "b-1", '"c.d"', "'e]'", '"f\\"#"'])
VALUES = st.sampled_from(
    ["1", "-0.5", "true", '"x # ]"', "'\\'", '"""\n[t]\n""\\""""', "'''a'\n'''", "[1, 2]", "[\n 'x', # ]\n]", "{ a = [{}] }",
     "1979-05-27 07:32:00Z", '"\\u00e9"']
)  # fmt: skip


@st.composite
def toml_texts(draw: Any) -> str:
    def statements() -> str:
        keys = draw(st.lists(KEYS, unique=True, max_size=3))
        return "".join(f"{draw(TRIVIA)}{key} = {draw(VALUES)}{draw(ENDS)}" for key in keys)

    headers = draw(
        st.lists(st.sampled_from(["[t]", "[ 'u' . v ]", "[mcp_servers.x]", '[mcp_servers."y"]', "[[w]]"]), unique=True)
    )
    return statements() + "".join(f"{draw(TRIVIA)}{header}{draw(ENDS)}{statements()}" for header in headers)


@given(toml_texts())
def test_in_any_file_the_entry_comes_and_goes_and_nothing_else_moves(text: str) -> None:
    installed = install(text)
    assert installed.startswith(text)
    assert install(installed) == installed
    assert uninstall(installed) == text


@given(toml_texts())
def test_every_statement_is_found_where_it_stands(text: str) -> None:
    for table in scan_toml(text):
        for statement in table.statements:
            assert len(tomllib.loads(text[statement.start : statement.end])) == 1
