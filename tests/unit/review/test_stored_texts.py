"""The stored form of a review's texts: small, and always the same bytes again."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.sqlite.state.review_texts import pack_base, pack_text, unpack_base, unpack_text
from tests.helpers.disks import noise

TEXTS = st.binary(max_size=300)


@given(st.none() | TEXTS, st.none() | TEXTS, TEXTS, TEXTS)
def test_every_text_comes_back(base: bytes | None, text: bytes | None, head: bytes, tail: bytes) -> None:
    for changed in (text, head + (text or b"") + tail, (base or b"") + tail, head + (base or b"")):
        stored = unpack_base(pack_base(base))
        assert stored == base
        assert unpack_text(stored, pack_text(base, changed)) == changed


def test_a_small_edit_of_a_large_file_is_stored_in_a_few_bytes() -> None:
    base = noise(2_000_000)
    stored = pack_text(base, base[:1_000_000] + b"edit" + base[1_000_005:])
    assert stored is not None
    assert len(stored) < 100
