"""Our WordPiece gives the ids of the library `tokenizers`, to the last one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece as LibraryModel
from tokenizers.processors import BertProcessing, TemplateProcessing

from holdfast.adapters.models.minilm import MAX_TOKENS, bundled_files
from holdfast.adapters.models.wordpiece import UnsupportedTokenizer, WordPiece, read_tokenizer

TOP = Path(__file__).parents[3]
VOCABULARY = Path(bundled_files().tokenizer).read_bytes()
UNBOUNDED = 10**9
SENTENCES = (
    "Naïve café-goers in Zürich paid €5.50 for Ångström’s “crème brûlée”… [SEP] or [MASK]? [sep] [UNK][CLS]x",
    "ΣΊΣΥΦΟΣ, Οδυσσεύς; İstanbul'da ışık; straße ẞ; ﬁn ﬃ; Ǆ ǅ; K Å",
    "東京都は日本の首都です。한국어 문장도 있습니다. ไทย ภาษา हिन्दी में عَرَبِيّ עִבְרִית",
    "a\u0301\u0323b\u200b\u200d\ufeffc\x00\x07d\ufffde\x85f\u2028g\u3000h\xa0i\x1cj",
    "👩‍👩‍👧 🇩🇪 x₂ + y² = ½ ™ © № ① ⅳ ∑ ≠ → ~`^|<=>$+",
    "def f(x: int) -> str:\n\treturn f'{x!r:>10}'  # https://example.org/a_b?c=d&e=%20#f",
    "supercalifragilisticexpialidocious " + "a" * 100 + " " + "a" * 101 + " " + "ab" * 5000,
    "",
    "   \t\n",
)


def library(**normal: Any) -> Tokenizer:
    """Make the library's tokenizer from the same vocabulary."""
    tokens = VOCABULARY.decode().removesuffix("\n").split("\n")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    made = Tokenizer(LibraryModel(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    made.normalizer = normalizers.BertNormalizer(**normal)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)])
    return made


LIBRARY = library()
OURS = read_tokenizer(VOCABULARY, UNBOUNDED)


def assert_equal(text: str, ours: WordPiece = OURS, theirs: Tokenizer = LIBRARY) -> None:
    assert ours.encode(text).ids == theirs.encode(text).ids, ascii(text[:200])


@pytest.mark.req("SE-30.g")
@pytest.mark.parametrize("form", ["{}", "a{}b"])
def test_every_code_point_is_cut_alike_alone_and_inside_a_word(form: str) -> None:
    assigned = [*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE0200)]
    codes = [*assigned, *range(0x34000, 0x110000, 101)]  # the rest is unassigned or private, and all alike
    for first in range(0, len(codes), 512):
        block = codes[first : first + 512]
        text = " ".join(form.format(chr(code)) for code in block)
        if OURS.encode(text).ids != LIBRARY.encode(text).ids:
            for code in block:
                assert_equal(form.format(chr(code)))


@pytest.mark.req("SE-30.g")
@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_of_many_kinds_are_cut_alike(text: str) -> None:
    assert_equal(text)
    assert_equal(text.upper())


@pytest.mark.req("SE-30.g")
@settings(max_examples=1000, deadline=None)
@example("Σ Σ.ΣΣ")
@example("[CLS][SEP] [ SEP ] [MASK]s")
@given(st.text(max_size=200))
def test_any_text_of_unicode_is_cut_alike(text: str) -> None:
    assert_equal(text)


PIECES = st.sampled_from([*"aeioubcdé'-.,!?[]#_ \t\n\u0301漢字", "##ing", "[SEP]", "the", "un", "token", "İ", "Σ", "́"])


@settings(max_examples=1000, deadline=None)
@given(st.lists(PIECES, max_size=150).map("".join))
def test_words_and_marks_in_any_order_are_cut_alike(text: str) -> None:
    assert_equal(text)


@pytest.mark.req("SE-30.g")
def test_the_texts_of_this_repository_are_cut_alike() -> None:
    files = [*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("src/**/*.py"), *TOP.glob("tests/**/*.py")]
    assert len(files) > 500
    for path in files:
        assert_equal(path.read_text())


