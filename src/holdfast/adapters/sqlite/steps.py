"""Brings an SQLite file to its newest shape, step by step, from any number of processes at once."""

import sqlite3
from collections.abc import Sequence


def take_steps(connection: sqlite3.Connection, steps: Sequence[str]) -> None:
    """Take the steps that are missing; each is one transaction, and a second run changes nothing."""
    for number in range(_taken(connection) + 1, len(steps) + 1):
        _take(connection, number, steps[number - 1])


def _take(connection: sqlite3.Connection, number: int, step: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _taken(connection) < number:
            for statement in step.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _taken(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    return int(number)
