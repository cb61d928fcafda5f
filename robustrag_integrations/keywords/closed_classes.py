"""Short lists of English words."""

from __future__ import annotations


def listed(words: str) -> list[str]:
    """Return the words of a space-separated list."""
    return words.split()


# Not names, even when capitalised within a sentence.
FUNCTION_WORDS = frozenset(
    listed(
        "a an the this that these those i you he she it we they me him her us them my your his its our their "
        "and or but nor so if as than then of in on at to by for from with without into onto over under about "
        "is are am was were be been being do does did has have had can could shall should would must not no "
        "yes there here which who whom whose what when where why how also"
    )
)

ARTICLES = frozenset(listed("the a an"))

MONTHS = listed("january february march april may june july august september october november december")

ORDINALS = listed(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)

ONES = listed("one two three four five six seven eight nine")
TEENS = listed("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
