"""Edits on bytes: marks, encodings and every byte outside the edit survive."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import EditRejected
from holdfast.text.edit import Edit, EditLimits, edit_bytes

LIMITS = EditLimits()


def edited(data: bytes | None, *edits: Edit) -> bytes:
    return edit_bytes(data, edits, LIMITS).data


def test_a_byte_order_mark_survives() -> None:
    assert edited(codecs.BOM_UTF8 + b"a b", Edit("a", "x")) == codecs.BOM_UTF8 + b"x b"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_encodings_survive_with_their_mark_and_line_ends(codec: str) -> None:
    mark = "\ufeff".encode(codec)
    before = mark + "eins\r\nzwei ä\r\n".encode(codec)
    assert edited(before, Edit("eins\nzwei", "eins\ndrei")) == mark + "eins\r\ndrei ä\r\n".encode(codec)


def test_a_legacy_encoding_survives() -> None:
    text = "这是一个用于测试的中文文件，内容必须保持不变。第二行也是中文。\n"
    assert edited((text * 3 + "end").encode("gb18030"), Edit("end", "结束")) == (text * 3 + "结束").encode("gb18030")


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    before = "Größe und Übermut sind für Äpfel schön, groß und süß.\n".encode("cp1252") * 4 + b"end"
    with pytest.raises(EditRejected, match=r"has no U\+4E2D"):
        edited(before, Edit("end", "中"))


def test_a_binary_file_is_refused() -> None:
    with pytest.raises(EditRejected, match="binary"):
        edited(b"\x7fELF\x00\x00\x01", Edit("ELF", "x"))


def test_a_missing_file_becomes_utf_8() -> None:
    assert edited(None, Edit("", "ä")) == "ä".encode()


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(EditRejected):
        edited(b"a", Edit("a", "\udc80"))


@given(
    st.binary(max_size=60).filter(lambda raw: b"\0" not in raw),
    st.binary(max_size=60).filter(lambda raw: b"\0" not in raw),
    st.text("xyz\n", max_size=5),
)
def test_bytes_outside_the_edit_never_change(head: bytes, tail: bytes, new: str) -> None:
    data = head + b"<<MATCH>>" + tail
    try:
        after = edited(data, Edit("<<MATCH>>", new))
    except EditRejected:
        return
    assert after.startswith(head)
    assert after.endswith(tail)
    assert after[len(head) : len(after) - len(tail)].replace(b"\r\n", b"\n").decode("utf-8", "replace") == new
