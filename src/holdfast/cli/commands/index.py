"""`holdfast index`: how fresh the search index is, and what to do about jobs that wait or failed."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import click

from holdfast.cli.output import json_option, json_text
from holdfast.config.environment import state_dir
from holdfast.config.load import load
from holdfast.errors import HoldfastError, InvalidArgument, TimedOut
from holdfast.text.names import shown
from holdfast.text.visible import visible
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control
from holdfast.transport.state_folder import StateFolder

_EXAMPLES = """\b
Examples:
  holdfast index status              how long writes take to be found, and what waits
  holdfast index drain --timeout 60  wait until everything written is indexed
  holdfast index retry               try failed jobs again
  holdfast index rebuild --meaning   make the vectors that are missing, say after a change of the model"""

_settings_option = click.option("--settings", "settings_path", metavar="FILE", help="The settings file to read.")


@click.group("index", epilog=_EXAMPLES)
def index_group() -> None:
    """See and steer what keeps the search of stored files up to date.

    Every write leaves a job. Workers in the server, or `holdfast worker` apart from it, index its words first, so that
    it is found within a second, then its meaning, which takes as long as the model takes.
    """


@index_group.command("status", epilog="Example: holdfast index status --json")
@_settings_option
@json_option
def status(settings_path: str | None, *, as_json: bool) -> None:
    """Print how long writes took to be found (of the running server), the jobs that wait, and those that failed."""
    found = _of_server() or _of_database(settings_path)
    if as_json:
        click.echo(json_text(found))
        return
    for line in _described(found):
        click.echo(line)


@index_group.command("drain", epilog="Example: holdfast index drain --timeout 60")
@click.option("--timeout", default=300.0, show_default=True, metavar="SECONDS", help="How long to go on at most.")
@_settings_option
@json_option
def drain(timeout: float, settings_path: str | None, *, as_json: bool) -> None:
    """Index what waits, beside a running server or without one, until nothing is left; exit code 75 when time runs out.

    Jobs that wait for their tenant's key are not waited for.
    """
    from holdfast.wiring import open_workers

    with open_workers(load(settings_path).settings, _folder(), 1) as workers:
        is_done = workers.drain(timeout)
        jobs: Counter[str] = Counter()
        for one in workers.status().backlog:
            jobs[one.status] += one.jobs
    left, failed, waiting = jobs["pending"] + jobs["processing"], jobs["failed"], jobs["waiting_credential"]
    if not is_done:
        raise TimedOut(f"After {timeout:g} s there are still {left} jobs.")
    found = {"left": left, "failed": failed, "waiting_credential": waiting}
    click.echo(json_text(found) if as_json else _drained(failed, waiting))


@index_group.command("retry", epilog="Example: holdfast index retry")
@_settings_option
@json_option
def retry(settings_path: str | None, *, as_json: bool) -> None:
    """Make failed jobs due again. A job that a later change of its file has replaced stays as it is."""
    from holdfast.wiring import open_workers

    with open_workers(load(settings_path).settings, _folder(), 0) as workers:
        count = workers.retry_failed()
    click.echo(json_text({"jobs": count}) if as_json else f"jobs to be tried again: {count}")


@index_group.command("rebuild", epilog="Example: holdfast index rebuild --meaning")
@click.option("--meaning", is_flag=True, help="Only make the vectors that are missing; words stay as they are.")
@_settings_option
@json_option
def rebuild(settings_path: str | None, *, meaning: bool, as_json: bool) -> None:
    """Queue every stored file of every tenant to be indexed anew; search goes on meanwhile. `index drain` waits for it."""
    from holdfast.store.model import Stage
    from holdfast.wiring import open_workers

    settings = load(settings_path).settings
    if meaning and settings.mcp.files.search.embedder.kind == "none":
        raise InvalidArgument("there is no model to make vectors with: settings.mcp.files.search.embedder.kind is none")
    with open_workers(settings, _folder(), 0) as workers:
        count = workers.rebuild(Stage.MEANING if meaning else Stage.WORDS)
    click.echo(json_text({"jobs": count}) if as_json else f"files to be indexed: {count}")


def _drained(failed: int, waiting: int) -> str:
    if not failed and not waiting:
        return "Everything is indexed."
    return (
        f"Nothing more can be done now. Jobs that failed: {failed}; that wait for their tenant's key: {waiting}. "
        "`holdfast index status` tells more."
    )


def _folder() -> str:
    folder = StateFolder(state_dir())
    folder.prepare()
    return folder.path


def _of_server() -> dict[str, Any] | None:
    """Return what a running server says, None when none is."""
    try:
        answer = send_control(StateFolder(_folder()), "index")
    except NoServer:
        return None
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    answer.pop("ok", None)
    return dict(answer)


def _of_database(settings_path: str | None) -> dict[str, Any]:
    from holdfast.wiring import open_workers

    with open_workers(load(settings_path).settings, _folder(), 0) as workers:
        return workers.status().as_json()


def _described(found: dict[str, Any]) -> list[str]:
    lines = [f"{name:<10}{_lag(found['lag'][name])}" for name in ("words", "meaning")]
    model, speed = found["embedder"]["model"], found["embedder"]["per_second"]
    lines.append(f"model     {model or 'none: words alone'}{f', {speed:.1f} texts a second' if speed else ''}")
    lines += [
        f"jobs      {one['jobs']} {one['status']} for {one['stage']}, the oldest for {_age(one['oldest_at'])}"
        for one in found["backlog"]
    ]
    if not found["backlog"]:
        lines.append("jobs      none: everything is indexed")
    for one in found["failed"]:
        where = f"{shown(one['project'])} {shown(one['path'])}" if one["path"] else f"a file of tenant {one['tenant']}"
        attempts = "1 attempt" if one["attempts"] == 1 else f"{one['attempts']} attempts"
        lines.append(f"failed    {where}: {visible(one['error'])} (after {attempts})")
    if found["failed"]:
        lines.append("          `holdfast index retry` tries them again.")
    if any(one["status"] == "waiting_credential" for one in found["backlog"]):
        lines.append(
            "          What is waiting_credential goes on with the next call of its tenant, who brings the key."
        )
    return lines


def _lag(lag: dict[str, Any]) -> str:
    if not lag["count"]:
        return "nothing was indexed by the server in the last minutes"
    return f"found after {lag['p50_ms']:.0f} ms, 95 of 100 within {lag['p95_ms']:.0f} ms ({lag['count']} lately)"


def _age(moment: str) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    return f"{max(0.0, seconds):.0f} s"
