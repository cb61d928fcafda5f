"""Links and images in an answer, and those among them that no supporting passage has.

Whatever shows an answer as Markdown or HTML fetches its images and offers its links; an address that carries words of
the conversation sends them away. A link that no passage has was made up, or is what an attacker ordered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from robustrag_integrations._util.display import printable

if TYPE_CHECKING:
    from robustrag_integrations.answers.answer import GroupReport, RobustAnswer
    from robustrag_integrations.grouping.passages import Passage, PassageGroup

_LOOKED_AT = 200_000  # characters of an answer
_MOST_LINKS = 200
_SHOWN = 3
_AT_LEAST_IN_PART = ("supports", "mentions")

_ADDRESS = re.compile(
    r"(?:(?:https?|ftp|wss?)://|(?<![\w/])//(?=\w[\w-]{0,62}\.)|\bwww\.|\b(?:mailto|data|javascript|file|blob):(?=\S))"
    r"[^\s<>\"'`\\|{}^]{1,4000}",
    re.I,
)
_TARGET = re.compile(r"\]\(\s{0,9}<?((?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,4000})")
_ATTRIBUTE = re.compile(r"\b(?:src|href|poster|action)\s{0,9}=\s{0,9}[\"']?([^\s\"'<>]{1,4000})")
_DEFINED = re.compile(r"^[ \t]{0,9}\[[^\]\n]{1,200}\]:[ \t]{0,9}<?([^\s<>]{1,4000})", re.M)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_LABELLED = re.compile(
    r"!?\[([^\[\]\n]{0,1000})\]\(\s{0,9}<?(?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,4000}(?:\s[^()\n]{0,200})?\)"
)
_SIGN = re.compile(r"[:/=]|www\.|\]\(", re.I)  # in every match of these
_TAIL = ".,;:!?'\"*_~)]"


def links_in(text: str) -> tuple[str, ...]:
    """Return the addresses in a text, in order and without repeats: bare ones, and targets of Markdown and HTML.

    Args:
        text: an answer or a passage; characters that do not show are passed over.
    """
    looked_at = _INVISIBLE.sub("", text[:_LOOKED_AT])
    if _SIGN.search(looked_at) is None:
        return ()
    found = [(m.start(), m[0]) for m in _ADDRESS.finditer(looked_at)]
    for pattern in (_TARGET, _ATTRIBUTE, _DEFINED):
        found += [(m.start(1), m[1]) for m in pattern.finditer(looked_at)]
    bare = [address for _, link in sorted(found) if (address := _bare(link))]
    return tuple(dict.fromkeys(bare))[:_MOST_LINKS]


def without_links(text: str) -> str:
    """Return a text without the addresses in it; of a Markdown link or image its label stays.

    Args:
        text: a short one; it stays as it is if it has none.
    """
    if not links_in(text):
        return text
    text = _LABELLED.sub(r"\1", _INVISIBLE.sub("", text))
    patterns = [_TARGET, _DEFINED, _ADDRESS, *([_ATTRIBUTE] if "<" in text else [])]
    before = None
    while text != before:
        before = text
        for pattern in patterns:
            text = pattern.sub(" ", text)
    return text.strip()


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


def _bare(link: str) -> str:
    """The address without the punctuation that follows it; a bracket that it opened itself stays."""
    while link and link[-1] in _TAIL and not (link[-1] == ")" and link.count("(") >= link.count(")")):
        link = link[:-1]
    return link
