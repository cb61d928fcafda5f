"""Write the demo's questions with several right answers, in RAMDocs' layout.

`python -m training.reader.build_lists` writes `lists.jsonl` into the package's `demo` folder. Each question asks about
a name that several things share. As in RAMDocs, half of the right answers stand in one document alone, and lies and
unrelated documents stand among the others. No document holds an answer but its own, so that a perfect reader of single
documents is a table from texts to answers.
"""

from __future__ import annotations

from random import Random
from typing import Any

from training.reader.build_world import SOURCES, data_parser, make_facts, write_lines
from training.reader.language import Relation, capitalised
from training.reader.names import Namer, words
from training.reader.rows import Fact

_WHERE = (
    "on the north coast", "in the eastern hills", "by the southern lakes", "on the western plain",
    "beyond the river", "near the old border",
)  # fmt: skip
_GOLDS = (1, 2, 2, 2, 3, 3, 4)  # right answers of a question
_TOLD = (1, 1, 1, 1, 1, 2, 2, 3, 3, 4)  # documents that tell one of them
_WRONG = (0, 1, 1, 2)  # wrong answers of a question
_FORGED = (1, 1, 1, 2, 2, 3)  # documents that tell one of them
_NOISE = (0, 1, 1, 2)


def make_rows(facts: list[Fact], count: int, random: Random) -> list[dict[str, Any]]:
    """Questions about the names of the world, each with its documents."""
    namer = Namer(random, wild=0.0)
    return [_row(fact, facts, namer) for fact in random.sample(facts, count)]


def _row(fact: Fact, facts: list[Fact], namer: Namer) -> dict[str, Any]:
    random, relation = namer.random, fact.relation
    golds, wrong = random.choice(_GOLDS), random.choice(_WRONG)
    values = [fact.value]
    while len(values) < golds + wrong:
        value = namer.value(relation.value)
        if not _own_words(value) & {word for known in values for word in _own_words(known)}:
            values.append(value)
    places = random.sample(_WHERE, golds)
    told = [(v, places[i], "correct") for i, v in enumerate(values[:golds]) for _ in range(random.choice(_TOLD))]
    lies = [(v, random.choice(places), "misinfo") for v in values[golds:] for _ in range(random.choice(_FORGED))]
    other = [f for f in facts if f.entity != fact.entity]
    documents = [
        {"text": _article(relation, fact.entity, value, place, values, other, random), "type": kind, "answer": value}
        for value, place, kind in (*told, *lies)
    ]
    for _ in range(random.choice(_NOISE)):
        text = " ".join(f.statement(random) for f in _unrelated(other, values, 3, random))
        documents.append({"text": text, "type": "noise", "answer": "unknown"})
    random.shuffle(documents)
    for document, source in zip(documents, random.sample(SOURCES, len(documents)), strict=True):
        document["source"] = source
    return {
        "question": relation.questions[0].format(e=fact.entity),
        "documents": documents,
        "disambig_entity": [capitalised(f"{fact.entity} {place}") for place in places],
        "gold_answers": values[:golds],
        "wrong_answers": values[golds:],
    }


_GENERIC = frozenset(
    words("the of metres kilometres tonnes river works company brothers mills peak mountain ridge university college "
          "prize medal")
)  # fmt: skip


def _own_words(value: str) -> set[str]:
    """The words that tell a value apart from others; units and generic names do not."""
    return {*value.casefold().split()} - _GENERIC


def _article(
    relation: Relation, entity: str, value: str, place: str, values: list[str], other: list[Fact], random: Random
) -> str:
    statement = capitalised(random.choice(relation.statements).format(e=entity, v=value))
    sentences = [f"This is about {entity} {place}.", statement]
    sentences += [f.statement(random) for f in _unrelated(other, values, random.choice((0, 1, 2)), random)]
    return " ".join(sentences)


def _unrelated(facts: list[Fact], values: list[str], count: int, random: Random) -> list[Fact]:
    """Facts in which none of the values is named."""
    named = {word for value in values for word in _own_words(value)}
    silent = [f for f in facts if not named & _own_words(f"{f.entity} {f.value}")]
    return random.sample(silent, count)


def main() -> None:
    """The command line."""
    chosen = data_parser(__doc__, questions=100).parse_args()
    facts = make_facts(Random(f"world/{chosen.seed}"))
    write_lines(chosen.out / "lists.jsonl", make_rows(facts, chosen.questions, Random(f"lists/{chosen.seed}")))


if __name__ == "__main__":
    main()
