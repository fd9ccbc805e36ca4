"""Serves this folder with the project store on a PostgreSQL of its own, until Ctrl-C ends both.

PostgreSQL comes from the packages of the tests; its data lies in a temporary folder and goes with it.
"""

import os
import signal
import subprocess
import sys
from types import FrameType

from tests.helpers.databases import postgres_server


def main() -> int:
    """Start PostgreSQL, then the server; end them in the other order and return the server's exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with postgres_server(durable=True) as url:
            print(f"DATABASE_URL={url}", file=sys.stderr, flush=True)
            return _served(url)
    except KeyboardInterrupt:
        return 130


def _served(url: str) -> int:
    command = [sys.executable, "-m", "holdfast", "serve", ".", *sys.argv[1:]]
    # Ctrl-C reaches every process of a terminal's group: in a session of its own the server hears it once, from here.
    server = subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url}, start_new_session=True)

    def end(_number: int, _frame: FrameType | None) -> None:
        server.send_signal(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
