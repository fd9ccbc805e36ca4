"""`folders/reading` on a temporary folder, in process: the functions that the tools call, without the protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.config.settings import FolderSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import open_roots
from holdfast.folders.reading.read import LineSelection, ReadPosition, TextPiece, TextSource, open_source, read_lines


class Reader:
    """Reads files of one root; `tokens` is the budget of each piece."""

    def __init__(self, root: Path, state: Path, tokens: int = 25_000) -> None:
        self.root, self.tokens = root, tokens
        self.settings = FolderSettings()
        self.jail = Jail(open_roots([str(root)], str(root), str(state)))
        self.call = Call(Caller(LOCAL_USER), timeout_seconds=60)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file and return its path."""
        path = self.root / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @contextmanager
    def source(self, name: str) -> Iterator[TextSource]:
        """Open a file as text."""
        with self.jail.open_file(name) as file:
            yield open_source(self.call, file, self.settings)

    def piece(
        self, name: str, selection: LineSelection | None = None, position: ReadPosition | None = None
    ) -> TextPiece:
        """Read one piece."""
        with self.source(name) as source:
            return read_lines(self.call, source, selection or LineSelection(), self.tokens, position)

    def text(self, name: str, selection: LineSelection | None = None) -> str:
        """Read the first piece and return its text."""
        return self.piece(name, selection).text

    def pieces(self, name: str, selection: LineSelection | None = None) -> list[str]:
        """Read piece after piece until there is no more."""
        piece = self.piece(name, selection)
        texts = [piece.text]
        while piece.rest is not None:
            piece = self.piece(name, selection, ReadPosition.of(piece.rest.state()))
            texts.append(piece.text)
        return texts
