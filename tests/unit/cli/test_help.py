"""The help pages: every command in a whole phrase, and examples that a person can copy."""

import json
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from holdfast.cli.main import cli
from holdfast.tools.table import TOOLS
from holdfast.tools.validate import parse_arguments


def commands(command: click.Command, name: str = "holdfast") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, by the words that call them."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from commands(below, f"{name} {each}")


COMMANDS = dict(commands(cli))
GROUPS = [name for name, command in COMMANDS.items() if isinstance(command, click.Group)]


def help_page(name: str) -> str:
    return COMMANDS[name].get_help(click.Context(COMMANDS[name], info_name=name))


def examples() -> Iterator[tuple[str, str]]:
    """Yield the examples of each help page, without what explains them."""
    for name, command in COMMANDS.items():
        for line in (command.epilog or "").splitlines():
            if found := re.search(r"(?:^|\s)holdfast (.+)", line.split("curl")[0]):
                yield name, re.split(r"  +|; |\)", found[1])[0].removesuffix(" …").strip()


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_each_command_in_a_whole_phrase(name: str) -> None:
    page = help_page(name)
    group = COMMANDS[name]
    assert isinstance(group, click.Group)
    assert "..." not in page.replace("]...", "")
    for each in group.list_commands(click.Context(group)):
        assert re.search(rf"^  {each} +\S", page, re.MULTILINE), each


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    assert "Example" in (COMMANDS[name].epilog or ""), name


@pytest.mark.parametrize(("name", "example"), list(examples()))
def test_an_example_is_taken_by_its_command(name: str, example: str) -> None:
    words = shlex.split(example)
    context, command = click.Context(cli, info_name="holdfast"), COMMANDS["holdfast"]
    while isinstance(command, click.Group):
        if words[:1] == [] and command.invoke_without_command:
            break
        if command.name == "changes" and words[:1] != [] and words[0] not in command.commands:
            words = ["list", *words]
        words = words or ["list"]
        _name, below, words = command.resolve_command(context, words)
        assert below is not None, name
        command = below
    options, _rest, _order = command.make_parser(context).parse_args([*words])
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.required:
            assert options[str(parameter.name)], f"{parameter.name} is missing"
    if command.name == "call" and options.get("arguments_text", "-") != "-":
        tool = next(tool for tool in TOOLS if tool.name == options["name"])
        parse_arguments(tool, json.loads(options["arguments_text"]))
