"""Made-up names and plain values.

Names are built from syllables, so that a model cannot know them and has to copy. A fixed share of the syllables is held
out: training never shows them, evaluation can be made of nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


_ONSETS = words("b d f g h j k l m n p r s t v z br dr st tr")
_VOWELS = words("a e i o u")
_END_ONSETS = words("b d g k l m n r s t v z th nd")
_CODAS = ["", "n", "r", "l", "s"]
_HELD_OUT_PERCENT = 12


def _is_held_out(syllable: str) -> bool:
    return zlib.crc32(b"reader:" + syllable.encode()) % 100 < _HELD_OUT_PERCENT


def _split(syllables: list[str]) -> dict[bool, list[str]]:
    return {held_out: [s for s in syllables if _is_held_out(s) == held_out] for held_out in (False, True)}


_STARTS = _split([o + v for o in _ONSETS for v in _VOWELS])
_ENDS = _split([o + v + c for o in _END_ONSETS for v in _VOWELS for c in _CODAS])

WORDS: dict[str, list[str]] = {
    "colour": words("red blue green yellow black white brown grey silver golden scarlet violet"),
    "material": words("oak granite marble iron bronze glass limestone steel sandstone brick slate cedar"),
    "animal": words("wolf eagle otter falcon bear lynx heron fox turtle owl horse swan"),
    "food": words("berries insects fish seeds moss roots shrimp leaves worms snails nuts grass"),
    "dish": words("soup bread cheese stew pancakes dumplings pudding sausages porridge noodles"),
    "instrument": words("violin piano cello flute trumpet harp guitar drum oboe clarinet organ accordion"),
    "job": words("doctor painter architect sculptor chemist pilot lawyer teacher poet baker sailor weaver"),
    "product": words("bicycles lamps clocks cameras carpets boots pianos engines mirrors candles ropes kites"),
    "goods": words("copper salt tea coffee wool sugar wheat timber silk honey amber coal"),
    "genre": words("jazz folk blues rock soul swing opera gospel"),
    "habitat": words("swamps caves deserts reefs forests meadows marshes cliffs lagoons dunes"),
    "month": words("January February March April May June July August September October November December"),
}


@dataclass(frozen=True)
class Namer:
    """Draws names and values.

    Attributes:
        random: the source of chance.
        held_out: build names from held-out syllables only (evaluation) or from the others only (training).
        wild: share of name stems made of random letters instead, for names that follow no pattern.
    """

    random: Random
    held_out: bool = False
    wild: float = 0.08

    def value(self, kind: str) -> str:
        """A random value or name of a kind: a key of `WORDS` or of `_MAKERS`."""
        if kind in WORDS:
            return self.random.choice(WORDS[kind])
        return _MAKERS[kind](self)

    def other(self, kind: str, *taken: str) -> str:
        """A value of the kind that is none of the taken ones."""
        while (value := self.value(kind)) in taken:
            pass
        return value

    def stem(self, longest: int = 3) -> str:
        """One capitalised word of two or three syllables."""
        r = self.random
        if not self.held_out and r.random() < self.wild:
            length = r.randint(4, 7)
            return "".join(r.choice("aeiou" if i % 2 else "bcdfghjklmnpqrstvwxyz") for i in range(length)).title()
        middle = r.choice(_STARTS[self.held_out]) if longest > 2 and r.random() < 0.25 else ""
        return (r.choice(_STARTS[self.held_out]) + middle + r.choice(_ENDS[self.held_out])).title()

    def person(self) -> str:
        """First and last name."""
        return f"{self.stem(2)} {self.stem(2)}"

    def place(self) -> str:
        """A town or island."""
        return self.stem() + self.random.choice(["", "", "", "", "ton", "port", "berg", "holm"])

    def with_noun(self, *nouns: str) -> str:
        """A stem and one of the nouns."""
        return f"{self.stem()} {self.random.choice(nouns)}"

    def number(self, low: int, high: int, unit: str = "") -> str:
        """A whole number, with its unit if it has one."""
        return f"{self.random.randint(low, high)}{unit}"


_MAKERS: dict[str, Callable[[Namer], str]] = {
    "person": Namer.person,
    "town": Namer.place,
    "island": Namer.place,
    "company": lambda n: n.with_noun("Works", "Company", "Brothers", "Mills"),
    "mountain": lambda n: n.with_noun("Peak", "Mountain", "Ridge"),
    "river": lambda n: n.with_noun("River"),
    "ship": lambda n: n.random.choice(["the Star of {}", "the Queen of {}", "the {}"]).format(n.stem()),
    "book": lambda n: n.random.choice(["The Road to {}", "The House of {}", "The Winter of {}"]).format(n.stem()),
    "band": lambda n: n.with_noun("Trio", "Quartet", "Band"),
    "building": lambda n: n.with_noun("Tower", "Hall", "Bridge", "Light", "Castle", "Museum"),
    "bird": lambda n: f"the {n.stem().lower()} " + n.random.choice(["finch", "gull", "hawk", "wren"]),
    "festival": lambda n: n.with_noun("Festival", "Fair"),
    "university": lambda n: n.with_noun("University", "College"),
    "prize": lambda n: n.with_noun("Prize", "Medal"),
    "language": lambda n: n.stem(2) + n.random.choice(["ish", "ese", "ian"]),
    "year": lambda n: n.number(1500, 2020),
    "metres": lambda n: n.number(20, 8900, " metres"),
    "kilometres": lambda n: n.number(20, 3900, " kilometres"),
    "tonnes": lambda n: n.number(20, 9900, " tonnes"),
    "people": lambda n: n.number(100, 99999),
}
