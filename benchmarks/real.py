"""The goals on a real model, in one run: against plain transformers, and against the paper's code on the same weights.

    python -m benchmarks --only real --model FOLDER --dtype bfloat16 --data realtimeqa.json.gz --paper RobustRAG

Every round asks another question of the data set about ten passages of 100 words. `--paper` is a checkout of the
paper's code (`paper_code`); without one its rows are left out. Both codes read the same prompts then, without a chat
template, and write as many tokens.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

from benchmarks import exactness, frameworks, load, orchestration
from benchmarks.inference import Bench, ratio_of
from benchmarks.paper_code import item_of, paper_code, reader
from benchmarks.results import Ratio, Target, said
from benchmarks.startup import printed
from benchmarks.timing import Work
from benchmarks.workload import Scene
from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, MajorityVoting, VanillaRAG
from robustrag_integrations.evaluation.attacks import prompt_injection
from robustrag_integrations.evaluation.data.datasets import load_dataset
from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.evaluation.run.cache import CallCache, metered
from robustrag_integrations.models.base import Response, Role
from robustrag_integrations.text.prompts import Prompt, PromptSet, prompts_for

_PASSAGES, _WORDS = 10, 100
_TOKENS = 20  # of an answer, as in the paper's code
_KEYWORDS: dict[str, Any] = {"alpha": 0.5, "beta": 5}  # few keyword sets, so that certificates end
_LOAD = {"questions": 256, "concurrency": 64, "wait": 0.02}


@dataclass(frozen=True)
class RealScene(Scene):
    """Questions of a data set about ten passages of 100 words each, in this project's own prompts.

    Attributes:
        questions: with enough passages.
    """

    passage: int = 512  # nothing is cut
    questions: tuple[EvalQuestion, ...] = ()

    @classmethod
    def of(cls, data: str) -> RealScene:
        """Return the scene of a data set.

        Raises:
            DatasetError: it cannot be read.
        """
        found = load_dataset(data, task="short_answer", top_k=20).questions
        return cls(questions=tuple(q for q in found if len(q.passages) >= _PASSAGES and q.incorrect))

    def asked(self, seed: int = 0) -> EvalQuestion:
        """Return the question of a round."""
        return self.questions[seed % len(self.questions)]

    def prompts(self, *, query_first: bool = False) -> PromptSet:
        """Return the prompts for short answers."""
        return prompts_for("short_answer", query_first=query_first)

    def question(self, seed: int = 0) -> str:
        """Return the text of a question."""
        return self.asked(seed).question

    def passages(self, seed: int = 0) -> list[str]:
        """Return passages that are all different; short ones go on with what the next ones say."""
        texts = [p.text for p in self.asked(seed).passages]
        return [" ".join(" ".join(texts[i:] + texts[:i]).split()[:_WORDS]) for i in range(self.sources)]

    def isolated(self, seed: int = 0) -> list[Prompt]:
        """Return the isolated prompts of a question."""
        template = self.prompts().isolated
        return [template.render(context=text, query=self.question(seed)) for text in self.passages(seed)]

    def whole(self, seed: int = 0) -> Prompt:
        """Return the one prompt of vanilla RAG."""
        return self.prompts().isolated.render(context="\n\n".join(self.passages(seed)), query=self.question(seed))


def _cpu(sign: str, bound: float) -> dict[str, Target]:
    return {"cpu": (sign, bound)}


def _plain(bench: Bench, prompts: Sequence[Prompt]) -> Any:
    """Return the batch that plain transformers reads: in the chat template if there is one, padded on the left."""
    tokenizer, texts = bench.tokenizer, [prompt.text for prompt in prompts]
    tokenizer.padding_side = "left"
    if tokenizer.chat_template:
        asked = [[{"role": "user", "content": text}] for text in texts]
        texts = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    return tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)


def _generate(bench: Bench, prompts: Sequence[Prompt], tokens: int) -> Work:
    """Return plain transformers' greedy answer to these prompts in one batch."""
    batch = _plain(bench, prompts)
    return lambda: bench.network.generate(**batch, do_sample=False, max_new_tokens=tokens)


def _rounds(bench: Bench, cases: Callable[[int], Mapping[str, Work]]) -> dict[str, list[float]]:
    """Return the seconds of each case and round; each round is about another question, the first one does not count."""
    taken: dict[str, list[float]] = {}
    for turn in range(bench.repeats + 1):
        for name, work in cases(turn).items():
            start = bench.clock.read()
            work()
            seconds = bench.clock.read() - start
            print(f"  {name}: {seconds:.3f} s{'' if turn else ' (not counted)'}", file=sys.stderr, flush=True)
            taken.setdefault(name, []).append(seconds)
    return {name: seconds[1:] for name, seconds in taken.items()}


