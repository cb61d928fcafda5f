"""The options of a multiple-choice question, and which of them a response votes for.

A source is shown the options by their words, in an order of its own, and replies with the words of one: small models
choose letters by where they stand (of 150 replies 113 were "A"). The order is a function of the options and of the
source's own text, never of its place among the sources, which a passage that is put in changes. So a source's prompt
depends on nothing but its text and the question, which is what radius and certificates take isolation to be. The paper
asks for letters, in the order of the question (`options="letters"`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from robustrag_integrations._util.normalise import compatible, plain_words, signed_words
from robustrag_integrations.replies.keys import whole_answer
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.answer_text import without_citations
from robustrag_integrations.text.prompts import NO_INFORMATION, PromptSet, format_choices, option_label

_PAIRS = ("**", '""', "''", "``", "“”", "‘’", "«»", "()", "[]")  # around a vote
_BULLET = re.compile(r"\A[-•*]\s+(?=[^\W\d_])")  # before an option as it was shown; "- 5" may be minus five
_END = re.compile(r"(?<=[^\W_])[.,;:!。]+\Z")
_LETTER = re.compile(r"\(?([a-z0])(?:\)|[.:]|\)[.:])?(?:\s*[-–—]?\s*(\S.*))?")
_LOOKED_AT = 500  # characters; a vote is short, and a hostile response may be long


def check_choices(choices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the options of a multiple-choice question, checked to be 2 to 26 different non-empty texts."""
    if choices is None:
        raise ValueError("multiple choice needs choices=[...], the options to vote on")
    if isinstance(choices, str) or not isinstance(choices, Sequence) or not all(isinstance(c, str) for c in choices):
        raise TypeError(f"choices must be a list of str, got {choices!r:.80}")
    if not 2 <= len(choices) <= 26:
        raise ValueError(f"choices must be 2 to 26 options, got {len(choices)}")
    seen: dict[str, int] = {}
    for i, choice in enumerate(choices):
        if not choice.strip():
            raise ValueError(f"choices[{i}] is empty")
        if (first := seen.setdefault(_as_compared(choice), i)) != i:
            raise ValueError(
                f"choices[{first}]={choices[first]!r:.60} and choices[{i}]={choice!r:.60} are the same: case, spaces "
                "and punctuation make no difference. Leave one out"
            )
    return tuple(choices)


def shown_options(choices: Sequence[str], text: str, prompts: PromptSet) -> str:
    """Return the options as the prompt about a text shows them; "No information found" comes last.

    Where they stand before the passages, which have to be the same for all sources up to there, they have one order.
    """
    if prompts.options == "letters":
        return format_choices([*_with_letters(choices), NO_INFORMATION])
    body = prompts.isolated.body
    before = 0 <= body.find("{choices}") < body.find("{context}")
    seed = hashlib.sha256(b"" if before else text.encode("utf-8", "surrogatepass"))

    def place(choice: str) -> bytes:
        own = seed.copy()
        own.update(choice.encode("utf-8", "surrogatepass"))
        return own.digest()

    return format_choices([*sorted(choices, key=place), NO_INFORMATION], "words")


def _with_letters(choices: Sequence[str]) -> Sequence[str]:
    """The options, none of which may read like the letter of another one, or of "no information"."""
    places = {option_label(i).casefold(): i for i in range(len(choices) + 1)}
    for i, choice in enumerate(choices):
        other = places.get(choice.strip().casefold(), i)
        if other != i:
            whose = f"choices[{other}]" if other < len(choices) else "no information"
            raise ValueError(
                f"choices[{i}]={choice!r} reads like the letter of {whose} in a reply. Write it out, such as "
                f"{f'the letter {choice.strip()}'!r}, or ask for words: options='words'"
            )
    return choices


def parse_option(response: str, choices: Sequence[str]) -> int | None:
    r"""Return the option a response votes for; None for "no information", an abstention, or anything unclear.

    It is an option's words, or its letter, or both ("B", "(b)", "B. Lyon"), and nothing else: "Oslo (wrong)" is not
    "Oslo", nor are "- 5", ".5", "minus 5" and "5 million" "5". A letter is a place in the question, unless an option
    reads like one; beside words the words count, as letters may not have been shown. Case, quotation marks, "The answer
    is", citations and the frame of JSON, `<answer>` or LaTeX's `\boxed{}` are no part of it. A function of this one
    response.
    """
    found = _read(response, choices)
    return found if found is not None and found < len(choices) else None


def is_unclear(response: str, choices: Sequence[str]) -> bool:
    """True if a response neither chooses an option nor abstains: it names none of them alone."""
    return _read(response, choices) is None


def _read(response: str, choices: Sequence[str]) -> int | None:
    """Return the option, where "no information" comes after all others; None where it is unclear which."""
    said = compatible(without_citations(whole_answer(response))).strip()
    if len(said) > _LOOKED_AT:
        return None
    given, options = _vote_of(_BULLET.sub("", said)), _options(tuple(choices))
    if given in options:
        return options.index(given)
    labels = _labels(options)
    if labels and (match := _LETTER.fullmatch(given)):
        letter, behind = match[1].upper(), _vote_of(match[2] or "")
        if behind in options:
            return options.index(behind)
        if not behind and letter in labels:
            return labels.index(letter)
    return len(choices) if is_abstention(said) or _NOTHING_FOUND in plain_words(said) else None


def _vote_of(text: str) -> str:
    """Return a vote as it is compared: without case, quotation marks around it and punctuation behind it."""
    before, text = None, " ".join(text.casefold().split())
    while text != before:
        before, text = text, _END.sub("", text)
        for pair in _PAIRS:
            if len(text) > len(pair) and text.startswith(pair[0]) and text.endswith(pair[1]):
                text = text[1:-1].strip()
    return text


_NOTHING_FOUND = plain_words(NO_INFORMATION)


def _as_compared(text: str) -> str:
    return signed_words(text) or " ".join(text.split())


@lru_cache(maxsize=256)
def _options(choices: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_vote_of(compatible(choice)) for choice in choices)


@lru_cache(maxsize=256)
def _labels(options: tuple[str, ...]) -> tuple[str, ...]:
    labels = tuple(option_label(i) for i in range(len(options) + 1))
    return () if any(option.upper() in labels for option in options) else labels
