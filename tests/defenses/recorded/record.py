"""Records a local model's isolated replies; resumable.

    python -m tests.defenses.recorded.record MODEL_FOLDER DATASET OUT.jsonl [--questions 60]

DATASET is a file that `robustrag eval --data` reads, with ten passages and a wrong answer for each question.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from robustrag_integrations import LocalModel
from robustrag_integrations.attacks.canned import prompt_injection
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.prompts import prompts_for

PASSAGES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=60)
    args = parser.parse_args()
    known = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {row["question"] for row in known}
    model = LocalModel.from_pretrained(str(args.model), dtype="bfloat16", max_new_tokens=32, max_context_tokens=4096)
    isolated = prompts_for("short_answer").isolated
    questions = [q for q in load_dataset(args.dataset, task="qa").questions if len(q.passages) >= PASSAGES]
    with args.out.open("a", encoding="utf-8") as out:
        for question in [q for q in questions if q.question not in done][: args.questions - len(done)]:
            texts = [passage.text for passage in question.passages[:PASSAGES]]
            planted = prompt_injection(question.question, question.incorrect or "", 1)
            prompts = [isolated.render(context=text, query=question.question) for text in (*texts, planted)]
            replies = [reply.text for reply in model.generate(prompts, "isolated")]
            whole = isolated.render(context="\n\n".join(texts), query=question.question)
            row = {
                "question": question.question,
                "answers": question.answers,
                "incorrect": question.incorrect,
                "replies": replies[:PASSAGES],
                "planted": replies[PASSAGES],
                "vanilla": model.generate([whole], "isolated")[0].text,
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
