"""The tools that read text: one file, many files and slices of them, within one token budget per answer."""

import json
import secrets
from hashlib import sha256

from pydantic import Field

from holdfast.app import App
from holdfast.call import Call
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.folders.finding.path_hints import MAX_HINTS, add_path_hint
from holdfast.folders.reading.read import LineSelection, ReadPosition, TextPiece, TextSource, open_source, read_lines
from holdfast.folders.service import Folders
from holdfast.text.budget import decode_cursor, encode_cursor, estimate_tokens, invalid_cursor
from holdfast.text.display import display_name
from holdfast.tools.answer import Answer, Text
from holdfast.tools.registry import Arguments, Effect, Group, tool

RESERVED_TOKENS = 200
"""Kept free in every answer for headers and notes."""

MAX_FILES = 100


class ReadTextFile(Arguments):
    """Arguments of read_text_file."""

    path: str = Field(description="Path of the file to read.")
    head: int | None = Field(None, description="Read only the first N lines.")
    tail: int | None = Field(None, description="Read only the last N lines.")
    cursor: str | None = Field(None, description="Cursor of a cut answer, to read on from there.")


class FileSlice(Arguments):
    """Which lines of a file."""

    head: int | None = Field(None, description="Only the first N lines.")
    tail: int | None = Field(None, description="Only the last N lines.")
    start_line: int | None = Field(None, description="First line to read, counted from 1.")
    end_line: int | None = Field(None, description="Last line to read, included.")
    read_to_next_pattern: str | None = Field(
        None, description="Regular expression; stop before the next matching line."
    )

    def selection(self) -> LineSelection:
        """Return the slice in the words of the reader."""
        return LineSelection(self.head, self.tail, self.start_line, self.end_line, self.read_to_next_pattern)


class FileRead(FileSlice):
    """One file to read, whole, a slice, or several."""

    path: str = Field(description="Path of the file to read.")
    reads: list[FileSlice] | None = Field(None, max_length=100, description="Several slices of this file, in order.")

    def selections(self) -> list[LineSelection]:
        """Return the slices in order. InvalidArgument when there is both one slice and several."""
        if self.reads is None:
            return [self.selection()]
        if self.selection() != LineSelection():
            raise InvalidArgument("Give the slice either beside path or in reads, not both.")
        return [each.selection() for each in self.reads]


class ReadFiles(Arguments):
    """Arguments of read_files."""

    files: list[FileRead] = Field(min_length=1, max_length=MAX_FILES, description="The files to read, in order.")
    cursor: str | None = Field(None, description="Cursor of a cut answer; repeat the same files with it.")


class ReadMultipleFiles(Arguments):
    """Arguments of read_multiple_files."""

    paths: list[str] = Field(min_length=1, max_length=MAX_FILES, description="Paths of the files to read.")


def answer_budget(folders: Folders) -> int:
    """Return the tokens that an answer's text may use, headers and notes left out."""
    return folders.settings.max_answer_tokens - RESERVED_TOKENS


@tool("read_text_file", group=Group.FILES, effect=Effect.READ, title="On disk: read a text file")
def read_text_file(app: App, call: Call, args: ReadTextFile) -> Answer:
    """On disk: read one file as text, in any encoding; of PDF, DOCX, XLSX and PPTX the extracted text."""
    folders = app.folders_of(call.caller)
    with folders.jail.open_file(args.path) as file:
        source = open_source(call, file, folders.settings)
        position = _position(args.cursor, source)
        piece = read_lines(call, source, LineSelection(args.head, args.tail), answer_budget(folders), position)
    notes = _notes(source, piece)
    if piece.rest is not None:
        notes.append(_cut_note(source, piece, encode_cursor({"v": source.version, "p": piece.rest.state()})))
    blocks = (Text(piece.text), *([Text(f"[{' '.join(notes)}]")] if notes else []))
    return Answer(blocks, is_cut=piece.rest is not None)


def _position(cursor: str | None, source: TextSource) -> ReadPosition | None:
    if cursor is None:
        return None
    state = decode_cursor(cursor)
    if "v" not in state or "p" not in state:
        raise invalid_cursor()
    source.check_version(state["v"])
    return ReadPosition.of(state["p"])


def _notes(source: TextSource, piece: TextPiece) -> list[str]:
    notes = [f"{source.note}."] if source.note else []
    if not piece.encoding.is_plain_utf8:
        notes.append(f"Encoding: {piece.encoding.name}.")
    return [*notes, *piece.notes]


def _cut_note(source: TextSource, piece: TextPiece, cursor: str) -> str:
    assert piece.rest is not None
    at, size = piece.rest.offset, source.size
    where = f"from byte {at}" if piece.rest.backwards else f"up to byte {at}"
    before = "the lines before" if piece.rest.backwards else "more"
    return f'Cut by the token budget: {where} of {size}. For {before}: cursor="{cursor}"'


@tool("read_files", group=Group.FILES, effect=Effect.READ, title="On disk: read several files or slices")
def read_files(app: App, call: Call, args: ReadFiles) -> Answer:
    """On disk: read several files or slices of them in one call: one block per file, each with its own error if any."""
    return _ReadFilesCall(app.folders_of(call.caller), call, args).answer()