def reading(bench: Bench) -> Iterator[Ratio]:
    """Compare computing per prompt token, and count the tokens that a cold question reads at all."""
    import torch

    scene, ours, fed = bench.scene, bench.model(tokens=1, keep=False), list[int]()

    def count(module: Any, args: Any, kwargs: Any) -> None:
        fed[-1] += kwargs["input_ids"].numel()

    def read(turn: int) -> None:
        fed.append(0)
        hook = bench.network.register_forward_pre_hook(count, with_kwargs=True)
        ours.generate(scene.isolated(turn), "isolated")
        hook.remove()

    def cases(turn: int) -> Mapping[str, Work]:
        batch = _plain(bench, [scene.whole(turn)])
        return {
            "vanilla's prompt, plain": lambda: bench.network(**batch, logits_to_keep=1),
            "ten prompts, ours": lambda: read(turn),
        }

    with torch.inference_mode():
        seconds = _rounds(bench, cases)
    per_token, shares = [], []
    for at, (theirs, mine) in enumerate(zip(*seconds.values(), strict=True), 1):
        ids = [_plain(bench, [prompt])["input_ids"][0].tolist() for prompt in scene.isolated(at)]
        alike = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*ids, strict=False))))
        total = sum(map(len, ids))
        least = total - alike * (len(ids) - 1)
        shares.append(fed[at] / least)
        per_token.append(mine / fed[at] / (theirs / _plain(bench, [scene.whole(at)])["input_ids"].numel()))
    note = f"{fed[-1]} of {total} tokens; no prefix saves {least}"
    yield Ratio("seconds per prompt token, ours / plain on vanilla's prompt", tuple(per_token), _cpu("<=", 1.1))
    yield Ratio("prompt tokens computed / those that no prefix saves", tuple(shares), _cpu("<=", 1.03), note)


def replies(bench: Bench) -> Iterator[Ratio]:
    """Compare ten isolated replies with those of one padded batch."""
    ours = bench.model(tokens=_TOKENS)

    def cases(turn: int) -> Mapping[str, Work]:
        prompts = bench.scene.isolated(turn)
        return {
            "ten replies, plain": _generate(bench, prompts, _TOKENS),
            "ten replies, ours": lambda: ours.generate(prompts, "isolated"),
        }

    seconds = _rounds(bench, cases)
    name = "ten isolated replies, ours / one left-padded batch"
    yield ratio_of(seconds, name, "ten replies, ours", "ten replies, plain", _cpu("<=", 0.65))


def decoding(bench: Bench) -> Iterator[Ratio]:
    """Compare short answers of decoding aggregation with vanilla RAG's, with a kept prefix and without."""
    cold, warm = (DecodingAggregation(bench.model(keep=keep), max_new_tokens=10) for keep in (False, True))

    def cases(turn: int) -> Mapping[str, Work]:
        asked = bench.scene.question(turn), bench.scene.passages(turn)
        return {
            "vanilla, plain": _generate(bench, [bench.scene.whole(turn)], 10),
            "decoding, cold": lambda: cold.answer(*asked),
            "decoding, warm": lambda: warm.answer(*asked),
        }

    seconds = _rounds(bench, cases)
    for case in ("decoding, cold", "decoding, warm"):
        yield ratio_of(seconds, f"{case}, T=10 / vanilla", case, "vanilla, plain")


_FIRST = """
import json, time
from benchmarks.real import RealScene
from robustrag_integrations import {method}, LocalModel
scene = RealScene.of({data!r})
defense = {method}(LocalModel.from_pretrained({folder!r}, dtype={dtype!r}))
import torch
torch.set_num_threads({threads})
taken = []
for seed in range(4):
    start = time.process_time()
    defense.answer(scene.question(seed), scene.passages(seed))
    taken.append(time.process_time() - start)
print(json.dumps(taken))
"""


def first_answer(bench: Bench) -> Iterator[Ratio]:
    """Compare the first answer of a fresh process, after its model is loaded, with later ones."""
    import torch

    for method in ("ConsensusAggregation", "DecodingAggregation"):
        dtype = str(bench.network.dtype).removeprefix("torch.")
        about = {"data": bench.data, "folder": str(bench.folder), "dtype": dtype, "threads": torch.get_num_threads()}
        first, *later = printed(_FIRST.format(method=method, **about))
        note = f"{first:.1f} s, then {', '.join(f'{seconds:.1f}' for seconds in later)}"
        yield Ratio(f"first answer / later ones, {method}", (first / statistics.median(later),), _cpu("<=", 2.0), note)


class _Counting(LocalModel):
    """Keeps the texts of all prompts that are asked."""

    asked: list[str]

    def _generate(self, prompts: Sequence[Prompt], role: Role, *more: Any) -> list[Response]:
        self.asked += [prompt.text for prompt in prompts]
        return super()._generate(prompts, role, *more)


