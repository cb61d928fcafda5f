"""Questions that take several look-ups: "Who founded the company that makes Tarsk?"

A fixed list of question templates is asked one after another, each over passages of its own; `{1}` in a later one is
the answer to the first. Every hop is answered robustly, and what goes from one hop into the next is the *key* of the
answer alone (`answer_key`): never a passage, a reply, or the way somebody wrote it.

Theorem. Let r be the least radius of all hops, and O any set of at most r origins. Replace the texts of the origins in
O, in every hop at once, with anything. Then each hop is asked the same question, and the last one gives the same answer
up to case, spacing and the punctuation at its ends. Where a hop refuses what rests on too few sources (`min_radius`,
`RobustAnswer.for_prompt`), the run may end there in an abstention, but never in another answer.

Proof, by induction. The templates are a function of the question alone, so the first hop is asked the same. Let hop i
be asked the same question as in the clean run. Its groups are disjoint by origin, so replacing the texts of O replaces
at most |O| <= r <= r_i of its groups. By the guarantee of its defence the answer and its key stay, or it is withheld,
which ends the run. The next question is a function of the templates and of the keys so far, and is the same.

It rests on this: one origin is at most one group of each hop (`group_by="origin"` or `"site"`; else the radius is 0).
Replacing a text changes neither which passages of other origins a hop retrieves nor who they are from. With weights, r
and O are counted in votes. With a model that samples, all of it is about one run (`RobustAnswer.determinism`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, TypeAlias

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import RobustAnswer, as_answer
from robustrag_integrations.grouping.origins import origin_named
from robustrag_integrations.plans.asking import check_query
from robustrag_integrations.replies.keys import key_of

MOST_HOPS = 10
LONGEST_KEY = 200  # characters of an answer that go into another question

Report: TypeAlias = RobustAnswer | Mapping[str, Any]
Ask: TypeAlias = Callable[[str], Report | Awaitable[Report]]
Decompose: TypeAlias = Callable[[str], Iterable[str]]

_SLOT = re.compile(r"\{(\d{1,3})\}")
_LONGEST_KEPT = 3  # letters of a word whose case a key keeps, but for the first word's first letter


@dataclass(frozen=True)
class Hop:
    """One look-up: the question as it was asked, its answer, and the key that stands in for it in later questions."""

    question: str
    answer: RobustAnswer
    key: str | None = None

    @property
    def radius(self) -> int:
        """The radius of this hop's answer."""
        return self.answer.radius


@dataclass(frozen=True)
class MultiHopAnswer:
    """The answer to a question that took several look-ups.

    Attributes:
        hops: the look-ups, in order. One that abstains is the last.
        radius: the number of origins that may have lied, in all hops at once, without changing the answer.
        caveat: the reason for a radius below that of every hop, in words; None for none.
    """

    query: str
    hops: tuple[Hop, ...]
    radius: int
    caveat: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What weakens the answer or its radius, or why a hop abstained; those of a hop begin with its number."""
        said = [f"hop {number}: {w}" for number, hop in enumerate(self.hops, 1) for w in hop.answer.warnings]
        return (*filter(None, [self.caveat]), *said)

    @property
    def text(self) -> str:
        """The answer of the last hop; the abstention's words if one abstained."""
        return self.hops[-1].answer.text

    @property
    def abstained(self) -> bool:
        """True if a hop abstained."""
        return self.hops[-1].answer.abstained

    def explain(self) -> str:
        """A readable account for a terminal, with that of each hop below."""
        holds = f"replacing the texts of any {count_of(self.radius, 'origin')} in all hops at once changes nothing"
        lines = [
            f"Question: {printable(self.query, 200)}",
            f"Answer:   {printable(self.text, 400)}",
            f"Radius:   {self.radius}  ({holds if self.radius else 'no guarantee'})",
            *([f"Warning:  {printable(self.caveat)}"] if self.caveat else []),
        ]
        return "\n".join([*lines, *(f"\nHop {n}\n{hop.answer.explain()}" for n, hop in enumerate(self.hops, 1))])


