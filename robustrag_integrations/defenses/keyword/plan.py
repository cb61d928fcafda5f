"""The plan of keyword aggregation (paper, section III-B, Algorithm 1).

ask every group alone                                 line 5
read the keywords of each reply                       line 7, `settings.py`
count, and keep what enough groups say                lines 8-13, `threshold.py`
ask again with these alone                            lines 14-15

If nothing is kept there is no answer, and no further call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustrag_integrations._util.words import count_of
from robustrag_integrations.defenses.agreement.linear_forms import Counted, HoldsPerBudget, Votes
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.threshold import Tally
from robustrag_integrations.grouping.warnings import FEW
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import PlanInput, ask_final, ask_groups, dissent_warnings
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps

_MOST_COUNTS = 200  # keywords in a report; a hostile reply may hold tens of thousands
_MOST_KEYWORDS = 50  # of one group


@dataclass(frozen=True)
class _Text(Counted):
    """The text that kept keywords give.

    Attributes:
        tally: the keywords, counted.
        tells: True if the text is what sources say, which each of them may change.
        aloud: per group whether its reply reasons aloud, where the final call was shown late for that reason. A stream
            that did not wait, as nobody reasons aloud any more, may end in an error.
    """

    tally: Tally
    tells: bool
    aloud: Sequence[bool] = ()

    @property
    def weights(self) -> Sequence[int]:  # type: ignore[override]
        """The groups' votes."""
        return self.tally.weights

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        """Tell for each r from 0 to `most`, or each budget of the votes, whether the text stays."""
        if self.tells:
            return np.array([r == 0 and pending == 0 for r in range(most + 1)])
        holds = self.tally.holding(votes, most, pending)
        if any(self.aloud):
            holds &= votes.worst_case_sums(np.array(self.aloud, np.int64), 0, most) >= 1
        return holds


def keyword_plan(inputs: PlanInput, settings: KeywordSettings) -> Steps[Draft]:
    """Run Algorithm 1: ask each group alone, keep the keywords that enough of them share, and let the model word these.

    The final prompt is a function of the kept keywords, and the answer of the final prompt: while the same keywords are
    kept, the answer stays to the letter.
    """
    query, read = inputs.query, settings.reading(inputs.query)

    def count(found: Sequence[frozenset[str] | None], votes: Sequence[int]) -> _Text:
        tally = Tally.of(found, settings.threshold, votes)
        return _Text(tally, settings.disagreement == "tell" and not tally.kept)

    prompts = settings.isolated_prompts(query, inputs.groups)
    heard = yield from ask_groups(inputs, prompts, read, settings.quorum_rule, count)
    outcome = count(heard.found, heard.votes)
    tally = outcome.tally
    final: Response | None = None
    text = ", ".join(tally.kept)
    if tally.kept and settings.final == "always":
        aloud = [response.aloud for response in heard.responses]
        prompt = settings.final_prompt(query, tally.kept)
        final = yield from ask_final(prompt, settings.cut_replies, whole=any(aloud), heard=heard)
        text = final.text or ""
        outcome = replace(outcome, aloud=aloud if final.aloud else ())
    abstained = not tally.kept or not text or settings.abstains(text)
    said = () if abstained else read(Response(text)).found or ()
    shown = () if abstained else tuple(keyword for keyword in tally.kept if keyword in said) or tally.kept
    unit = "groups" if all(group.weight == 1 for group in inputs.groups) else "votes"
    answer = inputs.answer(
        text,
        abstained=abstained,
        groups=heard.reports(lambda said: _said(said, shown)),
        evidence=_evidence(tally),
    )
    dissent = () if abstained else answer.dissent
    warnings = _warnings(tally, len(inputs.groups), unit)
    warnings += dissent_warnings(dissent, sum(found is not None for found in tally.said))
    answer = answer.changed(warnings=tuple(warnings))
    return Draft(answer.telling("Sources agree on nothing") if outcome.tells else answer, heard, outcome, final=final)


def _said(said: frozenset[str], answer: Sequence[str]) -> dict[str, Any]:
    """Return the report of a group: it supports the answer if it says all of its keywords, and differs if none.

    `answer` are the kept keywords that stand in the answer; none for an abstention.
    """
    words = tuple(keyword for keyword in answer if keyword in said)
    return {
        "status": ("supports" if len(words) == len(answer) else "variant") if words else "differs",
        "keywords": tuple(sorted(said)[:_MOST_KEYWORDS]),
        "words": words,
    }


def _warnings(tally: Tally, groups: int, unit: str) -> list[str]:
    """Warn of replies without keywords, of a threshold that one group reaches, and if nothing was agreed on."""
    found = []
    answering = [keywords for keywords in tally.said if keywords is not None]
    if unread := sum(not keywords for keywords in answering):
        found.append(
            f"extractor= found no keyword in {unread} of {len(answering)} replies, which count for nothing; use one "
            "that reads their language"
        )
    if groups >= FEW and answering and tally.needed <= 1:
        found.append(
            f"with {count_of(tally.answering, 'answering group')} the threshold is {tally.needed}: one group alone "
            "decides what is kept; raise alpha= and beta=, or retrieve more passages"
        )
    if len(answering) > 1 and not tally.kept:
        likeliest = max(tally.counts, key=lambda w: (tally.counts[w], len(w), w), default="")
        most = tally.counts.get(likeliest, 0)
        found.append(
            f"no keyword has the {tally.needed} {unit} that it takes ({tally.threshold.in_words}): {likeliest[:60]!r} "
            f"has {most}"
            if most > 1
            else f"no two of the {tally.answering} answering {unit} share a keyword"
        )
    return found


def _evidence(tally: Tally) -> dict[str, Any]:
    ranked = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "counts": dict(ranked[: max(_MOST_COUNTS, len(tally.kept))]),
        "distinct_keywords": len(tally.counts),
        "threshold": tally.needed,
        "rule": tally.threshold.in_words,
        "retained": list(tally.kept),
        **({"support": min(tally.counts[keyword] for keyword in tally.kept)} if tally.kept else {}),
        "answering": tally.answering,
    }
