"""Named statements of search on a store file, and the words that stand for a scope in its full-text index."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.adapters.statements import named_statements
from holdfast.errors import ResourceBusy
from holdfast.search.model import Scope
from holdfast.search.ports import IndexDamaged, IndexFault
from holdfast.store.paths import list_ancestors

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

STATEMENTS = named_statements(__package__, "search.sql")


def run(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


@contextmanager
def told() -> Iterator[None]:
    """Turn what goes wrong in the database into IndexFault; its text may hold values and is dropped."""
    try:
        yield
    except (sqlite3.Error, ResourceBusy) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise IndexDamaged("the file of the index is damaged") from None
        raise IndexFault(f"the store file could not be searched or indexed ({type(error).__name__})") from None


def within(tenant: str, scope: Scope) -> dict[str, Any]:
    """Return the parameters of a scope."""
    return {"apikey_hash": tenant, "project": scope.project, "low": scope.span.low, "high": scope.span.high}


def listed(values: Sequence[object]) -> str:
    """Return values as one parameter."""
    return json.dumps(list(values))


def scope_words(project: str, path: str) -> str:
    """Return a word for the project and one for each directory that a file is in."""
    return " ".join(_word(project, directory) for directory in ["", *list_ancestors(path)])


def scope_word(scope: Scope) -> str | None:
    """Return the word that every file of a scope has, None when the scope is everything."""
    if scope.project is None:
        return None
    directory = scope.span.low.rpartition("/")[0]
    return _word(scope.project, directory if scope.span.high.startswith(directory + "/") else "")


def _word(project: str, directory: str) -> str:
    return "s" + hashlib.blake2b(f"{project}\0{directory}".encode(), digest_size=8).hexdigest()
