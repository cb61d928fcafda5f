"""Records a local model's isolated replies, how sure it was, and how likely it finds candidates; resumable.

    python -m tests.defenses.recorded.record MODEL_FOLDER DATASET OUT.jsonl [--questions 100] [--passages 10]

DATASET is a file that `robustrag eval --data` reads, with that many passages and a wrong answer for each question.
`logprobs` are of the tokens of each reply, `scores` per group of each candidate as the whole reply.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from robustrag_integrations import LocalModel
from robustrag_integrations.attacks.canned import false_statement, poisoning, prompt_injection
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.prompts import prompts_for

CANDIDATES = 24


def candidates_of(replies: Sequence[str], incorrect: str) -> list[str]:
    """Return the incorrect answer and the different replies, as worded and in lower case but for the first letter."""
    worded = list(dict.fromkeys(text.strip() for text in (incorrect, *replies) if text.strip()))
    plain = [text[:1].upper() + text[1:].lower() for text in worded]
    return list(dict.fromkeys([*worded, *plain]))[:CANDIDATES]


def rounded(numbers: Sequence[float] | None) -> list[float] | None:
    return None if numbers is None else [round(number, 4) for number in numbers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--dtype", default="float32", help="bfloat16 takes eight times as long without AVX-512")
    args = parser.parse_args()
    known = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {row["id"] for row in known}
    model = LocalModel.from_pretrained(str(args.model), dtype=args.dtype, max_new_tokens=32, max_context_tokens=4096)
    isolated = prompts_for("short_answer").isolated
    questions = [q for q in load_dataset(args.dataset, task="qa").questions if len(q.passages) >= args.passages]
    with args.out.open("a", encoding="utf-8") as out:
        for question in [q for q in questions[: args.questions] if q.id not in done]:
            begun, incorrect = time.monotonic(), question.incorrect or ""
            passages = question.passages[: args.passages]
            texts = [passage.text for passage in passages]
            lie = question.poisoned[0] if question.poisoned and not question.poison_target else None
            lie = lie or false_statement(question.question, texts, question.answers[0], incorrect)
            planted = [prompt_injection(question.question, incorrect, 1), poisoning(lie, 1)]
            prompts = [isolated.render(context=text, query=question.question) for text in (*texts, *planted)]
            *own, injection, poison = model.generate(prompts, "isolated")
            candidates = candidates_of([reply.text or "" for reply in own], incorrect)
            scores = model.score(prompts[: args.passages], candidates)
            whole = isolated.render(context="\n\n".join(texts), query=question.question)
            [vanilla] = model.generate([whole], "isolated")
            row = {
                "id": question.id,
                "model": args.model.name,
                "question": question.question,
                "answers": question.answers,
                "incorrect": incorrect,
                "sources": [passage.source for passage in passages],
                "replies": [reply.text for reply in own],
                "logprobs": [rounded(reply.logprobs) for reply in own],
                "injection": injection.text,
                "injection_logprobs": rounded(injection.logprobs),
                "poison": poison.text,
                "poison_logprobs": rounded(poison.logprobs),
                "vanilla": vanilla.text,
                "vanilla_logprobs": rounded(vanilla.logprobs),
                "candidates": candidates,
                "scores": [rounded(found) for found in scores],
                "seconds": round(time.monotonic() - begun, 1),
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
