"""Shared prefixes: computed once, kept within bounds, the same numbers as reading every prompt in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, ModelError  # noqa: E402
from robustrag_integrations.models.local import reading  # noqa: E402
from robustrag_integrations.models.local.encoding import PromptEncoder  # noqa: E402
from robustrag_integrations.text.prompts import PromptSet, prompts_for  # noqa: E402
from tests.helpers.naive_algorithms import naive_decoding_aggregation  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402
from tests.models.local.moving import BENIGN as PASSAGES  # noqa: E402
from tests.models.local.moving import PROMPTS, QUERY, TOKENIZER, isolated, local, session  # noqa: E402

ARCHITECTURES = ["llama", "mistral", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2", "gpt_neox"]
ENCODER = PromptEncoder(TOKENIZER, chat=False)


def numbers(model: LocalModel, prompts: PromptSet = PROMPTS, query: str = QUERY) -> list[np.ndarray]:
    """Abstention scores and distributions of two steps, a row per passage, and one more where there is one."""
    opened = session(model, PASSAGES, query, prompts)
    steps = (opened.opening.distributions, opened.append(40))
    return [opened.opening.abstention, *(np.vstack([s.sources, s.no_retrieval]) for s in steps)]


def next_token(network: Any) -> Callable[[str, list[int]], list[float]]:
    """One plain forward pass over the whole prompt, without a cache."""

    def plain(passage: str, answer: list[int]) -> list[float]:
        [prompt] = isolated([passage]) if passage else [PROMPTS.no_retrieval.render(query=QUERY)]
        with torch.no_grad():
            logits = network(torch.tensor([[*ENCODER.encode(prompt).ids, *answer]])).logits[0, -1]
        return logits.float().softmax(-1).tolist()

    return plain


@contextmanager
def tokens_read(model: LocalModel) -> Iterator[list[int]]:
    """How many tokens each forward pass reads."""
    found: list[int] = []
    hook = model._model.register_forward_pre_hook(
        lambda module, args, kwargs: found.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    yield found
    hook.remove()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tokens_answers_and_certificates_are_those_of_the_plain_algorithm(architecture: str) -> None:
    network = tiny_model(architecture)
    model, plain = local(network), local(network, share_prefixes=False)
    assert model.why_not_shared is None
    assert plain.numerics["prefixes"] == "not shared: switched off"
    for ours, theirs in zip(numbers(model), numbers(plain), strict=True):
        assert np.abs(ours - theirs).max() < 1e-5
    defenses = [DecodingAggregation(m, max_new_tokens=5, eta=0.1, stop=()) for m in (model, plain)]
    ours, theirs = (d.answer(QUERY, PASSAGES) for d in defenses)
    slow = naive_decoding_aggregation(
        PASSAGES, lambda p: 0.0, next_token(network), 0.99, 0.1, 5, TOKENIZER.eos_token_id
    )
    assert ours.evidence["tokens"] == theirs.evidence["tokens"] == slow
    assert (ours.text, ours.radius) == (theirs.text, theirs.radius)
    certificates = [d.certify(QUERY, PASSAGES, ours.text or "x", corruption_size=1) for d in defenses]
    assert len({(c.tau, c.certified) for c in certificates}) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_isolated_answers_are_what_transformers_generates(architecture: str) -> None:
    network = tiny_model(architecture)
    for text, response in zip(PASSAGES, local(network).generate(isolated(PASSAGES), "isolated"), strict=True):
        ids = torch.tensor([ENCODER.encode(isolated([text])[0]).ids])
        out = network.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, use_cache=False
        )
        assert TOKENIZER.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip() == response.text.strip()


def test_the_next_question_does_not_pay_for_the_instruction_again() -> None:
    model, prompts = local(), prompts_for("short_answer", exemplars=True)
    for query in (QUERY, "And who paid for it all?"):  # the isolation probe
        numbers(model, prompts, query)
    model._reader.prefixes.clear()
    with tokens_read(model) as first:
        numbers(model, prompts)
    with tokens_read(model) as second:
        numbers(model, prompts, "And who paid for it all?")
    shared = ENCODER.encode(isolated(PASSAGES, prompts=prompts)[0]).shared
    assert shared > 100
    assert first[0] == shared
    assert sum(first) - sum(second) >= shared
    longest = max(len(ENCODER.encode(p).ids) for p in isolated(PASSAGES, "And who paid for it all?", prompts))
    assert max(second) <= longest - shared + 16  # the longest row, and what is scored behind it


def test_kept_prefixes_stay_within_their_bytes_and_the_oldest_goes_first() -> None:
    sets = [replace(PROMPTS, isolated=replace(PROMPTS.isolated, instruction=f"Task {i}. " * 8)) for i in range(4)]
    one = local()
    numbers(one, sets[0])
    room = one._reader.prefixes.nbytes
    model = local(prefix_cache_bytes=room)
    for prompts in sets:
        numbers(model, prompts)
        assert 0 < model._reader.prefixes.nbytes <= room
    with tokens_read(model) as again:
        numbers(model, sets[3])
    with tokens_read(model) as forgotten:
        numbers(model, sets[0])
    assert len(forgotten) == len(again) + 1  # the last one is still there, the first one is not
    model.forget_prefixes()
    assert model._reader.prefixes.nbytes == 0


@pytest.mark.parametrize(("which", "others_ask"), [(1, False), (2, True)])
def test_a_prefix_that_was_read_while_the_weights_changed_is_not_used_by_later_questions(
    which: int, others_ask: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, prompts = tiny_model("llama"), prompts_for("short_answer", query_first=True)  # two, behind each other
    model = local(network)
    numbers(model, prompts)  # the probe
    model.forget_prefixes()
    read, left = reading.read_prefix, [which]

    def changing(*args: Any) -> Any:
        known = read(*args)
        left[0] -= 1
        if left[0] == 0:
            with torch.no_grad():
                network.model.layers[0].self_attn.k_proj.weight.mul_(-1)
            if others_ask:  # before it is kept
                numbers(model, prompts, "And who paid for it all?")
        return known

    monkeypatch.setattr(reading, "read_prefix", changing)
    numbers(model, prompts)
    fresh = local(network)
    assert all(np.array_equal(a, b) for a, b in zip(numbers(model, prompts), numbers(fresh, prompts), strict=True))


@pytest.mark.parametrize("chat", [False, True])
@given(hostile=st.text(max_size=60) | st.sampled_from(["\n\n", " ", "\n \n\n", ":", "</s>", "\u0301e", "\ud800"]))
@settings(max_examples=40, deadline=None)
def test_no_passage_moves_where_its_prompt_stops_being_shared(chat: bool, hostile: str) -> None:
    encoder = PromptEncoder(tiny_tokenizer(chat=chat), chat=chat)
    [normal, attacked] = (encoder.encode(p, 40) for p in isolated(["A plain passage.", hostile]))
    assert attacked.prefixes == normal.prefixes
    assert normal.shared > 20
    assert attacked.ids[: normal.shared] == normal.ids[: normal.shared]


def test_prompts_with_a_shared_beginning_are_tokenised_as_a_whole() -> None:
    for text in PASSAGES:
        [prompt] = isolated([text])
        assert list(ENCODER.encode(prompt).ids) == TOKENIZER(prompt.text)["input_ids"]


def test_with_the_query_first_sources_share_it_too() -> None:
    first = prompts_for("short_answer", exemplars=True, query_first=True)
    prompts = isolated(PASSAGES, prompts=first)
    assert prompts[0].text.endswith(f"Question: {QUERY}\n\nText:\n{PASSAGES[0]}\n\nAnswer:")
    template, question = ENCODER.encode(prompts[0]).prefixes
    assert TOKENIZER.decode(ENCODER.encode(prompts[0]).ids[template:question]).count(QUERY) == 1
    network = tiny_model("llama")
    shared, plain = (numbers(local(network, share_prefixes=s), first) for s in (True, False))
    assert all(np.abs(a - b).max() < 1e-5 for a, b in zip(shared, plain, strict=True))
    assert prompts_for("multiple_choice", query_first=True).isolated.body.index("{choices}") < 40
    assert prompts_for("long_form", query_first=True).phrases.body.startswith("Request: {query}")


def test_an_architecture_that_cannot_share_is_read_plainly_and_says_why() -> None:
    network = tiny_model("lfm2")
    model = local(network)
    assert "layers of the kind 'conv'" in (model.why_not_shared or "")
    assert "layers of the kind 'conv'" in model.numerics["prefixes"]
    abstention, *steps = numbers(model)
    expected = next_token(network)(PASSAGES[0], [])
    assert np.abs(steps[0][0] - expected).max() < 1e-4
    assert abstention.shape == (3,)
    assert DecodingAggregation(model, max_new_tokens=3).answer(QUERY, PASSAGES).text
    network = tiny_model("llama")
    network.config._attn_implementation = "flex_attention"
    assert "takes no explicit mask" in (local(network).why_not_shared or "")


def test_a_model_that_reads_masks_its_own_way_is_found_out() -> None:
    network = tiny_model("llama")
    forward = network.forward

    def other_forward(
        input_ids: Any, attention_mask: Any, position_ids: Any = None, past_key_values: Any = None, **rest: Any
    ) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4:
            attention_mask = torch.zeros_like(attention_mask)
        return forward(input_ids, attention_mask, position_ids, past_key_values, **rest)

    network.forward = other_forward
    assert "gave other logits than plain reading" in (local(network).why_not_shared or "")


def test_rows_stay_below_the_length_at_which_positions_are_encoded_otherwise() -> None:
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "rope_theta": 1e4}
    rope = {"rope_type": "longrope", "original_max_position_embeddings": 256, **factors}
    network = tiny_model("phi3", rope_parameters=rope, original_max_position_embeddings=256)
    model = local(network, max_context_tokens=900)
    before, after = (session(model, ["Brevik built it.", t]).opening for t in ("short", "long " * 2000))
    assert after.truncated == (False, True)
    assert np.array_equal(before.distributions.sources[0], after.distributions.sources[0])


def test_reading_in_parts_changes_nothing_but_noise_and_leaves_other_rows_alone() -> None:
    network = tiny_model("mistral")
    whole, parts = local(network), local(network, prefill_tokens=64)
    with tokens_read(parts) as read:
        in_parts = numbers(parts)
    assert max(read) <= 64 + 3 * 8 + 8
    for a, b in zip(numbers(whole), in_parts, strict=True):
        assert np.abs(a - b).max() < 1e-5
    attacked = session(parts, [*PASSAGES[:2], "attack " * 80]).opening
    assert np.array_equal(attacked.distributions.sources[:2], in_parts[1][:2])


def test_out_of_memory_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    numbers(model)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(model._model.model.layers[1], "forward", fail)
    for defense in (KeywordAggregation(model), DecodingAggregation(model)):
        with pytest.raises(ModelError, match=r"out of memory.*max_context_tokens.*prefill_tokens"):
            defense.answer(QUERY, PASSAGES)
