"""The server's log on stderr: our own messages in full, those of libraries by their place and kind alone.

A library's message may quote what it was working on, and file content never goes to a log.
"""

import logging
import sys

from holdfast.clock import format_timestamp
from holdfast.text.visible import visible


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a trace is reduced to the kind of its error."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        ours = record.name.startswith("holdfast")
        text = visible(record.getMessage()) if ours else f"at {record.filename}:{record.lineno}"
        when = format_timestamp(record.created, "seconds")
        return f"{when} {record.levelname.lower()} {record.name} {text}{' ' + kind if kind else ''}"


def log_to_stderr() -> None:
    """Send every warning, and our own notices, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(logging.INFO)
