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
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.certification.isolated import TooManyTexts, Unbounded, certify_sizes, without_calls
from robustrag_integrations.defenses.agreement.lists import CountedList, Items, ListSettings, text_of
from robustrag_integrations.prompts import ABSTENTION

_MOST_TEXTS = 1 << 14


def list_certification_plan(
    question: Question, settings: ListSettings, *, same_batches: bool = False
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question, the smallest first."""
    prompts_of = partial(settings.isolated_prompts, question.query)
    step = without_calls(partial(_possible, settings.min_support))
    read = settings.reading(question.query)
    return certify_sizes(question, settings.quorum_rule, prompts_of, read, step, same_batches=same_batches)


def possible_items(made: CountedList, corrupted: int) -> dict[str, list[str | None]]:
    """Return the items that can be shown next to so many corrupted groups, in their order.

    Args:
        made: the lists of the untouched groups.
        corrupted: m'.

    Returns:
        The wordings in which each can stand; None among them where the item may be missing.

    Raises:
        Unbounded: the corrupted groups alone can bring about any text.
    """
    if corrupted > made.answering and corrupted >= made.min_support:
        raise Unbounded("can have any item shown")
    found: dict[str, list[str | None]] = {}
    for key, count in sorted(made.counts.items()):
        most, listing = count + corrupted, made.answering + corrupted
        if 2 * most <= listing or most < made.min_support:
            continue
        votes = made.wordings(key)
        ahead = max(votes.values())
        if corrupted >= ahead:
            raise Unbounded("can decide how an item is written")
        is_shown = 2 * count > listing and count >= made.min_support
        wordings = [form for form in votes if votes[form] + corrupted >= ahead] if corrupted else [made.wording(key)]
        found[key] = [*wordings, *([] if is_shown else [None])]
    return found


def _possible(min_support: int, said: Sequence[Items | None], case: BenignCase, found: Findings) -> dict[str, str]:
    made = CountedList(tuple(said), (1,) * len(said), min_support)
    choices = possible_items(made, case.corrupted)
    if not found.evidence:
        found.evidence = {
            "threshold": max((made.answering + case.corrupted) // 2 + 1, min_support),
            "corrupted_groups": case.corrupted,
            "untouched_groups": len(case.groups),
            "always_kept": [made.wording(key) for key, wordings in choices.items() if None not in wordings],
            "contested": [made.wording(key) for key, wordings in choices.items() if None in wordings],
        }
    if prod(map(len, choices.values())) > _MOST_TEXTS:
        raise TooManyTexts(
            f"the attacker decides on {count_of(len(choices), 'item')}, more than {_MOST_TEXTS:,} texts; raise "
            "min_support, or ask a narrower question"
        )
    return dict.fromkeys(_texts(choices.values()), "items that enough groups can give")


def _texts(choices: Iterable[list[str | None]]) -> Iterator[str]:
    for chosen in product(*choices):
        yield text_of([form for form in chosen if form is not None]) or ABSTENTION
