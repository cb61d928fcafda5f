"""The two hashes that spaCy's pipelines know words by, on whole numbers: Murmur 2 of texts, Murmur 3 of their ids.

They have no key, so the author of a passage can make words that share a hash. In the tag network that costs a word its
own features, as in spaCy; nothing here looks a word up by its hash.
"""

from __future__ import annotations

from robustrag_integrations.keywords.spacy_words import SYMBOLS

_ALL = 2**64 - 1
_MIX = 0xC6A4A7935BD1E995


def string_id(text: str) -> int:
    """spaCy's id of a text (`spacy.strings.get_string_id`): a symbol's own, else MurmurHash64A with the seed 1."""
    if not text:
        return 0
    symbol = SYMBOLS.get(text)
    return _murmur2(text.encode()) if symbol is None else symbol


def _murmur2(data: bytes) -> int:
    whole = len(data) & ~7
    found = 1 ^ (len(data) * _MIX & _ALL)
    for at in range(0, whole, 8):
        block = int.from_bytes(data[at : at + 8], "little") * _MIX & _ALL
        found = (found ^ ((block ^ block >> 47) * _MIX & _ALL)) * _MIX & _ALL
    if whole != len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _MIX & _ALL
    found = (found ^ found >> 47) * _MIX & _ALL
    return found ^ found >> 47


def four_keys(identity: int, seed: int) -> tuple[int, int, int, int]:
    """Four 32-bit keys of a 64-bit id (`thinc`'s `hash`): MurmurHash3 x64 of its eight bytes."""
    first = identity * 0x87C37B91114253D5 & _ALL
    first = (first << 31 | first >> 33) * 0x4CF5AD432745937F & _ALL
    second = seed ^ 8
    first = (first ^ second) + second & _ALL
    second = second + first & _ALL
    first, second = _final(first), _final(second)
    first = first + second & _ALL
    second = second + first & _ALL
    return first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF, second >> 32


def _final(number: int) -> int:
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD & _ALL
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 & _ALL
    return number ^ number >> 33
