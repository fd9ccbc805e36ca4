"""The words of a file as weights."""

from collections import Counter

import numpy
import pytest

from holdfast.organiser.classify.word_space import Vocabulary, count_terms, is_word


def test_words_count_in_small_letters_and_numbers_by_their_length() -> None:
    terms = count_terms("Total total 2024 17")
    assert terms["total"] == 2
    assert terms["#4"] == 1
    assert terms["#2"] == 1


def test_words_of_every_script_are_words() -> None:
    terms = count_terms("Счёт-фактура ΤΙΜΟΛΌΓΙΟ Übergrößenträger")
    assert {"счёт", "фактура", "τιμολόγιο", "übergrössenträger"} <= terms.keys()


@pytest.mark.parametrize(
    ("text", "pair"), [("请查收附件发票", "发票"), ("請求書を送付します", "求書"), ("ใบแจ้งหนี้", "ใบ")]
)
def test_writing_without_spaces_is_taken_by_pairs(text: str, pair: str) -> None:
    assert pair in count_terms(text)


def test_latin_words_inside_other_writing_stay_whole() -> None:
    assert "pdf" in count_terms("发票pdf下载")


def test_the_name_and_the_type_count() -> None:
    terms = count_terms("", "Invoice May.pdf", "application/pdf")
    assert terms["invoice"] == 2
    assert terms["~.pdf"]
    assert not is_word("~.pdf")


def test_a_file_without_anything_has_no_terms() -> None:
    assert count_terms("") == {}


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    documents = [count_terms(f"common word{number % 3}") for number in range(12)]
    words = Vocabulary.learn(documents)
    assert words.weights[words.index["word"]] == words.weights[words.index["common"]]
    documents = [count_terms("common" + (" rare" if number < 2 else "")) for number in range(12)]
    words = Vocabulary.learn(documents)
    assert words.weights[words.index["rare"]] > words.weights[words.index["common"]]


def test_weights_have_length_one_and_a_file_without_known_words_has_none() -> None:
    documents = [count_terms("a few shared words"), count_terms("a few shared words more")]
    words = Vocabulary.learn(documents)
    rows = words.rows([*documents, Counter({"nowhere": 1})])
    dense = rows.dense(len(words.index))
    assert numpy.linalg.norm(dense[:2], axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert len(rows.row(2)[0]) == 0
    assert not dense[2].any()


def test_the_product_of_sparse_rows_is_that_of_the_full_matrix() -> None:
    documents = [count_terms(f"alpha beta gamma{number} delta epsilon " * (number % 3)) for number in range(600)]
    words = Vocabulary.learn(documents)
    rows = words.rows(documents)
    matrix = numpy.random.default_rng(1).standard_normal((len(words.index), 5)).astype(numpy.float32)
    numpy.testing.assert_allclose(rows.times(matrix), rows.dense(len(words.index)) @ matrix, atol=1e-4)
