"""Prepares a command: creates the state folder, loads and checks the settings, and logs to stderr."""

import logging
import sys
from typing import TYPE_CHECKING, TextIO

from holdfast.clock import format_timestamp
from holdfast.config.environment import state_dir
from holdfast.text.display import escape_invisible
from holdfast.transport.state_folder import StateFolder

if TYPE_CHECKING:
    from holdfast.config.load import LoadedSettings


def open_state_folder() -> StateFolder:
    """Return the user's state folder, made if it was missing. Raises StateFault when it cannot be used."""
    folder = StateFolder(state_dir())
    folder.prepare()
    return folder


def load_settings(path: str | None) -> "LoadedSettings":
    """Load the settings and check the names and the rules in them. Raises InvalidArgument, naming every problem."""
    from holdfast.config.load import check_names, load
    from holdfast.folders.access.policy_rules import build_rules
    from holdfast.tools.registry import Group
    from holdfast.tools.table import TOOLS

    loaded = load(path)
    check_names(loaded, [tool.name for tool in TOOLS], list(Group))
    build_rules(loaded.settings.policy, None)
    return loaded


def log_to_stderr(folder: StateFolder | None = None) -> None:
    """Send every warning, and the information of our own loggers, to stderr; with a folder, stderr is its log."""
    handler = logging.StreamHandler(sys.stderr) if folder is None else _LogFileHandler(folder)
    handler.setFormatter(_LogFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(logging.INFO)


class _LogFileHandler(logging.StreamHandler[TextIO]):
    """Writes to stderr, which is the log of a state folder, and keeps that log within its size."""

    def __init__(self, folder: StateFolder) -> None:
        super().__init__(sys.stderr)
        self._folder = folder

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        super().emit(record)
        self._folder.renew_log()


class _LogFormatter(logging.Formatter):
    """Formats our own messages in full, those of libraries by place and error type alone.

    A library's message may quote what it was working on, and file content never goes to a log.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a traceback is reduced to the type of its error."""
        error_type = f" {record.exc_info[0].__name__}" if record.exc_info and record.exc_info[0] else ""
        is_ours = record.name.startswith("holdfast")
        text = escape_invisible(record.getMessage()) if is_ours else f"at {record.filename}:{record.lineno}"
        at = format_timestamp(record.created, "seconds")
        return f"{at} {record.levelname.lower()} {record.name} {text}{error_type}"
