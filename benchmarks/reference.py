"""Decoding certificates of the paper's code beside ours, on the bundled reader, and whether real injections break them.

Run: `python -m benchmarks.reference PATH`, where PATH is a checkout of github.com/inspire-group/RobustRAG at `COMMIT`.
Its files are read and not changed. What has to be patched for this reader and today's libraries is `PATCHES`, on the
text in memory, and `Surroundings`; no line of the paper's code stands here beyond what finds the place to patch.

A certificate that the paper's code gives and ours does not is put to the test: k' passages are injected, as in the
paper, and the paper's own inference answers. An answer without the right one breaks the certificate. `--mend` lets the
certificate evict as many passages as are injected.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations import DecodingAggregation
from robustrag_integrations.attacks.canned import false_statement, inject, poisoning, prompt_injection
from robustrag_integrations.evaluation.data.datasets import EvalQuestion, load_dataset
from robustrag_integrations.models.local.model import LocalModel
from robustrag_integrations.prompts import prompts_for

COMMIT = "9bc35b2fa5fa7d1088383b2789ec19a512d316b1"
# What is replaced in src/defense.py, and why.
PATCHES = (
    ('.to("cuda")', ".to('cpu')", "no GPU"),
    ('["input_ids"][0][1]', '["input_ids"][0][0]', "this tokenizer adds no token at the beginning"),
    ("range(start_index,", "range(start_index - 1,", "so the refusal's first token is scored as well"),
)
EVICTED = "ab_record[:-corruption_size]"
MENDED = "ab_record[:-corruption_size - 1]"  # the last of the k + 1 records belongs to the prompt without passages


def paper_code(path: Path, *, mend: bool = False) -> Any:
    """The module `src/defense.py` of a checkout, patched in memory.

    Args:
        path: the checkout.
        mend: whether the certificate evicts as many passages as the attacker injects.

    Raises:
        SystemExit: it is not a checkout, or of another commit.
    """
    patches = [*PATCHES, *([(EVICTED, MENDED, "evict k' passages, not k' - 1")] if mend else [])]
    try:
        source = (path / "src" / "defense.py").read_text()
    except OSError as error:
        raise SystemExit(f"{path} is no checkout of github.com/inspire-group/RobustRAG: {error}") from error
    for old, new, why in patches:
        if old not in source:
            raise SystemExit(f"src/defense.py has no {old} to replace ({why}); check out the commit {COMMIT}")
        source = source.replace(old, new)
    _stand_ins()
    package = types.ModuleType("paper_code")
    package.__path__ = [str(path / "src")]  # for its own helper module
    sys.modules["paper_code"] = package
    module = types.ModuleType("paper_code.defense")
    module.__package__ = "paper_code"
    exec(compile(source, str(path / "src" / "defense.py"), "exec"), vars(module))  # noqa: S102 - what the user named
    vars(module)["StopOnTokens"] = StopAtEnd
    return module


def _stand_ins() -> None:
    """What the module imports and its decoding does not need, or what transformers no longer has."""
    corpus = types.ModuleType("nltk.corpus")
    vars(corpus)["stopwords"] = types.SimpleNamespace(words=lambda language: [])
    sys.modules.update({"nltk": types.ModuleType("nltk"), "nltk.corpus": corpus})
    generation = importlib.import_module("transformers.generation.utils")

    def cropped(model: Any, past: Any, length: int) -> Any:
        if past.get_seq_length() > length:
            past.crop(length - past.get_seq_length())
        return past

    vars(generation)["_crop_past_key_values"] = cropped


class StopAtEnd:
    """Stops where the row ends with one of the stop texts; the original counts a token that this tokenizer lacks."""

    def __init__(self, stop_token_ids: Sequence[Any]) -> None:
        self._stops = [tuple(map(int, ids[0])) for ids in stop_token_ids]

    def __call__(self, input_ids: Any, scores: Any, **more: Any) -> bool:
        """Whether the first row ends so."""
        row = tuple(map(int, input_ids[0]))
        return any(stop and row[-len(stop) :] == stop for stop in self._stops)


class Surroundings:
    """What the paper's code calls `llm`: a model with positions for padded rows, a tokenizer, this reader's prompts."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.eos_token
        self.model, self.tokenizer = PositionedModel(model), tokenizer
        self.model_name, self.max_output_tokens = "bundled", 24
        self._prompts = prompts_for("short_answer")

    def wrap_prompt(self, item: Any, as_multi_choice: bool, seperate: bool) -> Any:
        """One prompt per passage, or the prompt without any."""
        if not seperate:
            return self._prompts.no_retrieval.render(query=item["question"]).text
        return [
            self._prompts.isolated.render(context=text, query=item["question"]).text for text in item["topk_content"]
        ]


