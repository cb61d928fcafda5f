"""The numbers and caveats of an answer or a certificate in words: one wording for terminals, pages and frameworks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def count_of(count: int, noun: str) -> str:
    """Return a number of things in words: "1 source", "1,200 sources"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def some_of(told: Iterable[str], count: int, most: int) -> str:
    """Return the first of so many texts in a line, and how many more there are; no other is looked at."""
    return "; ".join(islice(told, most)) + (f"; and {count - most} more" if count > most else "")


def radius_in_words(radius: int, whole: int, unit: str = "sources") -> str:
    """Put a radius into words, of an answer from this many sources or passages."""
    one, named = "source", ""
    if unit == "passages":
        one, named = "passage", "; none names its origin, so that one author may have written several"
    if radius == 0:
        return f"no guarantee: replacing one {one} might change the answer"
    replaced = f"any one {one}" if radius == 1 else f"any {radius} {one}s"
    return f"replacing {replaced} of the {whole} retrieved cannot change this answer{named}"


def repeats_in_words(model: str, why: str) -> str:
    """Say whether a model is reproducible, and how that is known."""
    return f"{'determinism unknown' if model == 'unknown' else model} ({why})"


def standing_in_words(tau: float, certified: bool) -> str:
    """Put tau into words; an undecided one is never called a guarantee."""
    if not certified:
        return "not decided: no proof, and no attack found"
    if tau > 0:
        return "proven: no such attacker can do worse"
    return "no guarantee against this attacker"


def conversation_warnings(answers: int, tool_results: int) -> tuple[str, ...]:
    """Return the warning where prompts show, or the question comes from, a conversation with earlier answers or tool
    results."""
    held = [count_of(n, what) for n, what in ((answers, "earlier answer"), (tool_results, "tool result")) if n]
    if not held:
        return ()
    return (
        f"the conversation before the question holds {' and '.join(held)}: the radius is about the passages of this "
        "question, and does not count what was said there",
    )
