"""`folders/finding` on a temporary folder, in process: the functions that the tools call, without the protocol."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import identity_of, open_roots
from holdfast.folders.service import Folders

_CURSOR = re.compile(r'cursor="([^"]+)"')


def folders_over(*roots: Path, state: Path | None = None, **limits: float) -> Folders:
    """Open roots with the given limits; `state` is the folder that must stay hidden."""
    settings = FolderSettings.model_validate(limits)
    hidden = [identity_of(state.stat())] if state else []
    opened_roots = open_roots([str(root) for root in roots], "/", str(state or roots[0].parent / "no-state"))
    return Folders(Jail(opened_roots, hidden), settings)


def new_call(seconds: float = 60) -> Call:
    """Return a call of the local user."""
    return Call(Caller(LOCAL_USER), timeout_seconds=seconds)


def cursor_in(text: str) -> str | None:
    """Return the cursor that an answer ends with."""
    match = _CURSOR.search(text)
    return match[1] if match else None


def pages(ask: Callable[[str | None], str], at_most: int = 200) -> list[str]:
    """Ask for page after page until there is no more."""
    texts = [ask(None)]
    while (cursor := cursor_in(texts[-1])) is not None:
        assert len(texts) < at_most
        texts.append(ask(cursor))
    return texts


def cancelled_after(seconds: float) -> Call:
    """Return a call that another thread cancels after a while."""
    call = new_call()
    timer = threading.Timer(seconds, call.cancel)
    timer.daemon = True
    timer.start()
    return call
