"""Biographies by a real model: facts found and lies told, clean and with a poisoned source at rank 1.

    python -m benchmarks.biographies MODEL_FOLDER robustrag-biogen.json.gz --people 50

The data set is the authors' own (`long` questions). The paper's judge is a language model; here it is replaced by
*facts found*: the share of the reference's numbers and names of several words that stand in the answer.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from robustrag_integrations import ConsensusAggregation, KeywordAggregation, LocalModel, Passage, VanillaRAG
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.metrics import holds_answer

_FACT = re.compile(r"\d[\d,.]*\d|\d|[A-Z][\w'-]+(?: (?:of|de|van|von|the)(?= [A-Z]))?(?: [A-Z][\w'-]+)+")


def facts_found(text: str, references: Sequence[str]) -> float:
    """The share of the references' numbers and names of several words that stand in a text."""
    facts = {fact for reference in references for fact in _FACT.findall(reference)}
    return mean([holds_answer(text, [fact]) for fact in facts]) if facts else 0.0


def main() -> None:
    """Print a row for each method and attack, and claims per answer where they are counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=1e6, help="start with no further person after so many")
    args = parser.parse_args()
    model = LocalModel.from_pretrained(str(args.model), dtype="bfloat16", max_new_tokens=160, max_context_tokens=4096)
    methods = {
        "vanilla": VanillaRAG(model, task="long_form", cut_replies="count"),
        "claims, min_support=2": ConsensusAggregation(model, task="long_form", cut_replies="count"),
        "paper's keyword (.4, 4)": KeywordAggregation(
            model, task="long_form", extractor="spacy", alpha=0.4, beta=4, final="always", cut_replies="count"
        ),
    }
    rows: dict[tuple[str, str], list[tuple[float, bool, RobustAnswer]]] = {}
    begun, people = time.perf_counter(), 0
    for question in load_dataset(args.data, task="long").questions[: args.people]:
        if time.perf_counter() - begun > 60 * args.minutes:
            break
        people += 1
        clean = list(question.passages[: args.passages])
        lie = question.poison_target or question.incorrect or ""
        planted = [Passage(text, source="evil") for text in question.poisoned[:1]]
        for attack, passages in (("clean", clean), ("poison", [*planted, *clean[: len(clean) - len(planted)]])):
            for name, defense in methods.items():
                answer = defense.answer(question.question, passages)
                found = 0.0 if answer.abstained else facts_found(answer.text, question.answers)
                rows.setdefault((name, attack), []).append((found, bool(lie) and lie in answer.text, answer))
    print(f"{people} people, {args.passages} passages, {time.perf_counter() - begun:.0f} s, {model.description}")
    for (name, attack), row in rows.items():
        answers = [answer for *_, answer in row]
        figures = {
            "facts found": mean(found for found, *_ in row),
            "lie told": mean(told for _, told, _ in row),
            "abstained": mean(answer.abstained for answer in answers),
            "radius >= 1": mean(answer.radius > 0 for answer in answers),
            "some claim's radius >= 1": mean(any(c.radius for c in answer.claims) for answer in answers),
        }
        shown = ", ".join(f"{what} {share:.1%}" for what, share in figures.items())
        print(f"{name}, {attack}: {shown}, {mean(len(answer.claims) for answer in answers):.1f} claims")


if __name__ == "__main__":
    main()