def cache(bench: Bench) -> Iterator[Ratio]:
    """Count the prompts that are asked again when one passage of ten is new."""
    counting = _Counting(bench.network, bench.tokenizer, max_new_tokens=_TOKENS)
    counting.asked = []
    question, texts = bench.scene.asked(), bench.scene.passages()
    with tempfile.TemporaryDirectory() as folder:
        cache = CallCache(folder)
        defense = KeywordAggregation(metered(counting, "real", cache), **_KEYWORDS)

        async def answer(passages: Sequence[str]) -> None:
            await defense.aanswer(question.question, passages)
            await defense.acertify(question.question, passages, question.answers, corruption_size=1, metric=_any)

        asyncio.run(answer(texts))
        asyncio.run(answer([*texts[:-1], bench.scene.passages(1)[0]]))
        cache.close()
    repeated = len(counting.asked) - len(set(counting.asked))
    name = "prompts asked again when one passage of ten is new"
    yield Ratio(name, (float(repeated),), _cpu("<=", 0.0), f"{len(set(counting.asked))} prompts in all")


def _any(response: str, answers: Sequence[str]) -> float:
    """Take every response for right, so that both codes look at all that a certificate needs."""
    return 1.0


def beside_paper(bench: Bench) -> Iterator[Ratio]:
    """Compare whole answers, clean and under prompt injection, and answers with certificates against k' = 1."""
    if bench.paper is None:
        return
    code = paper_code(bench.paper)
    theirs = reader(code, bench.network, str(bench.folder), _TOKENS)
    plain = bench.model(tokens=_TOKENS, chat=False)
    lettered = prompts_for("multiple_choice", options="letters")
    ours: dict[str, Any] = {
        "vanilla": VanillaRAG(plain, cut_replies="count"),
        "keyword": KeywordAggregation(plain, extractor="spacy", final="always", cut_replies="count", **_KEYWORDS),
        "decoding": DecodingAggregation(plain, max_new_tokens=_TOKENS),
        "voting": MajorityVoting(plain, prompts=lettered),
    }
    decoding = SimpleNamespace(eta=0.0, subsample_iter=1)
    paper = {
        "vanilla": SimpleNamespace(query=lambda item, size: code.defense.RRAG(theirs).query_undefended(item)),
        "keyword": code.defense.KeywordAgg(theirs, _KEYWORDS["alpha"], _KEYWORDS["beta"]),
        "decoding": code.defense.DecodingAgg(theirs, decoding),
        "voting": code.defense.MajorityVoting(theirs),
    }

    def cases(turn: int) -> Mapping[str, Work]:
        question, texts = bench.scene.asked(turn), bench.scene.passages(turn)
        planted = prompt_injection(question.question, question.incorrect or "", 1)
        choices = [*question.answers[:1], question.incorrect or "", "Neither", "Both"]
        found: dict[str, Work] = {}

        def both(name: str, method: str, passages: Sequence[str], size: int) -> None:
            options = {"choices": choices} if method == "voting" else {}
            # An empty answer is part of every response: the paper's code then certifies whatever it said.
            item = {**item_of(question, passages), "answer": [""], **options}
            found[f"paper {name}"] = lambda: paper[method].query({**item}, size)

            def answer() -> None:
                ours[method].answer(question.question, passages, **options)
                if size:
                    ours[method].certify(
                        question.question, passages, question.answers, corruption_size=size, metric=_any,
                        top_k=_PASSAGES, **options,
                    )  # fmt: skip

            found[f"ours {name}"] = answer

        for method in ours:
            both(f"{method}, clean", method, texts, 0)
            both(f"{method}, attacked", method, [planted, *texts][: len(texts)], 0)
            if method != "vanilla":
                both(f"{method}, certified", method, texts, 1)
        return found

    seconds = _rounds(bench, cases)
    goals = {"vanilla": 1.0, "keyword": 1.2, "decoding": 2.0, "voting": 1.2}
    for name in (name.removeprefix("ours ") for name in seconds if name.startswith("ours ")):
        goal = 2.0 if name.endswith("certified") else goals[name.split(",")[0]]
        yield ratio_of(seconds, f"paper's code / ours: {name}", f"paper {name}", f"ours {name}", _cpu(">=", goal))


def under_load(bench: Bench) -> Iterator[Ratio]:
    """Compare the requests per second of many questions in flight with those of a bare client."""
    sent: dict[str, list[float]] = {"core async": [], "httpx async": []}
    for _ in range(bench.repeats):
        for style, rates in sent.items():
            found = load.measure(style, **_LOAD, warm=_LOAD["concurrency"])  # type: ignore[arg-type]
            rates.append(len(found.server_times) / found.elapsed)
    values = [a / b for a, b in zip(*sent.values(), strict=True)]
    yield Ratio("requests per second, 64 in flight, ours / bare client", tuple(values), _cpu(">=", 0.6))


ROWS: tuple[Callable[[Bench], Iterable[Ratio]], ...] = (
    *(reading, replies, decoding, first_answer, cache),
    *(exactness.ratios, under_load, beside_paper),
)
AROUND = (orchestration.questions, frameworks.ratios)
"""What is measured without the model, and says its figures itself."""


def ratios(bench: Bench) -> Iterator[Ratio]:
    """Measure every row of the goals but the GPU's."""
    if bench.folder is None:
        raise SystemExit("--only real needs a folder of a model: --model FOLDER")
    for row in ROWS:
        yield from map(said, row(bench))
    for row in AROUND:
        yield from row(bench)
