"""Records a local model's isolated replies, and how likely it finds candidates after each group's passages; resumable.

    python -m tests.defenses.recorded.record MODEL_FOLDER DATASET OUT.jsonl [--questions 100] [--passages 10]

DATASET is a file that `robustrag eval --data` reads, with that many passages and a wrong answer for each question.
Log-probabilities are natural logarithms, the end token's included.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from robustrag_integrations import LocalModel
from robustrag_integrations.attacks.canned import false_statement, poisoning, prompt_injection
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.models.local import rows
from robustrag_integrations.models.local.prompt import SinglePrompt
from robustrag_integrations.models.local.token_tree import Stem, TokenTree
from robustrag_integrations.models.local.trie import TokenTrie
from robustrag_integrations.prompts import Prompt, prompts_for

CANDIDATES = 24


class ReadPrompt(SinglePrompt):
    """A prompt that is remembered once it is read, with the logits of the token after it."""

    read: list[tuple[SinglePrompt, torch.Tensor]] = []

    def open(self, strings: Sequence[Sequence[int]] = ()) -> Any:
        opened = super().open(strings)
        ReadPrompt.read.append((self, opened.logits[0]))
        return opened


def asked(model: LocalModel, prompts: Sequence[Prompt]) -> list[tuple[str, list[float]]]:
    """Return each prompt's reply, and the log-probabilities of its tokens."""
    steps: list[tuple[list[int], list[float]]] = []

    def watch(logits: torch.Tensor) -> None:
        best = logits.max(-1)
        steps.append((best.indices.tolist(), (best.values - logits.logsumexp(-1)).tolist()))

    replies = model._generate(prompts, "isolated", watch)
    found = []
    for row, reply in enumerate(replies):
        logprobs: list[float] = []
        said: list[int] = []
        for tokens, values in steps:
            logprobs.append(round(values[row], 5))
            if model.codec.is_end(tokens[row]):
                break
            said.append(tokens[row])
        if model.codec.decode(said).strip() != reply.text:  # a lead was in doubt, and it was asked alone
            assert len(prompts) > 1, (reply.text, said)
            found += asked(model, [prompts[row]])
            continue
        found.append((reply.text or "", logprobs))
    return found


@torch.inference_mode()
def scored(model: LocalModel, prompt: SinglePrompt, first: torch.Tensor, texts: Sequence[Sequence[int]]) -> list[float]:
    """Return the log-probability of each text, given as tokens, after a prompt that was read."""
    trie = TokenTrie(text[:-1] for text in texts)
    tree = TokenTree(Stem.of_one(prompt._lm, prompt._rules, prompt.key_values()))
    logits = torch.cat([first[None], tree.extend(trie.parents, trie.tokens)[0]])
    values = logits.double().log_softmax(-1)
    return [
        round(sum(float(values[at, t]) for at, t in zip([0, *(n + 1 for n in trie.path(text[:-1]))], text)), 4)
        for text in texts
    ]


def candidates_of(replies: Sequence[str], incorrect: str) -> list[str]:
    """Return the different replies and the incorrect answer, as worded and in lower case but for the first letter."""
    worded = list(dict.fromkeys(text.strip() for text in (incorrect, *replies) if text.strip()))
    plain = [text[:1].upper() + text[1:].lower() for text in worded]
    return list(dict.fromkeys([*worded, *plain]))[:CANDIDATES]


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
    torch.manual_seed(0)
    model = LocalModel.from_pretrained(str(args.model), dtype=args.dtype, max_new_tokens=32, max_context_tokens=4096)
    rows.SinglePrompt = ReadPrompt
    isolated = prompts_for("short_answer").isolated
    end = model._tokenizer.eos_token_id
    data = load_dataset(args.dataset, task="qa")
    print(len(data.questions), "questions;", data.bad_rows, flush=True)
    questions = [q for q in data.questions if len(q.passages) >= args.passages]
    with args.out.open("a", encoding="utf-8") as out:
        for question in [q for q in questions[: args.questions] if q.id not in done]:
            begun = time.monotonic()
            incorrect = question.incorrect or ""
            texts = [passage.text for passage in question.passages[: args.passages]]
            lie = question.poisoned[0] if question.poisoned and not question.poison_target else None
            lie = lie or false_statement(question.question, texts, question.answers[0], incorrect)
            planted = [prompt_injection(question.question, incorrect, 1), poisoning(lie, 1)]
            prompts = [isolated.render(context=text, query=question.question) for text in (*texts, *planted)]
            ReadPrompt.read.clear()
            replies = asked(model, prompts)
            different = dict.fromkeys(p.text for p in prompts)  # equal prompts are read once
            found = dict(zip(different, ReadPrompt.read[-len(different) :], strict=True))
            read = [found[p.text] for p in prompts[: args.passages]]
            own, (injection, poison) = replies[: args.passages], replies[args.passages :]
            candidates = candidates_of([text for text, _ in own], incorrect)
            tokens = [(*model._tokenizer(text, add_special_tokens=False)["input_ids"], end) for text in candidates]
            asking = time.monotonic() - begun
            scores = [scored(model, prompt, first, tokens) for prompt, first in read]
            scoring = time.monotonic() - begun - asking
            whole = isolated.render(context="\n\n".join(texts), query=question.question)
            [vanilla] = asked(model, [whole])
            row = {
                "id": question.id,
                "model": args.model.name,
                "question": question.question,
                "answers": question.answers,
                "incorrect": incorrect,
                "sources": [passage.source for passage in question.passages[: args.passages]],
                "replies": [text for text, _ in own],
                "logprobs": [logprobs for _, logprobs in own],
                "injection": injection[0],
                "injection_logprobs": injection[1],
                "poison": poison[0],
                "poison_logprobs": poison[1],
                "vanilla": vanilla[0],
                "vanilla_logprobs": vanilla[1],
                "candidates": candidates,
                "scores": scores,
                "seconds": [round(asking, 1), round(scoring, 1), round(time.monotonic() - begun, 1)],
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()
            print(len(done), question.id, row["seconds"], [text for text, _ in own][:3], vanilla[0], flush=True)
            done.add(question.id)


if __name__ == "__main__":
    main()
