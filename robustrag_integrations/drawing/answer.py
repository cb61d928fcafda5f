"""Draws an answer with each source's reply, the counts and what was outvoted; and a certificate with its worst case.

What is said in words they say themselves (`account()`), as on a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustrag_integrations._util.display import one_line, visible
from robustrag_integrations._util.words import standing_in_words
from robustrag_integrations.drawing.elements import Element, h, table

PASSAGE, RESPONSE = 1500, 800  # characters that are shown of each; a cut part says so
SOURCES = 100
_FACT, _COUNTS, _LONGEST_BAR, _RESPONSES = 600, 20, 40, 10


def answer_parts(answer: Any, passages: Sequence[Mapping[str, Any]] | None = None) -> tuple[Element, ...]:
    """Draw an answer, top to bottom: the text, the facts, the evidence, the sources.

    Args:
        answer: a `RobustAnswer`.
        passages: those of the defence, in order: `text`, `source`, and `planted` where an attack is known.
    """
    note = h("span", "abstained", cls="tag quiet") if answer.abstained else None
    text = h("span", visible(answer.text, RESPONSE), cls="answer-text", dir="auto")
    return (
        h("p", text, note, cls="given"),
        *account_parts(answer),
        *_sources(answer, passages),
    )


def certificate_parts(found: Any) -> tuple[Element, ...]:
    """Draw a `Certification`."""
    tag = "tag good" if found.certified and found.tau > 0 else "tag quiet"
    standing = h("span", standing_in_words(found.tau, found.certified), cls=tag)
    head = h("p", h("span", f"at worst {found.tau:g}", cls="answer-text"), " ", standing, cls="given")
    rows = [
        h(
            "tr",
            h("td", f"{r.score:g}"),
            h("td", "(no answer)" if r.text is None else visible(r.text, 400), dir="auto", cls="response"),
            h("td", one_line(r.cause, 160), cls="note"),
        )
        for r in found.responses[:_RESPONSES]
    ]
    left = len(found.responses) - len(rows)
    caption = f"What this attacker can cause ({'all' if found.complete else 'some'} of it, worst first"
    caption += f"; {left} more are not shown)" if left else ")"
    responses = [table(("Score", "Response", "Cause"), rows, caption, "responses")] if rows else []
    return (head, *account_parts(found), *responses)


def account_parts(subject: Any) -> tuple[Element, ...]:
    """Draw what an answer or certificate says of itself: facts, warnings, and what was counted."""
    told = [(name, text) for name, text in subject.account() if name not in ("Question", "Answer", "Warning")]
    return (facts(told), *warnings(subject.warnings), *_counts(subject.evidence))


def facts(pairs: Sequence[tuple[str, str]]) -> Element:
    """Draw names and values side by side."""
    rows = (h("div", h("dt", name), h("dd", visible(value, _FACT)), cls="fact") for name, value in pairs)
    return h("dl", *rows, cls="facts")


def warnings(messages: Sequence[str]) -> tuple[Element, ...]:
    """Draw the warnings that weaken the guarantee; nothing without warnings."""
    return (h("ul", *(h("li", visible(m, 400)) for m in messages), cls="warnings"),) if messages else ()


def _counts(evidence: Mapping[str, Any]) -> tuple[Element, ...]:
    """Draw a row per keyword or option, most frequent first, with a mark for each source; nothing without counts."""
    counts = sorted((evidence.get("counts") or {}).items(), key=lambda item: (-item[1], item[0]))
    if not counts:
        return ()
    threshold, most = evidence.get("threshold"), counts[0][1]
    kept = {*(evidence.get("retained") or ()), *(evidence.get("always_retained") or ())}
    rows = []
    for word, count in counts[:_COUNTS]:
        status = "kept" if word in kept or (threshold is None and count == most) else "lost"
        name = h("th", one_line(word, 80), scope="row", dir="auto")
        bar = h("td", "▮" * max(0, min(int(count), _LONGEST_BAR)), cls="bar", aria_hidden="true")
        rows.append(h("tr", name, bar, h("td", f"{count:g}"), cls=status))
    caption = "Votes" if threshold is None else f"Sources that said each; kept from {threshold:g} on"
    total = max(len(counts), evidence.get("distinct_keywords") or 0)
    caption += f"; {total - _COUNTS:,} rarer ones are not shown" if total > _COUNTS else ""
    return (table((), rows, caption, "counts"),)


def _sources(answer: Any, passages: Sequence[Mapping[str, Any]] | None) -> tuple[Element, ...]:
    if not answer.sources:
        return ()
    texts: list[Any] = [None] * len(answer.sources)
    if passages is not None:
        texts = [[passages[place] for place in g.positions if place < len(passages)] for g in answer.sources]
    rows = []
    for source, (number, names, status, said, note), found in zip(
        answer.sources[:SOURCES], answer.source_rows(), texts, strict=False
    ):
        planted = any(p.get("planted") for p in found or ())
        sources = [h("span", names, dir="auto", cls="source")] if found is None else map(_passage, found)
        cell = h("i", cls=f"cell {source.status}{' hit' * planted}", aria_hidden="true")
        cut = h("p", f"cut: {len(said):,} characters", cls="cut") if len(said) > RESPONSE else None
        rows.append(
            h(
                "tr",
                h("th", number, scope="row", cls="rank"),
                h("td", *sources, cls="sources"),
                h("td", cell, f" {status}", cls="verdict"),
                h("td", h("p", visible(said, RESPONSE), cls="response", dir="auto"), cut, cls="said"),
                h("td", visible(note, 300), cls="note"),
                cls=f"is-{source.status}{' is-planted' * planted}",
            )
        )
    left = len(answer.sources) - len(rows)
    asked = "All passages, in one prompt" if answer.method == "vanilla" else "Each source, in a prompt of its own"
    caption = asked + (f"; {left:,} more not shown" if left else "")
    meanings = (h("li", text) for text in answer.verdicts())
    return table(("No.", "Source", "Verdict", "Reply", "Note"), rows, caption, "replies"), h(
        "ul", *meanings, cls="note"
    )


def _passage(passage: Mapping[str, Any]) -> Element:
    text, size = passage["text"], len(passage["text"])
    mark = h("b", "planted", cls="tag planted") if passage.get("planted") else None
    head = h("span", one_line(passage.get("source") or "no source", 200), cls="source", dir="auto")
    cut = h("p", f"cut: {size:,} characters, the first {PASSAGE:,} are shown", cls="cut") if size > PASSAGE else None
    shown = h("pre", visible(text, PASSAGE) or "(empty)", cls="passage", dir="auto")
    return h("details", h("summary", mark, head), shown, cut, cls="passage-fold")
