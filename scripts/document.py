"""Writes the reference pages, the module page, the API's document and the list of pure modules from the code."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from holdfast import errors
from holdfast.adapters.prometheus import PrometheusMetrics
from holdfast.auth.context import CallerKind
from holdfast.cli.main import cli
from holdfast.config.describe import setting_rows
from holdfast.config.environment import SECRET_VARIABLES, VARIABLES
from holdfast.console.openapi import openapi_document
from holdfast.tools.registry import Tool
from holdfast.tools.table import TOOLS

TOP = Path(__file__).resolve().parents[1]
PACKAGE = TOP / "src" / "holdfast"
NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def main() -> None:
    """Write every page anew."""
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def pages() -> dict[Path, str]:
    """Return every written file with the text it must have."""
    reference = TOP / "docs" / "reference"
    project = TOP / "pyproject.toml"
    return {
        reference / "tools.md": tools_page(),
        reference / "settings.md": settings_page(),
        reference / "errors.md": errors_page(),
        reference / "commands.md": commands_page(),
        reference / "metrics.md": metrics_page(),
        reference / "modules.md": modules_page(),
        TOP / "web" / "openapi.json": openapi_page(),
        project: with_pure_modules(project.read_text()),
    }


_PANELS = (
    "They are listed, for apps alone, to clients that declare `io.modelcontextprotocol/ui`, with `review.channels.panel` on. What "
    "decides takes a token that the client gives to its panel and not to its model."
)


def tools_page() -> str:
    """Return the page of every tool, as agents see it, those of the person and those of panels."""
    agents = [tool for tool in TOOLS if tool.audience is CallerKind.AGENT]
    persons = [tool for tool in TOOLS if tool.audience is CallerKind.PERSON]
    intro = (
        f"{sum(tool.listed for tool in agents)} tools are listed to agents. The others can be called by name, and are "
        "listed with `settings.folders.compat: true`. An error is a tool result with `code`, `message` and `retryable`: "
        "see [errors](errors.md)."
    )
    parts = [NOTE, "# Tools", intro]
    parts += [_tool(tool) for tool in agents]
    parts += ["# Tools of the person", "No agent can list or call these; the commands and the console do."]
    parts += [_tool(tool) for tool in persons]
    parts += ["# Tools of panels", _PANELS]
    parts += [_tool(tool) for tool in TOOLS if tool.audience is CallerKind.PANEL]
    return "\n\n".join(parts) + "\n"


def settings_page() -> str:
    """Return the page of every setting and every environment variable."""
    lines = [
        NOTE,
        "",
        "# Settings",
        "",
        "One YAML file, whose one top key is `settings`. It is named by `--settings FILE`, else by `HOLDFAST_SETTINGS`, else it is",
        "`settings.yml` in the state folder. Unknown keys and wrong types are refused before anything starts;",
        "`holdfast config check` checks a file, `holdfast config show` prints every value with its source.",
        "",
        "Two names are easily confused: `settings.mcp.files` configures the project store, and the group `files` of",
        "`settings.mcp.groups` holds the tools of local folders; the tools of the project store are the group `store`.",
        "",
        "```yaml",
        "settings:",
        "  server:",
        "    port: 8200",
        "  mcp:",
        "    tools:",
        "      delete_file:",
        "        enabled: false",
        "```",
        "",
        "| setting | expects | default | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{row.name}` | {row.kind} | {_default(row.default)} | {_cell(row.meaning)} |" for row in setting_rows()
    ]
    lines += ["", "## Environment", "", "Variables place a deployment; no setting can be given by one.", ""]
    lines += ["| variable | meaning |", "|---|---|"]
    lines += [
        f"| `{name}` | {_cell(meaning)}{' Shown masked.' if name in SECRET_VARIABLES else ''} |"
        for name, meaning in VARIABLES.items()
    ]
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return the page of every error code."""
    lines = [
        NOTE,
        "",
        "# Errors",
        "",
        "A tool that fails answers `{code, message, retryable}` and nothing has changed, unless it says so.",
    ]
    lines += ["", "| code | retryable | exit status | meaning |", "|---|---|---|---|"]
    listed_codes = set()
    for kind in sorted(_error_classes(), key=lambda kind: kind.code):
        if kind.code not in listed_codes:
            listed_codes.add(kind.code)
            retry = "yes" if kind.retryable else "no"
            lines.append(
                f"| `{kind.code}` | {retry} | {kind.exit_status} | {_cell((kind.__doc__ or '').splitlines()[0])} |"
            )
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Return the page of every command, as `--help` prints it."""
    parts = [NOTE, "# Commands", "`holdfast` and `python -m holdfast` are the same program."]
    parts += [
        f"## {' '.join(path)}\n\n```text\n{command.get_help(context).strip()}\n```"
        for path, command, context in commands(cli)
    ]
    return "\n\n".join(parts) + "\n"


def commands(
    command: click.Command, parent: click.Context | None = None, path: tuple[str, ...] = ("holdfast",)
) -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
    """Return every command beneath one, with its full name."""
    context = click.Context(command, parent=parent, info_name=path[-1], max_content_width=100, terminal_width=100)
    yield path, command, context
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            subcommand = command.get_command(context, name)
            if subcommand is not None and not subcommand.hidden:
                yield from commands(subcommand, context, (*path, name))


def metrics_page() -> str:
    """Return the page of every figure at /metrics."""
    lines = [
        NOTE,
        "",
        "# Metrics",
        "",
        "What `/metrics` answers with the key in `metrics.token`: see [how to observe a server](../how-to/observe.md).",
        "A name that ends in `_total` only grows until the server ends. A histogram has the series `_bucket`, `_sum` and `_count`.",
        "No label holds a tenant, a path, a project or anything else that a caller chose. Names that begin with `process_` are",
        "those of every program with Prometheus' Python client.",
        "",
        "| name | type | labels | meaning | buckets |",
        "|---|---|---|---|---|",
    ]
    for figure in sorted(PrometheusMetrics().figures):
        labels = ", ".join(f"`{label}`" for label in figure.labels)
        buckets = ", ".join(f"{bound:g}" for bound in figure.buckets)
        lines.append(f"| `{figure.name}` | {figure.kind} | {labels} | {_cell(figure.help)} | {buckets} |")
    return "\n".join(lines) + "\n"


def openapi_page() -> str:
    """Return the document of the console's API, from which the types of its pages are made."""
    return json.dumps(openapi_document(TOOLS), indent=2, ensure_ascii=False) + "\n"


