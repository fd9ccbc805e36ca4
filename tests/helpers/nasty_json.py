"""JSON documents that break careless readers: bad syntax, odd encodings, huge numbers, deep nesting, lone surrogates."""

_STRINGS = (
    r'"\ud800"',
    r'"\udc00\ud800"',
    r'"\ud83d\ude00"',
    r'"\u0000"',
    r'"\uDBFF\uDFFE"',
    r'"a\q"',
    r'"\u00"',
    r'"\x41"',
    '"tab\there"',
    '"new\nline"',
    '"\u2028\u2029\ufeff"',
    '"',
    '"\\',
    "'single'",
)
_NUMBERS = (
    "-0",
    "1e999",
    "-1e-999",
    "9" * 400,
    "9" * 5_000,
    "01",
    "1.",
    ".5",
    "+1",
    "0x1F",
    "1e",
    "NaN",
    "-Infinity",
    "2e00",
)
_STRUCTURES = (
    "", " ", "null", "nul", "true false", "[]", "{}", "[", "]", "{", "[1,]", "[,1]", "[1,,2]", '{"a":1,}', '{"a" 1}', "{a:1}",
    '{"a":1,"a":2}', '{"":{"":{}}}', "[1 // comment\n]", "/**/{}", "[1]]", '{"a":1}{"b":2}', '{"a":1}\n{"b":2}\n', "[\f1]",
    "&a [*a]", "a: &b {c: *b}", "- - - x", "\t- x", "? [k]\n: v", "!!python/object:os.system x", "%YAML 9.9\n---\nx", "<<: *none",
)  # fmt: skip
_BYTES = {
    "utf16_with_bom": '{"é":"x"}'.encode("utf-16"),
    "utf16_le": '{"é":"x"}'.encode("utf-16-le"),
    "utf32_with_bom": "[1]".encode("utf-32"),
    "utf8_with_bom": b"\xef\xbb\xbf{}",
    "bom_alone": b"\xef\xbb\xbf",
    "half_a_bom": b"\xef\xbb{}",
    "overlong_slash": b'["\xc0\xaf"]',
    "encoded_surrogate": b'["\xed\xa0\x80"]',
    "truncated_utf8": b'["\xe0\xff"]',
    "lone_continuation": b'["\x81"]',
    "latin1": b'["\xe9"]',
    "above_unicode": b'["\xf4\xbf\xbf\xbf"]',
    "nul": b"[1]\0[2]",
    "utf16_lone_surrogate": b'\xff\xfe["\0\x00\xd8"\0]\0',
    "escape": b'["\x1b[31m\x7f\x08"]',
}
_DEEP = {
    "deep_arrays": b"[" * 50_000,
    "deep_objects": b'{"a":' * 20_000,
    "closed_arrays": b"[" * 5_000 + b"]" * 5_000,
    "long_key": b'{"' + b"k" * 300_000 + b'":1}',
}


def nasty_documents() -> dict[str, bytes]:
    """Return the documents by a name that is a plain file name without a suffix."""
    values = [*_STRINGS, *_NUMBERS]
    texts = {f"value_{at}": value for at, value in enumerate(values)}
    texts |= {f"array_{at}": f"[{value}]" for at, value in enumerate(values)}
    texts |= {f"key_{at}": f"{{{value}: {{{value}: 1}}}}" for at, value in enumerate(_STRINGS)}
    texts |= {f"first_key_{at}": f'[{{{value}: "needle"}}]' for at, value in enumerate(_STRINGS)}
    texts |= {f"structure_{at}": text for at, text in enumerate(_STRUCTURES)}
    return {name: text.encode() for name, text in texts.items()} | _BYTES | _DEEP
