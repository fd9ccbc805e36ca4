"""Writes web/src/shared/names.vectors.json: names as Python displays them, for the test of the console's own display."""

import json
from pathlib import Path

from holdfast.text.display import display_name, is_visible

TARGET = Path(__file__).resolve().parents[1] / "web" / "src" / "shared" / "names.vectors.json"
_NAMES = [
    "notes.md",
    "",
    " lead",
    "trail ",
    "a b.txt",
    "docs/ a",
    "docs /a",
    '"quoted"',
    'say "hi"',
    "back\\slash",
    "new\nline",
    "tab\there",
    "a\u202egpj.exe",
    "zero\u200bwidth",
    "soft\u00adhyphen",
    "bom\ufeff",
    "no\u00a0break",
    "grüße.txt",
    "计划.md",
    "план.md",
    "🌱.md",
    "family\U0001f468\u200d\U0001f469.png",
    "e\u0301tude",
    "z" + "\u0300" * 8,
    "z" + "\u0300" * 4,
    "hangul\u3164filler",
    "variation\ufe0f",
    "tag\U000e0041",
    "ideographic\u3000space",
    "del\x7f",
    "bell\x07",
    "private\ue000",
]
_RANGES = [(0x20, 0x180), (0x600, 0x620), (0x17B0, 0x17B8), (0x1800, 0x1812), (0x2000, 0x2070), (0xFE00, 0xFE10)]
_SINGLE = [0x34F, 0x115F, 0x1160, 0x2800, 0x3000, 0x3164, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFC, 0xFFFD, 0x1D159, 0x1F331]
_SINGLE += [0xE0001, 0xE0041, 0xE0100, 0xE01EF]


def vectors() -> str:
    """Return the text of the file."""
    codes = [code for first, end in _RANGES for code in range(first, end)] + _SINGLE
    data = {
        "names": [{"name": name, "shown": display_name(name)} for name in _NAMES],
        "characters": [{"code": code, "isSeen": is_visible(chr(code))} for code in codes],
    }
    return json.dumps(data, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(vectors())
