"""Links and images in an answer, and those among them that no supporting passage has.

Whatever shows an answer as Markdown or HTML fetches its images and offers its links; an address that carries words of
the conversation sends them away. A link that no passage has was made up, or is what an attacker ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.addresses import links_in

if TYPE_CHECKING:
    from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
    from robustrag_integrations.grouping.passages import Passage, PassageGroup

_SHOWN = 3
_AT_LEAST_IN_PART = ("supports", "mentions")


def unsupported_links(answer: RobustAnswer, passages: Sequence[str | Passage]) -> tuple[str, ...]:
    """Return the addresses in an answer that no passage of a supporting group has, compared to the letter.

    Where nothing is cited (`answer.citations`), such as in an answer of vanilla RAG or of decoding aggregation, any
    group that does not fail, abstain or lose counts as supporting.

    Args:
        answer: what a defence gave.
        passages: what it was made from, all of it and in the same order.
    """
    from robustrag_integrations.grouping.passages import as_passages

    texts = [passage.text for passage in as_passages(passages)]
    return _unsupported(answer, lambda group: [texts[place] for place in group.positions if place < len(texts)])


def unsupported_in_groups(answer: RobustAnswer, groups: Sequence[PassageGroup]) -> tuple[str, ...]:
    """`unsupported_links` of passages that are isolated already."""
    if not links_in(answer.text):
        return ()
    by_place = {
        place: passage.text for group in groups for place, passage in zip(group.ranks, group.passages, strict=False)
    }
    by_index = {group.index: group.text for group in groups}

    def texts_of(report: GroupReport) -> list[str]:
        return [by_place[p] for p in report.positions if p in by_place] or [by_index.get(report.index, "")]

    return _unsupported(answer, texts_of)


def _unsupported(answer: RobustAnswer, texts_of: Callable[[GroupReport], Iterable[str]]) -> tuple[str, ...]:
    links = links_in(answer.text)
    if not links:
        return ()
    cited = {citation.group for citation in answer.citations}
    supporting = [g for g in answer.groups if (g.index in cited if cited else g.status in _AT_LEAST_IN_PART)]
    known = {link for group in supporting for text in texts_of(group) for link in links_in(text)}
    return tuple(link for link in links if link not in known)


def link_warning(links: Sequence[str]) -> str:
    """Word the warning of an answer with such links."""
    named = ", ".join(printable(link, 120) for link in links[:_SHOWN])
    more = f" and {len(links) - _SHOWN} more" if len(links) > _SHOWN else ""
    return (
        f"the answer has a link or image that no supporting passage has: {named}{more}; do not fetch or render "
        "it, it may carry text of this conversation away"
    )
