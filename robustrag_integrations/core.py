"""Isolate, vote, radius, on one page: read this first.

The defence in its smallest form, run by `python -m robustrag_integrations.core`. These are the functions that consensus
aggregation itself runs (`defenses/consensus`); what it adds is asking, reports and warnings.

The attacker writes some of the retrieved texts and knows everything, but cannot touch the other texts. So:

1. *Isolate.* Each source is asked about in a prompt of its own. Whatever a text says, it changes one reply.
2. *Vote.* A reply's whole answer is one vote. The answer with most votes wins, if enough sources give it.
3. *Radius.* How many replies can be anything at all, and the same answer wins still.

A certificate asks more: not about the texts that came, but about all texts that can take their place (`possible`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from robustrag_integrations.counting import Count, Rule, possible_winners
from robustrag_integrations.replies.keys import key_of, whole_answer
from robustrag_integrations.text.prompts import Prompt, PromptTemplate

ABSTAINS = None  # in place of a vote


@dataclass(frozen=True)
class Vote:
    """What one source says: the key that is compared (`replies/keys.py`), and its own words, which are shown."""

    key: str
    text: str = field(compare=False)


def isolate(template: PromptTemplate, question: str, texts: Iterable[str]) -> list[Prompt]:
    """Return one prompt per source, with that source's text and nothing of the others.

    Theorem: a prompt is a function of the question and of one text. So replacing r texts changes at most r prompts, and
    with a model that gives equal replies to equal prompts at most r replies.
    """
    return [template.render(context=text, query=question) for text in texts]


def vote(reply: str) -> Vote | None:
    """Return the vote of a reply that answers; None where it says nothing.

    Theorem: a vote is a function of one reply. So r replies change at most r votes.
    """
    text = whole_answer(reply)
    key = key_of(text)
    return ABSTAINS if key is None else Vote(key, text)


def count(votes: Iterable[Vote | None], rule: Rule) -> Count[str]:
    """Count votes: the key that most sources give wins, with `rule.min_support` of them and its share of the answers.

    A tie is no answer, and abstentions and failures are ignored. `radius()` of the count is the largest r such that the
    same key wins, whatever any r of the sources say instead; 0 without a winner, as who disagrees can be brought to
    agree.

    Theorem: let the winner have a votes and another key b, or 0 for one that nobody gives. A replaced source takes a
    vote from the winner and gives one to the other key at worst: the lead a - b falls by 2 if that source was for the
    winner, by 1 if it was for neither, by 0 if it was for the other. So the r sources with the largest fall are the
    worst ones, and the winner stays as long as every lead stays above 0, a - r reaches `min_support`, and so on for the
    share and for verdicts: all are sums over the sources, and none asks which sets of sources there are
    (`counting.py`).
    """
    return Count(tuple(None if one is ABSTAINS else one.key for one in votes), rule)


def wordings(votes: Iterable[Vote | None], key: str | None) -> Counter[str]:
    """Return the votes of each wording of a key."""
    return Counter(one.text for one in votes if one is not ABSTAINS and one.key == key)


def commonest(written: Mapping[str, int]) -> str:
    """Return the wording that most sources write; of equals the shortest, then the smallest one."""
    return min(written, key=lambda text: (-written[text], len(text), text))


def possible(votes: Sequence[Vote | None], corrupted: int, rule: Rule) -> set[str | None] | None:
    """Return the keys that can win beside so many corrupted sources; None among them for no answer.

    Theorem: of the untouched sources the votes are known, and the corrupted ones say anything. A key that has c of the
    known votes has at most c + m' in all, and can have them; it wins at best if that reaches every other key's known
    votes, `min_support`, and the share. If m' votes alone do, any text at all can win, and the result is None.
    """
    keys = [None if one is ABSTAINS else one.key for one in votes]
    winners, no_answer, anything = possible_winners(keys, rule, corrupted)
    return None if anything else {*winners, *([None] if no_answer else [])}


def main() -> None:
    """Ask a model that believes what it reads about eight pages, of which more and more are planted."""
    question, honest = "Who runs the mill?", ["Anna Lind runs the mill.", "The mill is run by Anna Lind."] * 4

    def model(prompt: str) -> str:
        return "Eve Moor" if "Eve Moor" in prompt else "Anna Lind" if "Anna Lind" in prompt else ""

    rule = Rule(min_support=2, one_in=4)
    template = PromptTemplate("", "{context}\n\nQuestion: {query}\nAnswer:", ("context", "query"))
    for planted in range(6):
        texts = ["Eve Moor runs the mill."] * planted + honest[planted:]
        votes = [vote(model(prompt.text)) for prompt in isolate(template, question, texts)]
        counted = count(votes, rule)
        found = None if counted.winner is None else commonest(wordings(votes, counted.winner))
        print(f"{planted} of {len(texts)} pages planted: {found}, whatever any {counted.radius()} of them say")
    votes = [vote(model(text)) for text in honest]
    for corrupted in (1, len(votes), len(votes) + 1):
        keys = possible(votes, corrupted, rule)
        print(f"beside {corrupted} corrupted pages, {'anything' if keys is None else keys} can be answered")


if __name__ == "__main__":
    main()
