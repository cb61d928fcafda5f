"""Certificate of lists: every text possible next to m' corrupted groups, without a model call.

Next to L untouched groups that list anything, c(i) of which give item i, e of the corrupted groups list something. An
item is shown in any case if 2 c(i) > L + e and c(i) >= s, and can be shown if that is so of c(i) + e. Both sets grow
apart with e, so that e = m' covers all others, and R is the sets that hold all of the first and any of the second. An
item that no untouched group gives can be shown if m' > L and m' >= s. Each item can stand in every wording that the
corrupted groups can bring ahead; where they outnumber an item's wordings, that is any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.isolated import certify_sizes
from robustrag_integrations.certification.requests import Asking
from robustrag_integrations.defenses.agreement.lists import CountedList, Items, ListSettings, text_of
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.prompts import ABSTENTION

_MOST_TEXTS = 1 << 14


def list_certification_plan(
    question: Question, settings: ListSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    prompts_of = partial(settings.isolated_prompts, question.query)
    certify_case = partial(_certify_case, settings.min_support)
    return (
        yield from certify_sizes(
            question, settings.quorum, prompts_of, settings.read, certify_case, same_batches=same_batches
        )
    )


def _certify_case(
    min_support: int,
    found: Findings,
    number: int,
    case: BenignCase,
    readings: Sequence[Reading[Items]],
    ledger: Ledger,
) -> Asking[None]:
    made = CountedList(tuple(reading.found for reading in readings), (1,) * len(readings), min_support)
    corrupted = case.corrupted
    if corrupted > made.answering and corrupted >= min_support:
        found.open_ended(f"{count_of(corrupted, 'corrupted group')} alone can have any item shown")
        return
    choices: dict[str, list[str | None]] = {}
    for key, count in sorted(made.counts.items()):
        if 2 * (count + corrupted) <= made.answering + corrupted or count + corrupted < min_support:
            continue
        votes = made.wordings(key)
        most = max(votes.values())
        if corrupted and corrupted >= most:
            found.open_ended(f"{count_of(corrupted, 'corrupted group')} alone can decide how an item is written")
            return
        is_shown = 2 * count > made.answering + corrupted and count >= min_support
        choices[key] = [form for form in votes if votes[form] + corrupted >= most] + ([] if is_shown else [None])
    if not found.evidence:
        found.evidence = {
            "threshold": (made.answering + corrupted) // 2 + 1,
            "corrupted_groups": corrupted,
            "untouched_groups": len(case.groups),
            "always_kept": [made.wording(key) for key, forms in choices.items() if None not in forms],
            "contested": [made.wording(key) for key, forms in choices.items() if None in forms],
        }
    if corrupted == 0:
        choices = {key: [form] for key, form in made.shown.items()}
    if prod(map(len, choices.values())) > _MOST_TEXTS:
        found.give_up(f"the attacker decides on {count_of(len(choices), 'item')}, too many texts to look at each")
        return
    texts = list(dict.fromkeys(_texts(choices.values())))
    for text, score in zip(texts, (yield from ledger.scored(texts)), strict=True):
        found.add(text, score, "a set of items that enough groups can give", number)


def _texts(choices: Iterable[list[str | None]]) -> Iterator[str]:
    for chosen in product(*choices):
        yield text_of([form for form in chosen if form is not None]) or ABSTENTION