@pytest.mark.parametrize("max_tokens", [2, 3, 17, 256])
def test_a_long_text_ends_where_the_library_ends_it(max_tokens: int) -> None:
    theirs, ours = library(), read_tokenizer(VOCABULARY, max_tokens)
    theirs.enable_truncation(max_tokens)
    for text in (*SENTENCES, " ".join(SENTENCES), "unbelievably " * 300, "[SEP]" * 300):
        expected, encoding = theirs.encode(text), ours.encode(text)
        assert encoding == (expected.ids, expected.attention_mask, expected.type_ids)


def test_a_lone_surrogate_is_left_out_instead_of_failing() -> None:
    assert OURS.encode("a\ud800b").ids == OURS.encode("ab").ids


OPTIONS = [
    {"clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents, "lowercase": lower}
    for clean in (True, False)
    for chinese in (True, False)
    for accents in (True, False, None)
    for lower in (True, False)
]


@pytest.mark.req("SE-30.d")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_tokenizer_json_of_any_options_is_followed(options: dict[str, Any]) -> None:
    theirs = library(**options)
    ours = read_tokenizer(theirs.to_str().encode(), UNBOUNDED)

    @settings(max_examples=25, deadline=None)
    @given(st.text(max_size=100) | st.lists(PIECES, max_size=60).map("".join))
    def compare(text: str) -> None:
        assert_equal(text, ours, theirs)

    compare()
    for text in SENTENCES:
        assert_equal(text, ours, theirs)


def test_the_older_post_processor_is_read_too() -> None:
    theirs = library()
    theirs.post_processor = BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    assert_equal("a text", read_tokenizer(theirs.to_str().encode(), UNBOUNDED), theirs)


def test_a_vocabulary_with_capital_letters_keeps_case_and_accents() -> None:
    cased = read_tokenizer(b"[UNK]\n[CLS]\n[SEP]\nIch\nich\ncaf\n##\xc3\xa9\n", 10)
    assert cased.encode("Ich ich café").ids == [1, 3, 4, 5, 6, 2]


def changed(**parts: Any) -> bytes:
    return json.dumps({**json.loads(LIBRARY.to_str()), **parts}).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (changed(model={"type": "BPE", "vocab": {}}), "its model is BPE, not WordPiece"),
        (changed(normalizer=None), "its normalizer is None, not BertNormalizer"),
        (changed(normalizer={"type": "NFC"}), "its normalizer is NFC, not BertNormalizer"),
        (changed(pre_tokenizer={"type": "Whitespace"}), "its pre-tokenizer is Whitespace, not BertPreTokenizer"),
        (changed(post_processor=None), "its post-processor is None"),
        (changed(post_processor={"type": "TemplateProcessing", "single": []}), "its template is not"),
        (
            changed(
                added_tokens=[
                    {
                        "id": 0,
                        "content": "x",
                        "single_word": False,
                        "lstrip": True,
                        "rstrip": False,
                        "normalized": False,
                    }
                ]
            ),
            "its token 'x' is matched by rules of its own",
        ),
        (changed(added_tokens=3), "another shape"),
        (b"{", "neither JSON nor"),
        (b"\xff", "neither JSON nor"),
        (b"{}", "another shape"),
        (b"", "its vocabulary has no"),
        (b"the\na\n", r"its vocabulary has no \[CLS\], \[SEP\], \[UNK\]"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_differs(data: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedTokenizer, match=reason):
        read_tokenizer(data, MAX_TOKENS)


def test_what_is_remembered_of_words_and_characters_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.models.wordpiece._CACHED_WORDS", 8)
    monkeypatch.setattr("holdfast.adapters.models.wordpiece._CACHED_CHARACTERS", 8)
    small = read_tokenizer(VOCABULARY, UNBOUNDED)
    text = "each of these many words has other letters: quick brown foxes jump über lazy dogs ☃"
    for _ in range(2):
        assert_equal(text, small)
    assert small._ids_of.cache_info().currsize == 8
    assert len(small._clean) == len(small._split) == 8
