"""The options of a multiple-choice question, and which of them a response votes for.

A group is shown the options by their words, in an order of its own, and replies with the words of one: small models
choose letters by where they stand (of 150 replies 113 were "A"). The order is a function of the options and of the
group's own text, never of its place among the groups, which a passage that is put in changes. So a group's prompt
depends on nothing but its text and the question, which is what radius and certificates take isolation to be. The paper
asks for letters, in the order of the question (`options="letters"`).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from robustrag_integrations._util.normalise import compatible, plain_words, signed_words
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.answer_text import answer_text, unboxed, without_citations
from robustrag_integrations.text.languages import NEGATIONS, listed
from robustrag_integrations.text.prompts import NO_INFORMATION, PromptSet, format_choices, option_label

_LEAD = (
    r"(?:\d{1,2}[.)] |(?:[-•>] ?){1,2})?"
    r"(?:(?:it is|it's|that is|that's|(?:it|that) would be|select|choose|correct:"
    r"|i(?: would|'d)? (?:choose|select|pick|go with|say)) )?"
    r"(?:(?:the )?(?:correct |right |best )?(?:answer|option|choice)\b(?: is|:)? ?)?"
)
_TRAIL = (
    r"(?:[.:)].*|[,;]? ?(?:because|since|as) .*"
    r"|is (?:the )?(?:correct|right|best)(?: (?:answer|option|choice))?[.!]?|[^\w?+#-]{0,4})?"
)
_ALONE = re.compile(r"(?<![\w'’+-])[A-Z0](?![\w'’+#-])")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)")
_AT_THE_END = re.compile(r"(?<![\w'’°+-])([A-Z0])[^\w?+#-]{0,4}\Z")  # "La respuesta es (B)."
_LETTER = re.compile(rf"{_LEAD}[^\w?+#-]{{0,4}}([a-z0])[^\w?+#:.-]{{0,4}}{_TRAIL}")
# A line with one of these that only names an option may mean any other one: "anything but Rome", "not Paris".
_TURNING = NEGATIONS | frozenset(listed("but except rather instead other than wrong false incorrect untrue less more"))
_FIRST_PART = re.compile(r"[,;.:(\u2013\u2014]| - ")  # "Lyon, not Paris"
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

    Where they stand before the passages, which have to be the same for all groups up to there, they have one order.
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

    Its first line counts, or where that is unclear its last one: it is an option's text, or begins with one ("Lyon, not
    Paris"), or names exactly one and holds no negation. It may be a letter ("B", "(b)", "Answer: B", "B. Lyon", "Die
    Antwort ist B."), which is a place in the question, unless an option reads like a letter. Signs count: "-5" does
    not name "5", nor "C++" "C". Reasoning is left out, and so is the frame of JSON, `<answer>` or LaTeX's `\boxed{}`
    around an answer. A function of this one response.
    """
    found = _read(response, choices)
    return found if found is not None and found < len(choices) else None


def is_unclear(response: str, choices: Sequence[str]) -> bool:
    """True if a response neither chooses an option nor abstains: it names none of them, or several."""
    return _read(response, choices) is None


def _read(response: str, choices: Sequence[str]) -> int | None:
    """Return the option, where "no information" comes after all others; None where it is unclear which."""
    said = without_citations(unboxed(answer_text(_visible(response)))).strip()
    last = said[-_LOOKED_AT:].rpartition("\n")[2]
    for part in dict.fromkeys((said[:_LOOKED_AT].partition("\n")[0], last, _SENTENCE_END.split(last)[-1])):
        if (
            not part.endswith(":") and (found := _read_line(part, choices)) is not None
        ):  # "Answer:", and then the answer
            return found
    return None


def _read_line(line: str, choices: Sequence[str]) -> int | None:
    line = compatible(line).strip()
    given, options = _as_compared(line), _options(tuple(choices))
    if given in options:
        return options.index(given)
    labels = _labels(options)
    if labels and (match := _LETTER.fullmatch(" ".join(line.casefold().replace("’", "'").split()))):
        letter, behind = match.group(1).upper(), _as_compared(line[match.end(1) :].lstrip(").:* "))
        if behind in options:  # "(A) Lyon": the words count, as letters may not have been shown
            return options.index(behind)
        return labels.index(letter) if letter in labels else None
    if is_abstention(line) or _NOTHING_FOUND in given:
        return len(choices)
    led_by = _as_compared(_FIRST_PART.split(line, maxsplit=1)[0])
    if led_by in options and led_by != given:
        return options.index(led_by)
    named = [i for i, option in enumerate(options) if f" {option} " in f" {given} "]
    whole = [i for i in named if not any(i != j and f" {options[i]} " in f" {options[j]} " for j in named)]
    meant = whole[0] if len(whole) == 1 else None
    if meant is not None and _denies(f" {given} ".replace(f" {options[meant]} ", " ")):
        return None
    if (ending := _AT_THE_END.search(line)) and ending[1] in labels:
        if meant is not None and f" {given}".endswith(f" {options[meant]}"):  # "vitamin C"
            return meant
        letter, is_sole = labels.index(ending[1]), sum(found in labels for found in _ALONE.findall(line)) == 1
        return letter if meant in (None, letter) and is_sole and not _denies(given) else None
    return meant


def _denies(words: str) -> bool:
    return not _TURNING.isdisjoint(words.replace("n t ", " not ").split())


def _visible(text: str) -> str:
    """Return a text without invisible characters: zero-width ones, marks of direction, control characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\r\t" or unicodedata.category(c) not in _UNSEEN)


_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_NOTHING_FOUND = plain_words(NO_INFORMATION)


def _as_compared(text: str) -> str:
    return signed_words(text) or " ".join(text.split())


@lru_cache(maxsize=256)
def _options(choices: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_as_compared, choices))


@lru_cache(maxsize=256)
def _labels(options: tuple[str, ...]) -> tuple[str, ...]:
    labels = tuple(option_label(i) for i in range(len(options) + 1))
    return () if any(option.upper() in labels for option in options) else labels
