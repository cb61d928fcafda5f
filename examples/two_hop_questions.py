"""Questions that take two look-ups, attacked in both: robust hops beside vanilla RAG, in one call and hop by hop.

pip install '.[eval,local]'

    python examples/two_hop_questions.py 50
"""

import json
import sys
from dataclasses import replace
from functools import partial

from robustrag_integrations import ConsensusAggregation, LocalModel, VanillaRAG
from robustrag_integrations.certification.metrics import contains_answer
from robustrag_integrations.corpus import BM25Index, split
from robustrag_integrations.defenses.hops import MultiHop
from robustrag_integrations.evaluation.attacks import plan_attack
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.data.world import read_world, world_folder
from robustrag_integrations.reader import reader_path

ATTACKS = [("none", 0), ("poison", 1), ("poison", 3), ("pia", 1), ("pia", 3)]


def retrieved(index, row, attack, planted, number, question):
    """The ten best passages for a hop, of which the attacker's are `planted`: lies of the same origins in both hops."""
    found = index.search(question, 10)
    if not planted:
        return found
    answer, incorrect = row["answers"][number], row["incorrect"][number]
    about = EvalQuestion("", question, (answer,), incorrect, tuple(found))
    return list(plan_attack(attack, about, found, corruption_size=planted).passages)


def ask_in_turn(row, defense, retrieve):
    """The last answer, hop by hop, and its radius."""
    number = iter(range(len(row["hops"])))
    hops = MultiHop(lambda question: defense.answer(question, retrieve(next(number), question)), row["hops"])
    answer = hops.answer(row["question"])
    return answer.text, answer.radius


def ask_at_once(row, vanilla, retrieve):
    """One call with the passages of both hops, the second of which is told the right answer to the first."""
    first, second = row["hops"]
    passages = [*retrieve(0, first), *retrieve(1, second.replace("{1}", row["answers"][0]))]
    passages = [replace(passage, id=None) for passage in passages]
    return vanilla.answer(row["question"], passages).text, 0


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    folder = world_folder()
    index = BM25Index(split(read_world(folder)))
    rows = [json.loads(line) for line in (folder / "two_hops.jsonl").read_text().splitlines()][:count]
    model = LocalModel.from_pretrained(reader_path())
    robust, vanilla = ConsensusAggregation(model), VanillaRAG(model)
    setups = {
        "vanilla, one call": lambda row, retrieve: ask_at_once(row, vanilla, retrieve),
        "vanilla, hop by hop": lambda row, retrieve: ask_in_turn(row, vanilla, retrieve),
        "consensus, hop by hop": lambda row, retrieve: ask_in_turn(row, robust, retrieve),
    }
    for attack, planted in ATTACKS:
        for name, ask in setups.items():
            results = []
            for row in rows:
                text, radius = ask(row, partial(retrieved, index, row, attack, planted))
                right, lie = (contains_answer(text, [row[key][-1]]) > 0 for key in ("answers", "incorrect"))
                results.append((right, lie, right and radius >= 1, right and radius >= 3))
            right, lie, one, three = (100 * sum(column) / len(rows) for column in zip(*results, strict=True))
            print(
                f"{attack:>6} k'={planted}  {name:<22} right {right:3.0f}%  hijacked {lie:3.0f}%  "
                f"right with radius >= 1: {one:3.0f}%, >= 3: {three:3.0f}%"
            )
