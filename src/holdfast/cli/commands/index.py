"""`holdfast index`: shows how fresh the search index is, and drains, retries or rebuilds it."""

from collections import Counter
from datetime import datetime
from typing import Any

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.output import duration, json_option, json_text, quantity
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.cli.startup import open_state_folder
from holdfast.clock import utc_clock
from holdfast.config.load import load
from holdfast.errors import HoldfastError, InvalidArgument, TimedOut
from holdfast.text.display import display_name, escape_invisible
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control

_EXAMPLES = """\b
Examples:
  holdfast index status              how long writes take to be found, and what waits
  holdfast index drain --timeout 60  wait until everything written is indexed
  holdfast index retry               try failed jobs again
  holdfast index rebuild --meaning   make the vectors that are missing, for example after a change of model"""

_settings_option = click.option("--settings", "settings_path", metavar="FILE", help="The settings file to read.")


@click.group("index", cls=CommandGroup, epilog=_EXAMPLES)
def index_group() -> None:
    """Show and control the index that finds stored files.

    Every write leaves a job. Workers in the server, or `holdfast worker` apart from it, index its words first, so that
    it is found within a second, then its meaning, which takes as long as the model takes.
    """


@index_group.command("status", epilog="Example: holdfast index status --json")
@_settings_option
@json_option
def status(settings_path: str | None, *, as_json: bool) -> None:
    """Print how long the running server takes to index a write, the jobs that wait, and those that failed."""
    index = _status_from_server() or _status_from_database(settings_path)
    click.echo(json_text(index) if as_json else "\n".join(_describe(index)))


@index_group.command("drain", epilog="Example: holdfast index drain --timeout 60")
@click.option("--timeout", default=300.0, show_default=True, metavar="SECONDS", help="Stop after this time.")
@_settings_option
@json_option
def drain(timeout: float, settings_path: str | None, *, as_json: bool) -> None:
    """Index what waits, beside a running server or without one, until nothing is left; exit code 75 at the time limit.

    Jobs that wait for their tenant's key are not waited for.
    """
    from holdfast.wiring.build import open_workers

    remaining = 0
    with (
        open_workers(load(settings_path).settings, open_state_folder().path, 1) as workers,
        explain_interruption(
            lambda: [f"Stopped with {quantity(remaining, 'job')} left; the next drain goes on with them."]
        ),
        progress_bar(is_hidden=as_json) as progress,
    ):
        total = 0

        def report(left: int) -> None:
            nonlocal remaining, total
            remaining, total = left, max(total, left)
            if progress is not None:
                progress(total - left, total, f"{quantity(left, 'job')} left")

        is_done = workers.drain(timeout, report)
        jobs: Counter[str] = Counter()
        for row in workers.status().backlog:
            jobs[row.status] += row.jobs
    left, failed, waiting = jobs["pending"] + jobs["processing"], jobs["failed"], jobs["waiting_credential"]
    if not is_done:
        raise TimedOut(f"The time limit of {timeout:g} s was reached with {quantity(left, 'job')} left.")
    if as_json:
        click.echo(json_text({"left": left, "failed": failed, "waiting_credential": waiting}))
    elif not failed and not waiting:
        click.echo("Everything is indexed.")
    else:
        click.echo(
            f"Nothing more can be done now: {failed} failed, {waiting} waiting for their tenant's key. "
            "See `holdfast index status`."
        )


@index_group.command("retry", epilog="Example: holdfast index retry")
@_settings_option
@json_option
def retry(settings_path: str | None, *, as_json: bool) -> None:
    """Make failed jobs due again. A job that a later change of its file has replaced stays as it is."""
    from holdfast.wiring.build import open_workers

    with open_workers(load(settings_path).settings, open_state_folder().path, 0) as workers:
        count = workers.retry_failed()
    click.echo(json_text({"jobs": count}) if as_json else f"jobs to be tried again: {count}")


@index_group.command("rebuild", epilog="Example: holdfast index rebuild --meaning")
@click.option("--meaning", is_flag=True, help="Only make the vectors that are missing; words stay as they are.")
@_settings_option
@json_option
def rebuild(settings_path: str | None, *, meaning: bool, as_json: bool) -> None:
    """Queue every stored file of every tenant to be indexed again; search goes on meanwhile. `index drain` waits for it."""
    from holdfast.store.model import Stage
    from holdfast.wiring.build import open_workers

    settings = load(settings_path).settings
    if meaning and settings.mcp.files.search.embedder.kind == "none":
        raise InvalidArgument("there is no model to make vectors with: settings.mcp.files.search.embedder.kind is none")
    with open_workers(settings, open_state_folder().path, 0) as workers:
        count = workers.rebuild(Stage.MEANING if meaning else Stage.WORDS)
    click.echo(json_text({"jobs": count}) if as_json else f"files to be indexed: {count}")


def _status_from_server() -> dict[str, Any] | None:
    """Return the status of the running server's index, None when no server is running."""
    try:
        answer = send_control(open_state_folder(), "index")
    except NoServer:
        return None
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    answer.pop("ok", None)
    return dict(answer)


def _status_from_database(settings_path: str | None) -> dict[str, Any]:
    from holdfast.wiring.build import open_workers

    with open_workers(load(settings_path).settings, open_state_folder().path, 0) as workers:
        return workers.status().as_json()


def _describe(index: dict[str, Any]) -> list[str]:
    lines = [f"{name:<10}{_lag(index['lag'][name])}" for name in ("words", "meaning")]
    model, speed = index["embedder"]["model"], index["embedder"]["per_second"]
    lines.append(f"model     {model or 'none: words alone'}{f', {speed:.1f} texts a second' if speed else ''}")
    if "search" in index:
        lines.append(_describe_searches(index["search"]))
    lines += [
        f"jobs      {row['jobs']} {row['status']} for {row['stage']}, the oldest for {_age(row['oldest_at'])}"
        for row in index["backlog"]
    ]
    if not index["backlog"]:
        lines.append("jobs      none: everything is indexed")
    for job in index["failed"]:
        where = (
            f"{display_name(job['project'])} {display_name(job['path'])}"
            if job["path"]
            else f"a file of tenant {job['tenant']}"
        )
        lines.append(
            f"failed    {where}: {escape_invisible(job['error'])} (after {quantity(job['attempts'], 'attempt')})"
        )
    if index["failed"]:
        lines.append("          `holdfast index retry` tries them again.")
    if any(row["status"] == "waiting_credential" for row in index["backlog"]):
        lines.append(
            "          A job in waiting_credential goes on with the next call of its tenant, which brings the key."
        )
    return lines


def _describe_searches(counts: dict[str, int]) -> str:
    """Return how many searches the server answered, and what failed in some of them."""
    parts = {"words": "words_failed", "meaning": "meaning_failed", "the reranker": "reranker_failed"}
    failures = [f"{counts[name]} without {part}" for part, name in parts.items() if counts[name]]
    return f"searches  {counts['searches']}{', ' if failures else ''}{', '.join(failures)}"


def _lag(lag: dict[str, Any]) -> str:
    if not lag["count"]:
        return "nothing was indexed by the server in the last minutes"
    return f"p50 {lag['p50_ms']:.0f} ms, p95 {lag['p95_ms']:.0f} ms ({quantity(lag['count'], 'write')} in the last 5 minutes)"


def _age(at: str) -> str:
    return duration((utc_clock() - datetime.fromisoformat(at)).total_seconds())
