"""Rules that tell whether two short answers contradict each other, and whether one implies the other.

The papers ask a model of natural-language inference; any such model is a function of (question, first, second). Without
one, these rules compare words. They know no paraphrase: "5 km" and "five kilometres" contradict each other here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations.evaluation.baselines.base import Function, probability
from robustrag_integrations.text.languages import listed

CONTRADICTION = 0.5  # a probability from which on two answers contradict each other
_LONGEST = 2000  # characters of an answer that are compared
_FUNCTION_WORDS = frozenset(
    listed(
        "a an the this that these those i you he she it we they me him her us them my your his its our their "
        "and or but nor so if as than then of in on at to by for from with without into onto over under about "
        "is are am was were be been being do does did has have had can could shall should would must not no "
        "yes there here which who whom whose what when where why how also"
    )
)


def differ(question: str, first: str, second: str) -> bool:
    """The rule for contradiction: each answer has a word that the other lacks.

    Function words and the question's own words count for nothing. An answer without any other word contradicts none.
    """
    one, other = told(question, first), told(question, second)
    return bool(one - other) and bool(other - one)


def share_said(question: str, first: str, second: str) -> float:
    """The rule for entailment: the share of the second answer's words that the first one has."""
    one, other = told(question, first), told(question, second)
    return len(one & other) / len(other) if other else 0.0


def told(question: str, answer: str) -> frozenset[str]:
    """Return the words of an answer but those of the question and function words."""
    asked = set(plain_words(question[:_LONGEST]).split())
    return frozenset(plain_words(answer[:_LONGEST]).split()) - asked - _FUNCTION_WORDS


def judged(name: str, judge: Function, question: str, answers: Sequence[str]) -> list[list[float]]:
    """n x n: what the judge gives for every ordered pair of answers; 0 on the diagonal. Equal pairs are judged once."""
    known = {
        (first, second): probability(name, judge(question, first, second))
        for first, second in dict.fromkeys(product(answers, repeat=2))
    }
    return [[0.0 if i == j else known[a, b] for j, b in enumerate(answers)] for i, a in enumerate(answers)]


def conflicts(judge: Function, question: str, answers: Sequence[str]) -> list[list[bool]]:
    """n x n, symmetric: which answers contradict each other, read either way. Equal answers never do."""
    found = judged("contradicts", judge, question, answers)
    return [
        [a != b and max(found[i][j], found[j][i]) >= CONTRADICTION for j, b in enumerate(answers)]
        for i, a in enumerate(answers)
    ]