class MultiHop:
    """Answers questions in several look-ups, each of them robustly.

    Guarantee: replacing the texts of any `answer.radius` origins, in all hops at once, leaves the same answer up to
    case, spacing and the punctuation at its ends (theorem and premises: the module's docstring).

    Args:
        ask: answers one question: a function to a `RobustAnswer` or a report of one, or a coroutine function. It
            retrieves, and answers with a defence that groups by origin. What one source alone says goes into no next
            question, unless the defence has `allow_sole_source=True` (`RobustAnswer.for_prompt`).
        decompose: the questions to ask, in order; or a function from the user's question to them. `{1}` stands for the
            answer to the first, `{0}` for the user's question. The function must not look at passages.

    Examples:
        >>> hops = MultiHop(ask, ["Which company makes Tarsk?", "Who founded {1}?"])
        >>> answer = hops.answer("Who founded the company that makes Tarsk?")
        >>> answer.text, answer.radius
    """

    def __init__(self, ask: Ask, decompose: Sequence[str] | Decompose) -> None:
        self._ask = ask
        self._decompose = decompose if callable(decompose) else partial(_same, _checked(decompose))

    def answer(self, question: str) -> MultiHopAnswer:
        """Answer a question; what `ask` raises is raised here."""
        return driven(self._steps(question), _performed)

    async def aanswer(self, question: str) -> MultiHopAnswer:
        """`answer` without blocking the event loop; functions that are no coroutines run in threads."""
        return await adriven(self._steps(question), _aperformed)

    def _steps(self, question: str) -> Generator[Callable[[], Any], Any, MultiHopAnswer]:
        check_query(question)
        templates = _checked((yield partial(self._decompose, question)))
        hops: list[Hop] = []
        words = [question]
        for number, template in enumerate(templates, 1):
            # All answers at once: braces in one are text.
            asked = _SLOT.sub(lambda slot: words[int(slot[1])], template)
            answer = as_answer((yield partial(self._ask, asked)))
            if number < len(templates):
                answer = answer.for_prompt()
            if number == len(templates) or answer.abstained:
                hops.append(Hop(asked, answer))
                break
            key = answer_key(answer)
            hops.append(Hop(asked, answer, key))
            words.append(as_name(key))
        radius = min(hop.radius for hop in hops)
        if len(hops) == 1 or not radius or _counts_origins(hops):
            return MultiHopAnswer(question, tuple(hops), radius)
        caveat = (
            "the radius is 0: it is of all hops only if each counts origins or sites (group_by, weights alike in all, "
            "passages with their source), and no earlier one gives a list"
        )
        return MultiHopAnswer(question, tuple(hops), 0, caveat)


def answer_key(answer: RobustAnswer) -> str:
    """Return the answer without what `radius` leaves open: its case, spacing, and the punctuation at its ends.

    The same within the radius, so that a question may hold it. One line, of at most 200 characters.
    """
    agreed = [claim.text for claim in answer.claims] or [str(answer.evidence.get("agreed", answer.text))]
    return printable(", ".join(key_of(text) or text for text in agreed), LONGEST_KEY)


def as_name(key: str) -> str:
    """Return a key with the capitals that names have and keys fold (`key_of`); a function of the key alone.

    Nothing else changes: of short words and of code, case may be all.
    """
    words = [
        word[:1].upper() + word[1:] if word.rstrip(",").isalpha() and (len(word) > _LONGEST_KEPT or not place) else word
        for place, word in enumerate(key.split(" "))
    ]
    named = " ".join(words)
    return named if key_of(named) == key_of(key) else key


def _checked(templates: Iterable[str]) -> tuple[str, ...]:
    """Return question templates as a tuple, checked: no `{number}` but of an earlier question."""
    if isinstance(templates, str):
        raise TypeError(f"the questions must be a list of str, got one str: {templates!r:.60}; wrap it: [...]")
    found = tuple(templates)
    if not 1 <= len(found) <= MOST_HOPS:
        raise ValueError(f"{count_of(len(found), 'question')} to ask; give 1 to {MOST_HOPS}")
    for number, template in enumerate(found, 1):
        check_query(template)
        for slot in map(int, _SLOT.findall(template)):
            if slot >= number:
                raise ValueError(
                    f"question {number}, {template!r:.80}, holds {{{slot}}}, which answers no earlier question; "
                    "{1} is the answer to the first, {0} the user's question"
                )
    return found


def _same(templates: tuple[str, ...], question: str) -> tuple[str, ...]:
    return templates


def _performed(step: Callable[[], Any]) -> Any:
    result = step()
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError("ask is asynchronous; use `await aanswer(question)`")
    return result


async def _aperformed(step: Callable[[], Any]) -> Any:
    result = await asyncio.to_thread(step)
    return await result if isawaitable(result) else result


def _counts_origins(hops: Sequence[Hop]) -> bool:
    alike = len({hop.answer.radius_unit == "votes" for hop in hops}) == 1
    return alike and not any(h.answer.claims for h in hops[:-1]) and all(_is_by_origin(h.answer) for h in hops)


def _is_by_origin(answer: RobustAnswer) -> bool:
    """True if every origin is in one group of an answer at most; passages without one are an origin of their own."""
    named = [
        {origin.name if (origin := origin_named(name)) else name for name in group.origins} for group in answer.groups
    ]
    return (
        answer.settings.get("group_by", "origin") in ("origin", "site")
        and sum(not names for names in named) <= 1
        and sum(map(len, named)) == len(set().union(*named))
    )
