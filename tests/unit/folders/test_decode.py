"""Which encoding a file is in, and whether its bytes come back."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.decode import UTF8, Encoding, decode, detect_encoding, encode, round_trips

REALISTIC = [
    ("gbk", "gbk", "中文文件测试\n这是一个用来检查编码的文本文件。\n"),
    ("gbk", "gbk", "# 配置文件\nname = 张三\ncity = 北京\n"),
    ("gbk", "gbk", "int main() { // 主函数\n  return 0; // 返回零\n}\n"),
    ("gbk", "gbk", "你好，世界\n"),
    ("shift_jis", "shift_jis", "これは日本語のテキストファイルです。\n文字コードの判定を確認します。\n"),
    ("shift_jis", "shift_jis", "名前,住所\n山田太郎,東京都\n鈴木花子,大阪府\n"),
    ("euc_jp", "euc_jp", "これは日本語のテキストファイルです。\n"),
    ("euc_kr", "euc_kr", "이것은 한국어 텍스트 파일입니다. 인코딩을 확인합니다.\n"),
    ("big5", "big5", "這是一個繁體中文的文字檔案，用來測試編碼。\n"),
    ("cp1252", "windows-1252", "café au lait, déjà vu — “naïve” façade\n"),
    ("cp1252", "windows-1252", "price: 5 € – it’s fine\n"),
    ("latin-1", "windows-1252", "Déjà vu à la façade du café\n"),
    ("latin-1", "windows-1252", "Größe: 10 µm, Ångström, Straße\n"),
    ("latin-1", "windows-1252", "El niño comió piñas en la mañana. ¿Qué tal?\n"),
    ("cp1251", "windows-1251", "Это русский текст, который нужен для проверки кодировки.\n"),
    ("koi8_r", "koi8_r", "Это русский текст, который нужен для проверки кодировки.\n"),
    ("cp1250", "windows-1250", "Zażółć gęślą jaźń\n"),
]


@pytest.mark.parametrize(("codec", "name", "text"), REALISTIC)
def test_realistic_legacy_text_is_read_right_and_its_encoding_named(codec: str, name: str, text: str) -> None:
    data = text.encode(codec)
    encoding = detect_encoding(data)
    assert encoding is not None
    assert encoding.name == name
    assert decode(data, encoding) == text
    assert round_trips(data, encoding)


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8 with BOM"),
        ("utf-16", "utf-16-le with BOM"),
        ("utf-32", "utf-32-le with BOM"),
    ],
)
def test_unicode_encodings_are_told_by_their_marks(codec: str, name: str) -> None:
    data = "Grüße, 世界 🙂\r\n".encode(codec)
    encoding = detect_encoding(data)
    assert encoding is not None
    assert encoding.name == name
    assert decode(data, encoding) == "Grüße, 世界 🙂\r\n"
    assert round_trips(data, encoding)


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", b"\xff\xfea", b"\x80\x81\x01\x02\x03" * 50, os.urandom(4096)]
)
def test_what_is_no_text_has_no_encoding(data: bytes) -> None:
    assert detect_encoding(data) is None


def test_a_sample_may_end_inside_a_character() -> None:
    data = ("x" * 9 + "é").encode()[:-1]
    assert detect_encoding(data, complete=False) == UTF8
    assert detect_encoding(data, complete=True) != UTF8


def test_legacy_text_after_a_long_ascii_beginning_is_found() -> None:
    data = b"plain line\n" * 20_000 + "这是一个用来检查编码的文本文件。\n".encode("gbk")
    assert detect_encoding(data) == Encoding("gbk")


def test_bytes_that_do_not_come_back_are_said_not_to() -> None:
    assert not round_trips(b"\xff", UTF8)
    assert not round_trips("①".encode("utf-7"), Encoding("ascii", b"\x00"))


@given(st.text())
def test_utf8_always_comes_back(text: str) -> None:
    data = text.encode("utf-8", "ignore")
    assert encode(decode(data, UTF8), UTF8) == data
