"""Prepares a command: creates the state folder, loads and checks the settings, and logs to stderr."""

import logging
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from holdfast.clock import format_timestamp
from holdfast.config.environment import state_dir
from holdfast.errors import describe_place
from holdfast.text.display import escape_invisible
from holdfast.transport.state_folder import StateFolder

if TYPE_CHECKING:
    from holdfast.config.load import LoadedSettings

_log = logging.getLogger(__name__)

_FRAMES = 6


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
    """Send every warning, and the information of our own loggers, to stderr; with a folder, stderr is its log.

    An exception that ends a thread, or that nobody can catch, is one line there, too: Python would print its message.
    """
    handler = logging.StreamHandler(sys.stderr) if folder is None else _LogFileHandler(folder)
    handler.setFormatter(_LogFormatter())
    handler.addFilter(RepeatLimit())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(logging.INFO)
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        name = ended.thread.name if ended.thread else "a thread"
        _log.error("fault that ended %s: %s", name, describe_place(ended.exc_value, _FRAMES))


def _log_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if unraisable.exc_value is not None:
        _log.error("fault that nobody could catch: %s", describe_place(unraisable.exc_value, _FRAMES))


_LINES_A_MINUTE = 20
_ERRORS_A_MINUTE = 200
_MINUTE_SECONDS = 60.0


class RepeatLimit(logging.Filter):
    """Lets a place in the code write some lines a minute, so that no client fills the log or keeps the server writing it.

    The next line that goes through has the number of those that were left out as `left_out`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._minutes: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        place = (record.pathname, record.lineno)
        begun_at, count = self._minutes.get(place, (0.0, 0))
        allowed = _ERRORS_A_MINUTE if record.levelno >= logging.ERROR else _LINES_A_MINUTE
        if record.created - begun_at >= _MINUTE_SECONDS:
            record.left_out = max(0, count - allowed)
            begun_at, count = record.created, 0
        self._minutes[place] = begun_at, count + 1
        return count < allowed


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
        left_out = getattr(record, "left_out", 0)
        more = f" ({left_out} more lines like it were left out)" if left_out else ""
        return f"{at} {record.levelname.lower()} {record.name} {text}{error_type}{more}"
