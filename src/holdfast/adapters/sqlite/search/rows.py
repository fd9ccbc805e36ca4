"""Runs named statements of search on a store file, and makes the words that mark a scope in its full-text index."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.adapters.statements import named_statements
from holdfast.errors import ResourceBusy
from holdfast.search.model import Scope
from holdfast.search.ports import IndexDamaged, IndexFault
from holdfast.store.paths import list_ancestors

_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

STATEMENTS = named_statements(__package__, "search.sql")


def run(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise IndexFault for an error of the database, without its message, which may hold content of files."""
    try:
        yield
    except (sqlite3.Error, ResourceBusy) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES:
            raise IndexDamaged("the file of the index is damaged") from None
        raise IndexFault(f"the store file could not be searched or indexed ({type(error).__name__})") from None


def scope_words(project: str, path: str) -> str:
    """Return one word for the project of a file, and one for each directory that it is in."""
    return " ".join(_hash_word(project, directory) for directory in ["", *list_ancestors(path)])


def scope_word(scope: Scope) -> str | None:
    """Return the word that every file of a scope has; None when the scope is everything."""
    if scope.project is None:
        return None
    directory = scope.span.low.rpartition("/")[0]
    return _hash_word(scope.project, directory if scope.span.high.startswith(directory + "/") else "")


def _hash_word(project: str, directory: str) -> str:
    return "s" + hashlib.blake2b(f"{project}\0{directory}".encode(), digest_size=8).hexdigest()