class _ReadFilesCall:
    """One call of read_files: spends one token budget over its entries in order."""

    def __init__(self, folders: Folders, call: Call, args: ReadFiles) -> None:
        self.folders, self.call, self.files = folders, call, args.files
        self.mark = secrets.token_hex(3)
        self.key = sha256(json.dumps([entry.model_dump() for entry in args.files]).encode()).hexdigest()[:12]
        self.left = answer_budget(folders)
        self.cursor: str | None = None
        self.hints = 0
        self.entry, self.slice, self.version, self.position = self._resume(args.cursor)

    def _resume(self, cursor: str | None) -> tuple[int, int, str | None, ReadPosition | None]:
        if cursor is None:
            return 0, 0, None, None
        state = decode_cursor(cursor)
        if state.get("k") != self.key:
            raise InvalidArgument("The cursor belongs to other files. Repeat the same files with it.")
        entry, slice_index, position = state.get("i"), state.get("r"), state.get("p")
        if not isinstance(entry, int) or not isinstance(slice_index, int) or not 0 <= entry < len(self.files):
            raise invalid_cursor()
        return entry, slice_index, state.get("v"), None if position is None else ReadPosition.of(position)

    def answer(self) -> Answer:
        blocks = []
        for index in range(self.entry, len(self.files)):
            self.call.check()
            blocks.append(self._not_reached_block(index) if self.cursor else self._entry(index))
        if self.cursor:
            blocks.append(f'[Cut by the token budget. For more, repeat the call with cursor="{self.cursor}"]')
        return Answer(tuple(Text(block) for block in blocks if block), is_cut=self.cursor is not None)

    def _entry(self, index: int) -> str:
        entry = self.files[index]
        first = self.slice if index == self.entry else 0
        try:
            selections = entry.selections()
            with self.folders.jail.open_file(entry.path) as file:
                source = open_source(self.call, file, self.folders.settings)
                parts: list[str] = []
                for slice_index in range(first, len(selections)):
                    parts.append(self._slice(index, slice_index, selections[slice_index], source))
                    if self.cursor:
                        break
                return "\n".join(parts) or self._header(index, "no slices")
        except HoldfastError as error:
            return self._error_block(index, error)

    def _slice(self, index: int, slice_index: int, selection: LineSelection, source: TextSource) -> str:
        position = None
        if self.position is not None and (index, slice_index) == (self.entry, self.slice):
            source.check_version(self.version)
            position = self.position
        if self.left <= 0:
            self._stop(index, slice_index, None, source)
            return self._header(index, "not reached")
        try:
            piece = read_lines(self.call, source, selection, self.left, position)
        except HoldfastError as error:
            if error.code in ("CANCELLED", "TIMEOUT"):
                raise
            return self._error_block(index, error)
        block = f"{self._header(index, _describe_piece(source, piece))}\n{piece.text}"
        self.left -= estimate_tokens(block)
        if piece.rest is not None:
            self._stop(index, slice_index, piece.rest, source)
        return block

    def _stop(self, index: int, slice_index: int, position: ReadPosition | None, source: TextSource) -> None:
        state = {"k": self.key, "i": index, "r": slice_index, "v": source.version}
        self.cursor = encode_cursor({**state, "p": position.state() if position else None})

    def _header(self, index: int, rest: str) -> str:
        return f"[{self.mark} {index + 1}/{len(self.files)}] {display_name(self.files[index].path)} {rest}".rstrip()

    def _error_block(self, index: int, error: HoldfastError) -> str:
        if error.code in ("CANCELLED", "TIMEOUT") and (self.call.cancelled or not self.call.remaining()):
            raise error
        if self.hints < MAX_HINTS:
            self.hints += 1
            add_path_hint(self.folders.jail, error)
        return self._header(index, f"error {error.code}: {one_line(error.message)}")

    def _not_reached_block(self, index: int) -> str:
        return self._header(index, "not reached")


def one_line(message: str) -> str:
    """Return an error's text on one line, so that a path in it cannot forge a header."""
    return message if message.isprintable() else display_name(message)


def _describe_piece(source: TextSource, piece: TextPiece) -> str:
    words = []
    if piece.first_line is not None and piece.line_count:
        words.append(f"lines {piece.first_line}-{piece.first_line + piece.line_count - 1}")
    notes = _notes(source, piece)
    return " ".join([*words, *([f"({' '.join(notes)})"] if notes else [])])


@tool("read_multiple_files", group=Group.FILES, effect=Effect.READ, title="On disk: read whole files", listed=False)
def read_multiple_files(app: App, call: Call, args: ReadMultipleFiles) -> Answer:
    """On disk: read several whole files; read_files does the same with slices."""
    folders = app.folders_of(call.caller)
    left, parts = answer_budget(folders), []
    for place, path in enumerate(args.paths):
        call.check()
        text = _read_whole(folders, call, path, left, with_hint=place < MAX_HINTS)
        left = max(0, left - estimate_tokens(text))
        parts.append(text)
    return Answer.of("\n---\n".join(parts))


def _read_whole(folders: Folders, call: Call, path: str, max_tokens: int, *, with_hint: bool) -> str:
    try:
        with folders.jail.open_file(path) as file:
            if not max_tokens:
                return f"{display_name(path)}: not reached, the answer's token budget is used up. Use read_text_file."
            piece = read_lines(call, open_source(call, file, folders.settings), LineSelection(), max_tokens)
    except HoldfastError as error:
        call.check()
        if with_hint:
            add_path_hint(folders.jail, error)
        return f"{display_name(path)}: Error - {one_line(error.message)}"
    cut = "\n[Cut by the token budget. Use read_text_file for the rest.]" if piece.rest else ""
    return f"{display_name(path)}:\n{piece.text}{cut}\n"
