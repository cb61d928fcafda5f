"""Maps look-alikes of ASCII characters, and invisible characters, for the reading of marks."""

from __future__ import annotations

import unicodedata

INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
"""Characters that are not seen, as the inside of a pattern's brackets."""

HIDDEN = f"[{INVISIBLE}]{{0,3}}"
"""A pattern of the few invisible characters that may stand between two letters of a mark."""

_SIGNS = {"<": "﹤⟨ᐸ˂", ">": "﹥⟩ᐳ˃", "|": "∣ǀ❘│", "/": "∕⁄", "&": "﹠"}  # fmt: skip
_LETTERS = {
    "a": "аα", "c": "сϲ", "d": "ԁ", "e": "еε", "f": "ғ", "g": "ɡԍ", "h": "һ", "i": "іιı", "j": "ј", "k": "кκ",
    "l": "ӏⅼ", "m": "м", "n": "ոη", "o": "оοо", "p": "рρ", "r": "г", "s": "ѕ", "t": "тτ", "u": "υս",
    "x": "х", "y": "уγ",
    "A": "АΑ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ",
    "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "ҮΥ",
}  # fmt: skip
_STYLED = (range(0xFF01, 0xFF5F), range(0x1D400, 0x1D7CC), range(0x2100, 0x2140), range(0x24B6, 0x24EA))


def _table() -> dict[int, str]:
    found = {code: unicodedata.normalize("NFKC", chr(code)) for codes in _STYLED for code in codes}
    table = {code: text for code, text in found.items() if len(text) == 1 and text.isascii()}
    for given in (_SIGNS, _LETTERS):
        table |= {ord(like): text for text, likes in given.items() for like in likes}
    return table


_PLAIN = _table()


def plain(text: str) -> str:
    """Replace look-alikes with ASCII, character by character, so that the length stays the same."""
    return text if text.isascii() else text.translate(_PLAIN)
