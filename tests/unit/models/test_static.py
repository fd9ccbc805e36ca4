"""The static word vectors of the extra."""

import subprocess
import sys

import pytest

from holdfast.adapters.models import static
from holdfast.adapters.models.static import StaticEmbedder, is_installed
from holdfast.search.ports import EmbedFault


def embed(*texts: str) -> list[list[float]]:
    return [list(map(float, vector)) for vector in StaticEmbedder().embed(texts, None, lambda: None)]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_of_one_meaning_are_nearer() -> None:
    cake, bread, court = embed("bake the cake in the oven", "the dough of this bread", "the court rejected the appeal")
    assert cosine(cake, cake) == pytest.approx(1, abs=1e-4)
    assert cosine(cake, bread) > cosine(cake, court)


def test_a_text_without_words_has_no_direction() -> None:
    (nothing,) = embed("")
    assert not any(nothing)


def test_embedding_can_be_stopped() -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        StaticEmbedder().embed(["a"], None, stop)


def test_a_missing_extra_is_a_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "_PACKAGE", "no_such_package_anywhere")
    assert not is_installed()
    with pytest.raises(EmbedFault, match="extra 'static'"):
        StaticEmbedder().embed(["a"], None, lambda: None)


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    code = (
        "import sys; from holdfast.adapters.models.static import StaticEmbedder, is_installed; StaticEmbedder();"
        "is_installed(); print([name for name in ('numpy', 'tokenizers', 'wordllama') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"
