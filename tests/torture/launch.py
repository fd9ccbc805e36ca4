"""Starts Holdfast with one fault in its store, or none: `python -m tests.torture.launch MUTANT serve …`.

It also says on stderr how each file of the store was opened, so that the harness sees what is really in force.
"""

import sqlite3
import sys

from holdfast.__main__ import main
from holdfast.adapters.sqlite.store.files import TenantFiles
from tests.torture import mutants

OPENING = "torture: a store file was opened with "


def say_how_files_are_opened() -> None:
    """Report the two pragmas that durability rests on, once for each connection."""
    real = TenantFiles._connect

    def connect(self: TenantFiles, name: str) -> sqlite3.Connection:
        connection = real(self, name)
        if name:
            (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
            (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
            print(f"{OPENING}journal_mode={journal} synchronous={synchronous}", file=sys.stderr, flush=True)
        return connection

    TenantFiles._connect = connect  # type: ignore[method-assign]


if __name__ == "__main__":
    mutants.apply(sys.argv[1])
    say_how_files_are_opened()
    sys.argv = ["holdfast", *sys.argv[2:]]
    main()