class PositionedModel:
    """A model whose rows count their positions from the first token that is no padding."""

    def __init__(self, model: Any) -> None:
        self._model, self.generation_config = model, model.generation_config

    def prepare_inputs_for_generation(
        self, input_ids: Any, *, attention_mask: Any, past_key_values: Any = None, **more: Any
    ) -> dict[str, Any]:
        """The tokens that are not in the cache, and where they stand."""
        seen = 0 if past_key_values is None else past_key_values.get_seq_length()
        fed = {"input_ids": input_ids[:, seen:], "attention_mask": attention_mask, "use_cache": True}
        return fed if past_key_values is None else {**fed, "past_key_values": past_key_values}

    def __call__(self, input_ids: Any, attention_mask: Any, **more: Any) -> Any:
        """One forward pass."""
        positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -input_ids.shape[1] :]
        return self._model(input_ids, attention_mask=attention_mask, position_ids=positions, **more)


@dataclass(frozen=True)
class Found:
    """One certificate, of a question at k passages against k' injected ones.

    Attributes:
        question: the question.
        answers: what is right.
        k: how many passages are retrieved.
        size: k'.
        paper: whether the paper's code certifies the answer.
        ours: whether ours does.
        clean: the answer of the paper's code without attack.
        attack: the injection that broke the only certificate there was; None if none did.
        broken: the answer under it.
    """

    question: str
    answers: tuple[str, ...]
    k: int
    size: int
    paper: bool
    ours: bool
    clean: str
    attack: str | None = None
    broken: str | None = None


class Comparison:
    """Both codes on one reader."""

    def __init__(self, path: Path, *, mend: bool) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from robustrag_integrations.reader import reader_path

        model = AutoModelForCausalLM.from_pretrained(reader_path(), dtype="float32").eval()
        module = paper_code(path, mend=mend)
        around = Surroundings(model, AutoTokenizer.from_pretrained(reader_path()))
        settings = types.SimpleNamespace(eta=0.0, subsample_iter=1)
        self._paper = module.DecodingAgg(around, settings)
        self._ours = DecodingAggregation(LocalModel.bundled(), group_by="passage")

    def certificates(self, question: EvalQuestion, k: int, sizes: Sequence[int]) -> Iterator[Found]:
        """Both certificates of a question; one that the paper's code alone gives is attacked, and so is ours."""
        texts = [p.text for p in question.passages[:k]]
        sizes = [size for size in sizes if size < k]
        proved = self._ours.certify(
            question.question, texts, question.answers, corruption_size=sizes, top_k=k, max_model_calls=100_000
        )
        for size, ours in zip(sizes, proved, strict=True):
            clean, paper = self._paper.query(_item(question, texts), corruption_size=size)
            safe = ours.certified and ours.tau == 1
            found = Found(question.question, question.answers, k, size, bool(paper), safe, clean.strip())
            if paper and not safe:
                found = self._attacked(found, question, texts)
            elif safe:
                self._check_ours(question, texts, size)
            yield found

    def _attacked(self, found: Found, question: EvalQuestion, texts: Sequence[str]) -> Found:
        for name, planted in attacks(question, texts, found.size):
            said, _ = self._paper.query(_item(question, planted), corruption_size=0)
            if not _right(said, question):
                return Found(**{**vars(found), "attack": name, "broken": said.strip()})
        return found

    def _check_ours(self, question: EvalQuestion, texts: Sequence[str], size: int) -> None:
        """Attack a certificate of ours.

        Raises:
            AssertionError: it broke.
        """
        for name, planted in list(attacks(question, texts, size))[:2]:
            said = self._ours.answer(question.question, planted).text
            if not _right(said, question):
                raise AssertionError(f"our certificate broke: {question.question}, {name}: {said}")


