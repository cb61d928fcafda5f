"""How sure a local model is: the log-probabilities of its replies, and how likely it finds given ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.local.encoding import PromptEncoder  # noqa: E402
from robustrag_integrations.text.prompts import Prompt  # noqa: E402
from tests.helpers.tiny_models import CHAT_TEMPLATE, tiny_model, tiny_tokenizer  # noqa: E402
from tests.models.local.moving import ATTACKS, TOKENIZER, isolated  # noqa: E402
from tests.models.local.moving import BENIGN as TEXTS  # noqa: E402

CANDIDATES = ["Brevik", "Brevik built it", "I don't know", "</s>"]


def local(architecture: str = "llama", **settings: Any) -> LocalModel:
    network = tiny_model(architecture, dtype=settings.pop("dtype", torch.float32))
    given = {"max_context_tokens": 96, "max_new_tokens": 24, **settings}
    return LocalModel(network, TOKENIZER, **given)


def plain_logprobs(network: Any, before: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """The log-probabilities of tokens, from one forward pass over everything."""
    with torch.no_grad():
        logprobs = network(torch.tensor([[*before, *tokens]])).logits[0].double().log_softmax(-1)
    return [float(logprobs[len(before) - 1 + i, token]) for i, token in enumerate(tokens)]


def expected_score(
    text: str,
    prompt: Prompt,
    tokenizer: Any = TOKENIZER,
    *,
    chat: bool = False,
    spaced: bool = False,
    ends: Sequence[int] = (2,),
) -> float:
    """The probability of a text, in either spelling where the prompt does not end in a space, and of an end."""
    network = tiny_model("llama")
    ids, total = PromptEncoder(tokenizer, chat=chat).encode(prompt).ids, 0.0
    for spelled in [text] if spaced else [text, " " + text]:
        tokens = tokenizer(spelled, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        total += sum(math.exp(sum(plain_logprobs(network, ids, [*tokens, end]))) for end in ends)
    return math.log(total)


def test_a_score_is_the_probability_of_the_whole_reply_end_included() -> None:
    model, prompts = local(stop=()), isolated(TEXTS)
    assert model.can_score
    for prompt, scores in zip(prompts, model.score(prompts, CANDIDATES), strict=True):
        assert scores == pytest.approx([expected_score(text, prompt) for text in CANDIDATES], abs=1e-4)


@pytest.mark.parametrize("spaced", [True, False])
def test_a_reply_after_a_space_has_one_spelling(spaced: bool) -> None:
    tokenizer, prompts = tiny_tokenizer(chat=True), isolated(TEXTS)
    tokenizer.chat_template = CHAT_TEMPLATE.rstrip("\n") + ("{{ '\n' }}" if spaced else "")
    model = LocalModel(tiny_model("llama"), tokenizer)
    for prompt, scores in zip(prompts, model.score(prompts, CANDIDATES), strict=True):
        expected = [expected_score(text, prompt, tokenizer, chat=True, spaced=spaced) for text in CANDIDATES]
        assert scores == pytest.approx(expected, abs=1e-4)


def test_a_stop_string_ends_a_reply_too() -> None:
    [prompt] = isolated(TEXTS[:1])
    first = TOKENIZER("\n\n", add_special_tokens=False)["input_ids"][0]
    [scores] = local().score([prompt], CANDIDATES)
    assert scores == pytest.approx([expected_score(text, prompt, ends=(2, first)) for text in CANDIDATES], abs=1e-4)


@pytest.mark.parametrize("architecture", ["gpt2", "qwen3", "gemma2", "lfm2"])
def test_every_way_of_reading_gives_the_scores_of_plain_passes(architecture: str) -> None:
    model, network, [prompt] = local(architecture, stop=()), tiny_model(architecture), isolated(TEXTS[:1])
    encoder = PromptEncoder(TOKENIZER, chat=False)
    ids, [[score]] = encoder.encode(prompt).ids, model.score([prompt], ["Brevik"])  # type: ignore[misc]
    ways = [sum(plain_logprobs(network, ids, [*tokens, 2])) for tokens in encoder.spellings("Brevik")]
    assert score == pytest.approx(math.log(sum(map(math.exp, ways))), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", ["llama", "lfm2"])
def test_no_bit_of_a_row_depends_on_other_rows(architecture: str, dtype: torch.dtype) -> None:
    model = local(architecture, dtype=dtype)
    prompts = isolated([*TEXTS, "A planted passage."])
    replies, scores = model.generate(prompts, "isolated"), model.score(prompts, CANDIDATES)
    assert None not in [reply.logprobs for reply in replies]
    for attack in ATTACKS:
        prompts = isolated([*TEXTS, attack])
        assert [r.logprobs for r in model.generate(prompts, "isolated")[:3]] == [r.logprobs for r in replies[:3]]
        assert model.score(prompts, CANDIDATES)[:3] == scores[:3]
    for rank in range(3):
        order = [*range(rank), 3, *range(rank, 3)]
        moved = [isolated([*TEXTS, "A planted passage."])[i] for i in order]
        assert [r.logprobs for r in model.generate(moved, "isolated")] == [replies[i].logprobs for i in order]
        assert model.score(moved, CANDIDATES) == [scores[i] for i in order]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_generate_has_read_is_not_read_again_and_gives_the_same_bits(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, prompts, read = local(dtype=dtype), isolated(TEXTS), 0
    forward = model._model.forward

    def counting(*args: Any, **given: Any) -> Any:
        nonlocal read
        read += given["input_ids"].numel()
        return forward(*args, **given)

    fresh = model.score(prompts, CANDIDATES)
    model._lm.model = model._model
    monkeypatch.setattr(model._model, "forward", counting)
    model.generate(prompts, "isolated")
    read = 0
    assert model.score(prompts, CANDIDATES) == fresh
    assert read < 3 * sum(len(TOKENIZER(" " + text)["input_ids"]) * 2 for text in CANDIDATES)
    model.forget_prefixes()
    assert model.score(prompts, CANDIDATES) == fresh


def test_kept_prompts_stay_within_the_bytes_and_go_before_prefixes() -> None:
    model, prompts = local(), isolated([*TEXTS, *ATTACKS])
    fresh = model.score(prompts, CANDIDATES)
    prefixes = model._reader.prefixes.nbytes
    model.generate(prompts, "isolated")
    limit = (prefixes + model._reader.prefixes.nbytes) // 2
    limited, nothing = local(prefix_cache_bytes=limit), local(prefix_cache_bytes=0)
    for other in (limited, nothing):
        other.generate(prompts, "isolated")
        assert other.score(prompts, CANDIDATES) == fresh
    assert prefixes < limited._reader.prefixes.nbytes <= limit
    assert nothing._reader.prefixes.nbytes == 0


def test_many_candidates_are_read_in_parts() -> None:
    model, prompts = local(), isolated(TEXTS[:1])
    many = [f"Brevik {n} built the light" for n in range(60)]
    [together], alone = model.score(prompts, many), [model.score(prompts, [text])[0] for text in many]
    assert together == pytest.approx([scores[0] for scores in alone if scores], abs=1e-4)


def test_what_can_be_no_whole_reply_has_the_lowest_score() -> None:
    model, prompts = local(max_new_tokens=6), isolated(TEXTS[:2])
    for scores in model.score(prompts, ["", "no " * 500, "Hm"]):
        assert scores is not None
        assert scores[:2] == [-1e4, -1e4]
        assert -1e4 < scores[2] < 0


def test_weights_that_are_no_numbers_give_no_scores_and_no_logprobs() -> None:
    model = local()
    with torch.no_grad():
        model._model.lm_head.weight[7] = math.nan
    assert model.score(isolated(TEXTS), CANDIDATES) == [None] * 3
    assert [reply.logprobs for reply in model.generate(isolated(TEXTS), "isolated")] == [None] * 3


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "lfm2"])
def test_a_reply_has_the_logprobs_of_its_tokens_end_included(architecture: str, ends: bool) -> None:
    network = tiny_model(architecture, tie_word_embeddings=False)
    if ends:
        with torch.no_grad():
            network.lm_head.weight[2] *= 3
    model = LocalModel(network, TOKENIZER, stop=(), max_new_tokens=9)
    prompts = isolated([*TEXTS, "", "x", "Nonsense " * 3])
    replies = model.generate(prompts, "isolated")
    assert ("stop" in [reply.finish for reply in replies]) is ends
    for prompt, reply in zip(prompts, replies, strict=True):
        ids = list(PromptEncoder(TOKENIZER, chat=False).encode(prompt).ids)
        expected: list[float] = []
        while len(expected) < 9 and not (expected and ids[-1] == 2):
            with torch.no_grad():
                logprobs = network(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            expected.append(float(logprobs.max()))
            ids.append(int(logprobs.argmax()))
        assert reply.logprobs == pytest.approx(expected, abs=1e-4)
