"""Notes of plans in state.db: they come back as they were saved, and those of an earlier version stay readable."""

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from holdfast.adapters.sqlite.state.plan_notes import open_plan_notes
from holdfast.organiser.model import DestinationFolder, Measures, Notes, SkippedFile, SkipReason, UncertainFile

NOTES = Notes(
    decider="words",
    folder="/r",
    destinations=(DestinationFolder("Bills", "Bills", True, 3),),
    uncertain=(UncertainFile("a.txt", "hash", "Bills", 0.4, "Who knows.", "1.2.3"),),
    uncertain_count=7,
    skipped=(SkippedFile("b", SkipReason.UNREADABLE, "denied"),),
    measures=Measures(5, 1, 100, 10, 4, {SkipReason.UNREADABLE: 1}),
    decisions={"c.txt": None, "d.txt": "Bills"},
    agent_decisions=frozenset({"c.txt"}),
    include_subfolders=True,
    remark="So it is.",
    made_by="command",
)
STORED = {
    "decider": "words",
    "folder": "/r",
    "shelves": [{"name": "Bills", "folder": "Bills", "is_new": True, "known": 3}],
    "doubts": [
        {
            "relative": "a.txt",
            "file_hash": "hash",
            "category": "Bills",
            "confidence": 0.4,
            "reasoning": "Who knows.",
            "look": "1.2.3",
        }
    ],
    "doubted": 7,
    "skips": [["b", "cannot be read", "denied"]],
    "measures": {
        "files": 5,
        "cache_hits": 1,
        "size_bytes": 100,
        "bytes_read": 10,
        "kept": 4,
        "skipped": {"cannot be read": 1},
    },
    "decisions": {"c.txt": None, "d.txt": "Bills"},
    "decided_by_agent": ["c.txt"],
    "deep": True,
    "remark": "So it is.",
    "maker": "command",
}
"""The same notes as every version stores them."""


def test_notes_are_stored_in_the_format_of_earlier_versions_and_come_back(tmp_path: Path) -> None:
    notes = open_plan_notes(str(tmp_path))
    notes.save("p1", NOTES)
    assert notes.load("p1") == NOTES
    notes.close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        ((stored,),) = database.execute("SELECT notes_json FROM plan_notes").fetchall()
    assert json.loads(zlib.decompress(stored)) == STORED


def test_notes_of_a_release_that_did_not_store_who_decided_can_be_read(tmp_path: Path) -> None:
    notes = open_plan_notes(str(tmp_path))
    notes.save("p1", NOTES)
    older = {name: value for name, value in STORED.items() if name != "decided_by_agent"}
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as database:
        database.execute("UPDATE plan_notes SET notes_json = ?", [zlib.compress(json.dumps(older).encode())])
    loaded = notes.load("p1")
    notes.close()
    assert loaded is not None
    assert (loaded.decisions, loaded.agent_decisions) == (NOTES.decisions, frozenset())
