"""Pure: a change of paths that a person decides on, as they are shown it and as it is recognised when it is made."""

from dataclasses import dataclass

from holdfast.changes.model import ChangeKind


@dataclass(frozen=True, slots=True)
class PathChange:
    """A change that proposes no text: a move, a deletion, new directories, or an undo.

    `statement` is what a person is shown of it, its first line in one sentence. `fingerprint` identifies what is there,
    `directory` and `dest_directory` the directories that hold source and destination. `dest_root` is the allowed
    directory of the destination, `undoes` the change that an undo takes back.
    """

    kind: ChangeKind
    path: str
    root: str
    statement: str
    fingerprint: str
    directory: str | None = None
    dest_path: str | None = None
    dest_root: str | None = None
    dest_directory: str | None = None
    undoes: str | None = None

    @property
    def summary(self) -> str:
        """Return the first line of the statement."""
        return self.statement.partition("\n")[0]
