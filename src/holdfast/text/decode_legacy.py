"""Pure: guesses the legacy encoding of a text that is not Unicode.

The East Asian encodings share their byte ranges, so each candidate is scored by how many of its characters are common
ones. Western text is recognised by single high bytes between ASCII letters; charset-normalizer decides the rest.
"""

from collections.abc import Callable, Iterator

_MIN_EAST_ASIAN = 0.55
_MIN_IN_RUNS = 0.2
_SHORT_TEXT_CHARS = 4
_DENSE_HIGH_BYTES = 0.65
_NOT_LATIN = ["cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874"]
_LATIN = ["cp1250", "iso8859_2", "cp1254", "cp1257"]
_SYMBOLS_OF_1252 = frozenset(b"\xa1\xa2\xa3\xa4\xa5\xa6\xa8\xac\xaf\xb1\xb2\xb3\xb5\xb6\xb8\xb9\xbc\xbd\xbe\xbf")

CommonScore = Callable[[int, int], float]


def guess_legacy_encoding(sample: bytes) -> str | None:
    """Return the Python codec that fits the sample best, None when no encoding gives readable text."""
    return _guess_east_asian(sample) or _guess_single_byte(sample)


def _guess_east_asian(sample: bytes) -> str | None:
    best, best_score = None, _MIN_EAST_ASIAN
    for codecs, common_score in _EAST_ASIAN:
        codec = next((name for name in codecs if _can_decode(sample, name)), None)
        if codec is None:
            continue
        score = _score(sample, common_score, half_width=common_score is _shift_jis)
        if score > best_score:
            best, best_score = codec, score
    return best


def _score(sample: bytes, common_score: CommonScore, *, half_width: bool) -> float:
    """Return the mean commonness of the two-byte characters, 0 where nearly all of them are isolated.

    East Asian characters come in runs; an isolated pair is a Western letter and the one after it.
    """
    total, in_runs, low_trails, score_sum, last_end = 0, 0, 0, 0.0, -1
    for at, lead, trail in _pairs(sample, half_width=half_width):
        total += 1
        score_sum += common_score(lead, trail)
        in_runs += at == last_end
        low_trails += trail < 0x80
        last_end = at + 2
    never_low = common_score is _big5 and low_trails == 0 and total > 2 * _SHORT_TEXT_CHARS
    if never_low or in_runs < _MIN_IN_RUNS * total:
        return 0.0
    short_korean = common_score is _euc_kr and total < _SHORT_TEXT_CHARS
    return (score_sum - (0.2 * total if short_korean else 0.0)) / total if total else 0.0


def _pairs(sample: bytes, *, half_width: bool) -> Iterator[tuple[int, int, int]]:
    index, end = 0, len(sample) - 1
    while index < end:
        lead = sample[index]
        if lead < 0x80:
            index += 1
        elif half_width and 0xA1 <= lead <= 0xDF:
            yield index - 1, lead, 0
            index += 1
        else:
            yield index, lead, sample[index + 1]
            index += 2


def _gbk(lead: int, trail: int) -> float:
    if trail < 0xA1:
        return 0.0
    return 1.0 if 0xB0 <= lead <= 0xD7 or lead in (0xA1, 0xA3) else 0.4 if 0xD8 <= lead <= 0xF7 else 0.1


def _shift_jis(lead: int, trail: int) -> float:
    if trail == 0:
        return 0.5
    return 1.0 if 0x81 <= lead <= 0x84 or 0x88 <= lead <= 0x97 else 0.5 if lead <= 0x9F or 0xE0 <= lead <= 0xEA else 0.0


def _euc_jp(lead: int, trail: int) -> float:
    if trail < 0xA1:
        return 0.0
    return 1.2 if lead in (0xA4, 0xA5) else 0.85 if lead in (0xA1, 0xA3) or 0xB0 <= lead <= 0xCF else 0.3


def _euc_kr(lead: int, trail: int) -> float:
    if trail < 0xA1:
        return 0.2
    return 1.1 if 0xB0 <= lead <= 0xC8 else 0.9 if lead in (0xA1, 0xA3) else 0.1


def _big5(lead: int, trail: int) -> float:
    common = 1.0 if 0xA4 <= lead <= 0xC6 or lead in (0xA1, 0xA2) else 0.2
    return common if trail < 0x7F else common * 0.95


_EAST_ASIAN: tuple[tuple[tuple[str, ...], CommonScore], ...] = (
    (("gbk", "gb18030"), _gbk),
    (("shift_jis", "cp932"), _shift_jis),
    (("euc_jp",), _euc_jp),
    (("euc_kr", "cp949"), _euc_kr),
    (("big5", "big5hkscs"), _big5),
)


def _guess_single_byte(sample: bytes) -> str | None:
    dense, western = _is_dense(sample), _can_decode(sample, "cp1252")
    if western and not dense and not _has_symbols_in_words(sample):
        return "cp1252"
    return _guess_by_charset_normalizer(sample, _NOT_LATIN if dense else _LATIN) or ("cp1252" if western else None)


def _can_decode(sample: bytes, codec: str) -> bool:
    try:
        sample.decode(codec)
    except UnicodeDecodeError as error:
        return error.start >= len(sample) - 4 and error.reason.startswith("incomplete")
    return True


def _is_dense(sample: bytes) -> bool:
    """Return whether most letters are high bytes, as in Cyrillic or Greek and never in Western text."""
    high = sum(byte >= 0x80 for byte in sample)
    letters = sum(_is_letter(byte) for byte in sample)
    return high > _DENSE_HIGH_BYTES * (high + letters)


def _has_symbols_in_words(sample: bytes) -> bool:
    """Return whether a symbol of cp1252 stands between letters, so that it is a letter of another encoding."""
    return any(
        sample[at] in _SYMBOLS_OF_1252 and _in_a_word(sample[at - 1]) and _in_a_word(sample[at + 1])
        for at in range(1, len(sample) - 1)
    )


def _is_letter(byte: int) -> bool:
    return 0x41 <= byte & 0xDF <= 0x5A


def _in_a_word(byte: int) -> bool:
    return byte >= 0xC0 or _is_letter(byte)


def _guess_by_charset_normalizer(sample: bytes, candidates: list[str]) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=candidates).best()
    return best.encoding if best is not None else None
