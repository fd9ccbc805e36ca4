"""Pure: decides what of a call's arguments is recorded. Everything not named here is replaced by its length and SHA-256.

Paths, ids, numbers and words of the tools' own schemas are recorded as they are. Contents, queries, patterns and
replacement texts are not, nor are names of arguments that no tool has. A preview of their first bytes is recorded only
where the settings ask for it.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PATH_NAMES = frozenset(
    """
    path paths file_path folder_path search_path original_path from_path to_path path_prefix source destination directory
    folder folders root project session_path client
    """.split()
)
"""Arguments that say where, or which program: recorded in the owner's own log, and nowhere else."""

ID_NAMES = frozenset("change_id change_ids older_than plan_id review_id plan_hash shown_hash expected_hash".split())
"""Arguments that name something which Holdfast made; recorded when they look like it."""

SECRET_NAMES = frozenset({"token"})
"""Arguments of which nothing is recorded, a hash included."""

_ID = re.compile(r"[0-9a-f-]{1,64}")

NOT_RECORDED = "(not recorded)"
"""The name under which a row says that something was left out; no argument can have it."""

MAX_TEXT_CHARS = 1_000
_MAX_MEMBERS = 20
_MAX_DEPTH = 5
_MAX_VALUES = 200


Vocabulary = tuple[frozenset[str], frozenset[str]]
"""The names of all arguments, and the fixed words that they take."""


class Redactor:
    """Makes what is recorded of arguments. The vocabulary is asked for with the first call: it takes a while to collect."""

    def __init__(self, vocabulary: Callable[[], Vocabulary], preview_bytes: int = 0) -> None:
        self._ask = vocabulary
        self._vocabulary: Vocabulary | None = None
        self._preview_bytes = preview_bytes

    def redact(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is recorded of a call's arguments."""
        if self._vocabulary is None:
            self._vocabulary = self._ask()
        return _ArgumentsWalk(*self._vocabulary, self._preview_bytes).members(arguments, 0)


class _ArgumentsWalk:
    """One walk over the arguments of one call, which ends after a bounded number of values."""

    def __init__(self, names: frozenset[str], words: frozenset[str], preview_bytes: int) -> None:
        self._names = names
        self._words = words
        self._preview_bytes = preview_bytes
        self._left = _MAX_VALUES

    def members(self, container: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = [name for name in container if name in self._names and name not in SECRET_NAMES][:_MAX_MEMBERS]
        redacted = {name: self._value(name, container[name], depth + 1) for name in known}
        if len(known) < len(container):
            redacted[NOT_RECORDED] = len(container) - len(known)
        return redacted

    def _value(self, name: str, value: Any, depth: int) -> Any:
        self._left -= 1
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**63 else describe_text(str(value), 0)
        if isinstance(value, str):
            return self._text(name, value)
        if depth >= _MAX_DEPTH or self._left <= 0 or not isinstance(value, Mapping | Sequence):
            return {"values": len(value)} if isinstance(value, Mapping | Sequence) else type(value).__name__
        if isinstance(value, Mapping):
            return self.members(value, depth)
        items = [self._value(name, item, depth + 1) for item in value[:_MAX_MEMBERS]]
        return items if len(value) <= _MAX_MEMBERS else [*items, {"more": len(value) - _MAX_MEMBERS}]

    def _text(self, name: str, text: str) -> Any:
        if name in PATH_NAMES or (name in ID_NAMES and _ID.fullmatch(text)):
            cut = text[:MAX_TEXT_CHARS].encode("utf-8", "backslashreplace").decode()
            return cut if len(text) <= MAX_TEXT_CHARS else f"{cut}…"
        return text if text in self._words else describe_text(text, self._preview_bytes)


def describe_text(text: str, preview_bytes: int) -> dict[str, Any]:
    """Return the length and SHA-256 of a text, and its first bytes where a preview is asked for."""
    encoded = text.encode("utf-8", "surrogatepass")
    described: dict[str, Any] = {"bytes": len(encoded), "sha256": hashlib.sha256(encoded).hexdigest()}
    if preview_bytes:
        described["preview"] = encoded[:preview_bytes].decode("utf-8", "ignore")
        described["truncated"] = len(encoded) > preview_bytes
    return described