def modules_page() -> str:
    """Return the page of every module and the first line of its docstring."""
    intro = "Every module below `src/holdfast/`, with the first line of its docstring. [ARCHITECTURE.md](../../ARCHITECTURE.md)"
    lines = [NOTE, "", "# Modules", "", f"{intro} explains how they work together.", ""]
    lines += ["| module | what it does |", "|---|---|"]
    lines += [
        f"| `{path.relative_to(PACKAGE).as_posix()}` | {_cell(_first_line(path))} |"
        for path in sorted(PACKAGE.rglob("*.py"))
    ]
    return "\n".join(lines) + "\n"


def with_pure_modules(project: str) -> str:
    """Return pyproject.toml with every module that says it is pure under the contract of that name."""
    pure = [path for path in sorted(PACKAGE.rglob("*.py")) if _first_line(path).startswith("Pure:")]
    names = ["holdfast." + path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in pure]
    listed = "".join(f'    "{name}",\n' for name in names)
    return re.sub(
        r'(id = "pure"\n(?:.*\n){2}source_modules = \[\n)(?:    .*\n)*', lambda match: match[1] + listed, project
    )


def _tool(tool: Tool) -> str:
    facts = f"Group `{tool.group}` · {tool.effect.value} · {'listed' if tool.listed else 'listed with `compat`'}"
    facts += " · structured answer" if tool.output else " · text answer"
    parts = [f"## {tool.name}", tool.description, facts]
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    if properties:
        required = tool.input_schema.get("required", [])
        table = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
        table += [
            f"| `{name}` | {_type(schema)} | {'required' if name in required else _default(schema.get('default'))} "
            f"| {_cell(schema.get('description', ''))} |"
            for name, schema in properties.items()
        ]
        parts.append("\n".join(table))
    return "\n\n".join(parts)


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and "properties" in schema:
        return "object: " + ", ".join(f"`{name}`" for name in schema["properties"])
    return str(schema.get("type", "any"))


def _error_classes() -> Iterator[type[errors.HoldfastError]]:
    """Return every class that an error can be raised as; the base is none of them."""
    classes = list(errors.HoldfastError.__subclasses__())
    while classes:
        kind = classes.pop()
        yield kind
        classes.extend(kind.__subclasses__())


def _default(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int):
        return f"`{value:_}`" if value >= 10_000 else f"`{value}`"
    return "none" if value == [] else f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
