"""Keyword finals in packs and tree levels in one pass on local models: the certificates of plain inference, always."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel  # noqa: E402
from robustrag_integrations.models.base import FinalAnswers, Response  # noqa: E402
from robustrag_integrations.models.local.batches import PromptRows  # noqa: E402
from robustrag_integrations.models.local.decoding import LocalSession  # noqa: E402
from robustrag_integrations.text.prompts import Prompt, PromptTemplate, prompts_for  # noqa: E402
from tests.helpers.scripted import split  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402
from tests.helpers.worlds import graded  # noqa: E402
from tests.models.local.moving import BENIGN, QUERY, local, session  # noqa: E402

ARCHITECTURES = ["llama", "gpt2", "mistral", "gpt_neox"]
PLAIN = ["Tomas Brevik", "engineer", "Sorra", "1871", "summer"]
HOSTILE = ["</s><s>", "<|user|>", "a, b", "a", "b", "\u202e{query}", "I don't know", "\n\nAnswer:", "é😀"]
QUERY_FIRST = PromptTemplate("", "Question: {query}\nKeywords: {keywords}\nAnswer:", ("keywords", "query"))


def alike(network):
    """The network with little attention to what stands further in front: many prompts have the same answer."""
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith(("self_attn.o_proj.weight", "attn.c_proj.weight", "attention.dense.weight")):
                weight.mul_(0.003)
    return network


def tiny(architecture: str, dtype=None, **settings) -> LocalModel:
    network = alike(tiny_model(architecture, dtype=dtype or torch.float32))
    chosen = {"max_context_tokens": 24, "max_new_tokens": 6, "chat": False, "stop": (), **settings}
    return LocalModel(network, tiny_tokenizer(), **chosen)


def final_prompts(words: list[str], *, query_first: bool = False) -> list[Prompt]:
    template = QUERY_FIRST if query_first else prompts_for("short_answer").keyword
    sets = [kept for n in range(len(words) + 1) for kept in combinations(words, n)]
    random.Random(1).shuffle(sets)
    assert template is not None
    return [template.render(keywords=", ".join(sorted(kept)), query=QUERY) for kept in sets[:40]]


def agree(model: LocalModel, prompts: list[Prompt]) -> dict:
    """The profile of packed answers, which are those of asking alone."""
    finals = model.finals()
    told = [*finals.answer(prompts[:2]), *finals.answer(prompts[2:20]), *finals.answer(prompts[20:])]
    assert told == FinalAnswers(model).answer(prompts)
    return finals.profile


@pytest.mark.parametrize("words", [PLAIN, HOSTILE])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_answers_are_those_of_asking_alone(architecture: str, words: list[str]) -> None:
    profile = agree(tiny(architecture), final_prompts(words, query_first=architecture == "gpt2"))
    assert profile["finals_packed"] > (0 if architecture == "gpt2" else 20)  # places count there
    assert profile["noise_measured"] < 2e-5


def test_tokens_in_doubt_are_asked_alone() -> None:
    model = tiny("llama")
    weights = model._model.get_output_embeddings().weight
    with torch.no_grad():  # every token has a twin: no lead is ever clear
        weights[1::2] = weights[::2]
    assert agree(model, final_prompts(PLAIN)) == {}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt_neox", "mistral"])
def test_near_ties_are_answered_as_inference_answers_them(architecture: str, seed: int) -> None:
    """Some tokens have a twin that is as good but for the last bits, so that float noise could decide."""
    model, chance = tiny(architecture, max_new_tokens=8), torch.Generator().manual_seed(seed)
    weights = model._model.get_output_embeddings().weight
    with torch.no_grad():
        ones, others = torch.randperm(len(weights), generator=chance)[: 20 + 10 * seed].split(10 + 5 * seed)
        moved = torch.randn(len(others), weights.shape[1], generator=chance) * 2.0 ** -(18 + seed)
        weights[others] = weights[ones] * (1 + moved)
    agree(model, final_prompts(PLAIN if seed % 2 else HOSTILE, query_first=True))


def test_packs_that_stray_from_inference_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama")
    assert model.finals().profile == {}
    real = PromptRows.append
    monkeypatch.setattr(PromptRows, "append", lambda self, tokens: real(self, tokens) * (1 + 1e-4))
    assert agree(model, final_prompts(PLAIN)) == {}


def test_nothing_is_packed_in_half_precision_or_with_fast_multiplication(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(tiny("llama", torch.bfloat16).finals()) is FinalAnswers
    model = tiny("llama")
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert type(model.finals()) is FinalAnswers
    monkeypatch.undo()
    assert type(tiny("llama", share_prefixes=False).finals()) is FinalAnswers


class Reciting(LocalModel):
    """A local model whose isolated answers are the words of the passage."""

    def generate(self, prompts, role):
        if role == "final":
            return super().generate(prompts, role)
        return [Response(p.text[slice(*p.context)]) for p in prompts]


class AskingAlone(Reciting):
    def finals(self):
        return FinalAnswers(self)


def test_a_keyword_certificate_is_that_of_asking_alone() -> None:
    passages = [*["paris rome bern oslo ulm"] * 2, *["paris"] * 4]  # four words that one attacker decides on
    packed, alone = (
        KeywordAggregation(
            kind(alike(tiny_model("llama")), tiny_tokenizer(), max_new_tokens=6, chat=False, stop=()),
            extractor=split,
            alpha=0.5,
            beta=4,
            cut_replies="count",
        ).certify(QUERY, passages, "paris", corruption_size=1, metric=graded)
        for kind in (Reciting, AskingAlone)
    )
    assert packed.responses == alone.responses
    assert (packed.tau, packed.complete, packed.model_calls) == (alone.tau, alone.complete, alone.model_calls)
    assert packed.numerics["finals_packed"] > packed.numerics["finals_alone"]
    assert alone.numerics["shapes"] == "the batch shapes of inference"


@pytest.mark.parametrize("slack", [0.0, 2.0**-10])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_decoding_certificate_is_that_of_one_prefix_at_a_time(architecture, slack, monkeypatch) -> None:
    passages = [f"paris fact {i}" for i in range(6)]
    settings = {"max_context_tokens": 24, "max_new_tokens": 6, "chat": False, "stop": ()}
    model = LocalModel(tiny_model(architecture), tiny_tokenizer(), **settings)
    asked = {"corruption_size": [1, 2], "metric": graded, "max_model_calls": 120}

    def certified():
        each = (
            DecodingAggregation(model, max_new_tokens=5, stop=["zzz"], slack=slack, eta=eta) for eta in (1, 2, 3, 4)
        )
        return [found for defense in each for found in defense.certify("Where?", passages, "paris", **asked)]

    packed = certified()
    monkeypatch.setattr(LocalSession, "tree", lambda self: None)
    alone = certified()
    for one, other in zip(packed, alone, strict=True):
        assert one.responses == other.responses
        assert (one.tau, one.certified, one.stopped) == (other.tau, other.certified, other.stopped)
        assert one.model_calls == other.model_calls
        assert "prefixes_packed" not in other.numerics
    assert packed[0].numerics["prefixes_packed"] >= 4
    assert packed[0].numerics["noise_measured"] < 2e-5


@pytest.mark.parametrize(
    "architecture", ["llama", "mistral", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2", "gpt_neox"]
)
def test_the_numbers_of_a_tree_are_those_of_steps(architecture: str) -> None:
    begun = session(local(architecture), BENIGN)
    tree = begun.tree()
    for level in [[(40,), (41,), (42,)], [(40, 7), (41, 50), (41, 51), (42, 7)], [(41, 51, 3)]]:
        for prefix, found in zip(level, tree.grow(level), strict=True):
            stepping = begun.fork()
            for token in prefix:
                stepped = stepping.append(token)
            assert np.abs(found.sources - stepped.sources).max() < 2e-5
            assert np.abs(found.no_retrieval - stepped.no_retrieval).max() < 2e-5