def attacks(question: EvalQuestion, texts: Sequence[str], size: int) -> Iterator[tuple[str, list[str]]]:
    """Injections of k' passages, mildest reader first: what they are, and the retrieval that they cause."""
    target = question.incorrect or "nobody knows"
    lie = false_statement(question.question, texts, question.answers[0], target)
    for repeat in (1, 3, 10):
        for rank in (1, len(texts) - size + 1):
            for name, text in (
                ("injection", prompt_injection(question.question, target, repeat)),
                ("poisoning", poisoning(lie, repeat)),
            ):
                planted = [p.text for p in inject(list(texts), [text] * size, rank=rank)]
                yield f"{name} x{repeat}, {size} from rank {rank} on", planted


def _item(question: EvalQuestion, texts: Sequence[str]) -> dict[str, Any]:
    return {"question": question.question, "answer": list(question.answers), "topk_content": list(texts)}


def _right(said: str, question: EvalQuestion) -> bool:
    return any(answer.lower() in said.lower() for answer in question.answers)


def main(arguments: list[str] | None = None) -> int:
    """Compare, print the sums, and write every certificate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("path", type=Path, help=f"a checkout of github.com/inspire-group/RobustRAG at {COMMIT[:7]}")
    parser.add_argument("--limit", type=int, help="only the first N questions of the demo set")
    parser.add_argument("--top-k", type=int, nargs="+", default=[3, 4, 5, 6, 8, 10], help="numbers of passages k")
    parser.add_argument("--size", type=int, nargs="+", default=[1, 2, 3], help="numbers of injected passages k'")
    parser.add_argument("--mend", action="store_true", help="let the paper's certificate evict k' passages")
    parser.add_argument("--out", type=Path, default=Path("reference.json"), help="where the certificates are written")
    options = parser.parse_args(arguments)
    comparison, found = Comparison(options.path, mend=options.mend), []
    questions = load_dataset("demo", task="qa", top_k=max(options.top_k), limit=options.limit).questions
    for number, question in enumerate(questions, 1):
        for k in options.top_k:
            found += comparison.certificates(question, k, options.size)
        print(f"{number} of {len(questions)} questions", file=sys.stderr, flush=True)
        options.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    print(summary(found))
    return 0


def summary(found: Sequence[Found]) -> str:
    """How many certificates each code gives, and what became of those that only the paper's gives."""
    lines = [f"{'k':>3} {'k-prime':>7} {'both':>5} {'ours':>5} {'paper':>6} {'broken':>7}"]
    for k, size in sorted({(one.k, one.size) for one in found}):
        lines.append(_line(f"{k:>3} {size:>7}", [one for one in found if (one.k, one.size) == (k, size)]))
    return "\n".join([*lines, _line(f"{'all':>11}", found)])


def _line(name: str, found: Sequence[Found]) -> str:
    both = sum(one.paper and one.ours for one in found)
    ours, paper = (sum(one.ours for one in found) - both), (sum(one.paper for one in found) - both)
    return f"{name} {both:>5} {ours:>5} {paper:>6} {sum(one.broken is not None for one in found):>7}"


if __name__ == "__main__":
    sys.exit(main())
