"""`holdfast doctor`: looks at everything a server needs on this machine and says what to do about what is wrong."""

from dataclasses import asdict

import click

from holdfast.cli.commands.config import settings_option
from holdfast.cli.output import json_option, json_text, paragraphs
from holdfast.text.display import escape_invisible

_COLOURS = {"ok": "green", "warning": "yellow", "broken": "red"}


@click.command("doctor")
@settings_option
@json_option
def doctor_command(path: str | None, *, as_json: bool) -> None:
    """Check this machine and the state; the exit code is 1 when something is broken."""
    from holdfast.cli.commands.checks import BROKEN, examine

    findings = examine(path)
    if as_json:
        click.echo(json_text([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<8}", fg=_COLOURS[finding.level])
            click.echo(f"{level}{finding.subject}: {paragraphs(finding.text)}")
            if finding.advice:
                click.echo(f"{'':8}→ {escape_invisible(finding.advice)}")
    if any(finding.level == BROKEN for finding in findings):
        raise SystemExit(1)
