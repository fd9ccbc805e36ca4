"""Pure: defines what a tool answers, before any door gives it a wire form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

_SCALAR_CHARS, _ENTRY_CHARS, _MANY_ENTRIES = 8, 100, 1_000


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text: a file's content, a diff, a note to the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes that a model looks at or listens to; `blob` is anything else, sent as an embedded resource."""

    kind: Literal["image", "audio", "blob"]
    data: bytes
    mime_type: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Content blocks in order, and typed data where the tool declares it.

    Text such as a file body or a diff comes as content alone; data is complete in itself. `is_cut` says that the
    text is only a part of what was asked for, so that nothing takes it for the whole. `for_panel` is what the client gives
    to its panel and never to its model.
    """

    blocks: tuple[Text | Media, ...]
    data: BaseModel | None = None
    is_cut: bool = False
    for_panel: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Return about its length: of its texts and bytes, and of those in its data."""
        blocks = sum(len(block.text if isinstance(block, Text) else block.data) for block in self.blocks)
        return blocks + length_of(self.data)

    @classmethod
    def of(cls, *texts: str, data: BaseModel | None = None) -> "Answer":
        """Return an answer of plain text blocks, empty ones left out."""
        return cls(tuple(Text(text) for text in texts if text), data)


def length_of(value: object) -> int:
    """Return about how long a value is as JSON; of a long list only its number of entries counts."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, BaseModel):
        value = vars(value)
    entries = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(entries, list | tuple):
        return _SCALAR_CHARS
    return len(entries) * _ENTRY_CHARS if len(entries) > _MANY_ENTRIES else sum(map(length_of, entries))
