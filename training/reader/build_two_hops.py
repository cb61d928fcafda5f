"""Write the demo's questions that take two look-ups: "When was the founder of Gotir Works born?"

`python -m training.reader.build_two_hops` writes `two_hops.jsonl` into the package's `demo` folder. The answer to the
first look-up is a thing of the world that the second asks about; for both, most of ten retrieved articles tell the
fact.
"""

from __future__ import annotations

from random import Random
from typing import Any

from training.reader.build_world import LEAST_TRUTHFUL, Retrieval, data_parser, make_articles, make_facts, write_lines
from training.reader.names import Namer
from training.reader.rows import Fact

_PHRASES = {
    ("person", "spouse"): "the spouse of {e}",
    ("person", "birthplace"): "the birthplace of {e}",
    ("town", "river"): "the river in {e}",
    ("town", "mayor"): "the mayor of {e}",
    ("company", "seat"): "the town where {e} is based",
    ("company", "founder"): "the founder of {e}",
    ("company", "director"): "the director of {e}",
    ("ship", "captain"): "the captain of {e}",
    ("ship", "builder"): "the builder of {e}",
    ("book", "setting"): "the town where {e} is set",
    ("book", "author"): "the author of {e}",
    ("building", "place"): "the town where the {e} stands",
    ("building", "architect"): "the architect of the {e}",
    ("island", "ruler"): "the president of {e}",
    ("island", "capital"): "the capital of {e}",
    ("island", "explorer"): "the discoverer of {e}",
    ("mountain", "island"): "the island on which {e} stands",
    ("mountain", "climber"): "the first climber of {e}",
    ("river", "source"): "the mountain on which the {e} rises",
    ("river", "mouth"): "the town where the {e} meets the sea",
    ("band", "singer"): "the singer of {e}",
    ("festival", "host"): "the town where the {e} is held",
}


def make_rows(facts: list[Fact], retrieval: Retrieval, count: int, random: Random) -> list[dict[str, Any]]:
    """Chains of two facts as questions; each first fact and each second one begins or ends at most two of them."""
    namer = Namer(random, wild=0.0)
    chains = [(first, second) for first in facts for second in facts if first.value == second.entity]
    used: dict[Fact, int] = {}
    rows: list[dict[str, Any]] = []
    for first, second in random.sample(chains, len(chains)):
        asked = [_best_asked(fact, retrieval) for fact in (first, second)]
        if len(rows) == count or None in asked or max(used.get(first, 0), used.get(second, 0)) > 1:
            continue
        used[first], used[second] = used.get(first, 0) + 1, used.get(second, 0) + 1
        phrase = _PHRASES[first.relation.subject, first.relation.name].format(e=first.entity)
        wording = str(asked[1])
        rows.append(
            {
                "question": wording.replace("the {e}", phrase).replace("{e}", phrase),
                "hops": [str(asked[0]).format(e=first.entity), wording.replace("{e}", "{1}")],
                "answers": [first.value, second.value],
                "incorrect": [namer.other(fact.relation.value, fact.value) for fact in (first, second)],
            }
        )
    return rows


def _best_asked(fact: Fact, retrieval: Retrieval) -> str | None:
    """The wording of a fact's question that finds most articles which tell it; None if all find too few."""
    served = {q: retrieval.truthful(q.format(e=fact.entity), fact) for q in fact.relation.questions}
    best = max(served, key=lambda q: served[q])
    return best if served[best] >= LEAST_TRUTHFUL else None


def main() -> None:
    """The command line."""
    chosen = data_parser(__doc__, questions=50).parse_args()
    random = Random(f"world/{chosen.seed}")
    facts = make_facts(random)
    retrieval = Retrieval(make_articles(facts, random))
    rows = make_rows(facts, retrieval, chosen.questions, Random(f"two defenses/hops/{chosen.seed}"))
    write_lines(chosen.out / "two_hops.jsonl", rows)


if __name__ == "__main__":
    main()
