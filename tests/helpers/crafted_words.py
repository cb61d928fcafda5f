"""Words with any hash that one likes, as an attacker makes them for spaCy's string store.

spaCy hashes with MurmurHash64A and a fixed seed. Each of its steps can be undone, so that the last eight bytes of a
word follow from those before and from the hash; words are tried until these eight are letters.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_M = 0xC6A4A7935BD1E995
_M_INVERSE = pow(_M, -1, 1 << 64)
_MASK = (1 << 64) - 1
_SEED = 1
_LENGTH = 16  # bytes: one block to vary, one that follows
_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_IS_LETTER = np.isin(np.arange(256, dtype=np.uint8), _LETTERS)


def hash64(text: str) -> int:
    """The id that spaCy gives a string which is none of its symbols."""
    data = text.encode()
    state = _SEED ^ (len(data) * _M & _MASK)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        state = (state ^ _mixed(int.from_bytes(data[at : at + 8], "little"))) * _M & _MASK
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    state = (state ^ state >> 47) * _M & _MASK
    return state ^ state >> 47


def _mixed(block: int) -> int:
    block = block * _M & _MASK
    return (block ^ block >> 47) * _M & _MASK


@cache
def word_with_hash(target: int, number: int = 0) -> str:
    """A word of sixteen letters with this hash; another one for each number."""
    rng = np.random.default_rng([target, number])
    multiplier, inverse, shift = np.uint64(_M), np.uint64(_M_INVERSE), np.uint64(47)
    end = target ^ target >> 47
    end = end * _M_INVERSE & _MASK
    before = np.uint64((end ^ end >> 47) * _M_INVERSE & _MASK)
    start = np.uint64(_SEED ^ (_LENGTH * _M & _MASK))
    while True:
        firsts = rng.choice(_LETTERS, (1 << 18, 8))
        with np.errstate(over="ignore"):
            blocks = firsts.view("<u8").ravel() * multiplier
            state = (start ^ (blocks ^ blocks >> shift) * multiplier) * multiplier
            wanted = (state ^ before) * inverse
            lasts = ((wanted ^ wanted >> shift) * inverse).astype("<u8").view(np.uint8).reshape(-1, 8)
        for at in np.flatnonzero(_IS_LETTER[lasts].all(axis=1)):
            return (firsts[at].tobytes() + lasts[at].tobytes()).decode()


def word_like(other: str, number: int = 0) -> str:
    """Another word with the same hash."""
    return word_with_hash(hash64(other), number)
