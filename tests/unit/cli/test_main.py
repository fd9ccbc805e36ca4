"""The command line itself: other spellings, and what a wrong name is answered with."""

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.cli.main import cli


def test_the_other_spelling_of_a_command_works_and_is_not_listed() -> None:
    runner = CliRunner()
    assert runner.invoke(cli, ["organize", "--help"]).output.startswith("Usage: cli organize")
    assert "organize" not in runner.invoke(cli, ["--help"]).output


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("find", "Did you mean `holdfast search`?"),
        ("Reveiw", "Did you mean `holdfast review`?"),
        ("qqq", "`holdfast --help` lists the commands."),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(name: str, hint: str) -> None:
    ran = CliRunner().invoke(cli, [name])
    assert ran.exit_code == 2
    assert f"No such command {name!r}. {hint}" in ran.output


def test_the_name_of_an_unknown_command_does_not_steer_the_terminal() -> None:
    assert "\x1b" not in CliRunner().invoke(cli, ["\x1b[2J"]).output


def test_every_command_stands_under_one_heading_of_the_help_page() -> None:
    listed = [name for names in main.LazyGroup.headings.values() for name in names]
    assert sorted(listed) == sorted(main._COMMANDS)
