"""`holdfast worker` and `holdfast migrate`: for deployments whose servers share a database."""

import logging
import signal
import threading
from contextlib import ExitStack

import click

from holdfast.cli.output import json_option, json_text
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.cli.startup import log_to_stderr, open_state_folder
from holdfast.config.load import load
from holdfast.secret import Secret
from holdfast.transport.state_folder import METRICS_TOKEN

_log = logging.getLogger(__name__)

_WORKER_EPILOG = """\b
Examples:
  holdfast worker                      index what servers of this deployment write
  DATABASE_URL=… holdfast worker --lanes 4

\b
Servers leave the work to it when their settings say so:
  settings: {mcp: {files: {index: {workers: 0}}}}"""


@click.command("worker", epilog=_WORKER_EPILOG)
@click.option(
    "--lanes", default=2, show_default=True, type=click.IntRange(1, 64), help="How many threads embed at once."
)
@click.option("--settings", "settings_path", metavar="FILE", help="The settings file to read.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve /metrics on this port; not served without it.",
)
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address of --metrics-port.")
def worker_command(lanes: int, settings_path: str | None, metrics_port: int | None, metrics_host: str) -> None:
    """Index stored files until Ctrl-C, beside servers that share the database; any number of workers may run.

    One that is killed loses nothing: its jobs are taken up again within a minute. With a model behind HTTP and tenants
    that bring their own keys it needs the servers' REDIS_URL and security.encryption_keks. What it measures it shows at
    /metrics itself, with the key in metrics.token of its state folder.
    """
    from holdfast.wiring.build import open_metrics, open_workers

    log_to_stderr()
    settings = load(settings_path).settings
    folder = open_state_folder()
    ended = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, lambda *_args: ended.set())
    metrics = open_metrics(settings) if metrics_port is not None else None
    with ExitStack() as stack:
        if metrics is not None and metrics_port is not None:
            from holdfast.transport.doors.http_server import base_url, listen_on
            from holdfast.transport.doors.metrics_door import serve_metrics

            is_protected = settings.server.is_protected
            listener = stack.enter_context(listen_on(metrics_host, metrics_port, is_protected=is_protected))
            token = Secret(folder.key(METRICS_TOKEN))
            stack.enter_context(serve_metrics(listener, token, settings.server, metrics))
            _log.info("metrics are at %s/metrics", base_url(listener, has_tls=settings.server.tls.is_on))
        workers = stack.enter_context(open_workers(settings, folder.path, lanes, metrics, needs_keys=True))
        workers.start()
        _log.info("the worker is running; lanes for meaning: %d", lanes)
        ended.wait()
    _log.info("the worker has ended")


@click.command("migrate", epilog="Example: DATABASE_URL=postgresql://owner@host/holdfast holdfast migrate")
@json_option
def migrate_command(*, as_json: bool) -> None:
    """Migrate the database of DATABASE_URL to the current schema, and print the migrations that ran.

    A server does the same when it starts; use this when the server's role may not change tables, or to migrate in
    advance. It can run at any time, beside running servers; a second run does nothing. SQLite files need no migration.
    """
    from holdfast.wiring.probes import migrate

    def explain() -> list[str]:
        return ["Stopped: the database is as it was, because migrations run all together or not at all. Run it again."]

    with explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
        steps = migrate(lambda done, total, name: progress(done, total, name) if progress else None)
    if as_json:
        click.echo(json_text({"steps": steps}))
    elif not steps:
        click.echo("Nothing to do: the database schema is up to date.")
    for step in [] if as_json else steps:
        click.echo(f"applied: {step}")
