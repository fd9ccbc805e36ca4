"""Embeds texts with a table of static word vectors, a hundred times faster than a sentence model (the extra `static`).

The table and its tokenizer are files of the package wordllama, which is not imported. Its code is MIT; its weights were
made from the codebooks of other models that have licences of their own, so it is installed only by whoever asks for it.
"""

import json
import os
import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from holdfast.search.model import Vector
from holdfast.search.ports import EmbedFault
from holdfast.secret import Secret

_PACKAGE = "wordllama"
_WEIGHTS = os.path.join("weights", "l2_supercat_256.safetensors")
_TOKENIZER = os.path.join("tokenizers", "l2_supercat_tokenizer_config.json")
_TABLE = "embedding.weight"


def is_installed() -> bool:
    """Return whether the extra is installed; nothing is loaded."""
    return all(find_spec(name) is not None for name in (_PACKAGE, "numpy", "tokenizers"))


class StaticEmbedder:
    """Embeds a text as the normalised mean of the vectors of its tokens. Safe to share between threads."""

    model = "wordllama-l2-supercat-256"
    needs_key = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:  # noqa: ARG002 - the port's
        """Return a vector for each text, zeros for one without words; EmbedFault when the table cannot be used."""
        table, tokenizer = self._load_once()
        vectors: list[Vector] = []
        for text in texts:
            check()
            vectors.append(_mean_vector(table, tokenizer.encode(text, add_special_tokens=False).ids))
        return vectors

    def _load_once(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            return self._loaded


def _load() -> tuple[Any, Any]:
    if not is_installed():
        raise EmbedFault("not installed: the extra 'static'", retryable=False)
    from tokenizers import Tokenizer

    spec = find_spec(_PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    folder = spec.submodule_search_locations[0]
    try:
        tokenizer = Tokenizer.from_str(Path(folder, _TOKENIZER).read_text(encoding="utf-8"))
        table = _read_table(Path(folder, _WEIGHTS).read_bytes())
    except Exception as error:  # noqa: BLE001 - the library has exceptions of its own
        raise EmbedFault(f"the static vectors cannot be used ({type(error).__name__})", retryable=False) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return table, tokenizer


def _read_table(data: bytes) -> Any:
    """Return the table of a safetensors file: the length of its header, the header as JSON, then the numbers."""
    import numpy

    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + size])[_TABLE]
    kind = {"F16": numpy.float16, "F32": numpy.float32}[entry["dtype"]]
    first, last = entry["data_offsets"]
    flat = numpy.frombuffer(data[8 + size + first : 8 + size + last], dtype=kind)
    return flat.reshape(entry["shape"])


def _mean_vector(table: Any, ids: Sequence[int]) -> Vector:
    import numpy

    known = numpy.array(ids, dtype=numpy.int64)
    known = known[known < len(table)]
    if not known.size:
        return cast("Vector", numpy.zeros(table.shape[1], dtype=numpy.float32))
    mean = table[known].astype(numpy.float32).mean(axis=0)
    return cast("Vector", (mean / max(float(numpy.linalg.norm(mean)), 1e-9)).astype(numpy.float32))
