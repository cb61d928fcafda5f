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
