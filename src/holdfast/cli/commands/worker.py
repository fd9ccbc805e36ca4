"""`holdfast worker`: index workers in a process of their own, for a server whose settings leave the work to them."""

import logging
import signal
import threading

import click

from holdfast.cli.log import log_to_stderr
from holdfast.config.environment import state_dir
from holdfast.config.load import load
from holdfast.transport.state_folder import StateFolder

_log = logging.getLogger(__name__)

_EPILOG = """\b
Examples:
  holdfast worker                      index what servers of this deployment write
  DATABASE_URL=… holdfast worker --lanes 4

\b
The servers leave it the work when their settings say so:
  settings: {mcp: {files: {index: {workers: 0}}}}"""


@click.command("worker", epilog=_EPILOG)
@click.option("--lanes", default=2, show_default=True, type=click.IntRange(1, 64), help="Embeddings at once.")
@click.option("--settings", "settings_path", metavar="FILE", help="The settings file to read.")
def worker_command(lanes: int, settings_path: str | None) -> None:
    """Index stored files until Ctrl-C, beside servers that share the database; any number of workers may run.

    One that is killed loses nothing: its jobs are taken up again within a minute. With a model behind HTTP and tenants
    that bring their own keys it needs the servers' REDIS_URL and security.encryption_keks.
    """
    from holdfast.wiring import open_workers

    log_to_stderr()
    settings = load(settings_path).settings
    folder = StateFolder(state_dir())
    folder.prepare()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_args: ended.set())
    with open_workers(settings, folder.path, lanes, needs_keys=True) as workers:
        workers.start()
        _log.info("the worker is running, with %d lanes for meaning", lanes)
        ended.wait()
    _log.info("the worker has ended")
