"""`holdfast doctor`: looks at everything a server needs on this machine and says what to do about what is wrong."""

import json
from dataclasses import asdict

import click

from holdfast.cli.config import settings_option

_COLOURS = {"ok": "green", "warning": "yellow", "broken": "red"}


@click.command("doctor")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor_command(path: str | None, *, as_json: bool) -> None:
    """Check this machine and the state; the exit code is 1 when something is broken."""
    from holdfast.cli.checks import BROKEN, examine

    findings = examine(path)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            click.echo(
                f"{click.style(f'{finding.level:<8}', fg=_COLOURS[finding.level])}{finding.subject}: {finding.text}"
            )
            if finding.advice:
                click.echo(f"{'':8}→ {finding.advice}")
    if any(finding.level == BROKEN for finding in findings):
        raise SystemExit(1)
