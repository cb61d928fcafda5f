"""Steps whose tokens are known have the very bits of steps that are taken one after the other."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.local import known_steps, products  # noqa: E402
from robustrag_integrations.models.local.alone import Alone  # noqa: E402
from robustrag_integrations.prompts import Prompt  # noqa: E402
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer  # noqa: E402


@pytest.fixture(autouse=True)
def parts_of_small_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of small models are taken in parts, too."""
    monkeypatch.setattr(known_steps, "_PART", 2**14)


def model_of(network, **settings) -> LocalModel:
    chosen = {"max_context_tokens": 24, "max_new_tokens": 24, "chat": False, "stop": (), **settings}
    return LocalModel(network, tiny_tokenizer(), **chosen)


def after(model: LocalModel, text: str, tokens: list[int]):
    return model._after(Prompt(text, (0, 0)), tokens)


def read(model: LocalModel, text: str) -> Alone:
    prompt = model._reader.alone(model._encode_final(Prompt(text, (0, 0))), 24)
    assert isinstance(prompt, Alone)
    prompt.open()
    return prompt


def plain_logits(model: LocalModel, text: str, tokens: list[int]):
    prompt = model._reader.alone(model._encode_final(Prompt(text, (0, 0))), 24)
    return torch.cat([prompt.open().logits, *(prompt.append([token]) for token in tokens)])


@pytest.mark.parametrize("seed", range(8))
def test_bits_are_those_of_plain_steps_in_llamas_of_all_sizes(seed: int) -> None:
    chance = random.Random(seed)
    groups, width = chance.choice([1, 2, 3]), 2 * chance.randrange(4, 20)
    heads = groups * chance.choice([1, 2])
    sizes = {"num_attention_heads": heads, "num_key_value_heads": groups, "hidden_size": heads * width}
    more = {"intermediate_size": chance.randrange(50, 700), "head_dim": width, "initializer_range": 0.1}
    model = model_of(tiny_model("llama", **sizes, **more))
    for text in ("Who?", "Facts: " + "paris rome " * chance.randrange(1, 20)):
        tokens = [chance.randrange(400) for _ in range(chance.randrange(2, 20))]
        assert torch.equal(after(model, text, tokens), plain_logits(model, text, tokens))
    assert model._reader.takes_known_steps(read(model, "Who?"), [5, 6])


@pytest.mark.parametrize("architecture", ["gpt2", "mistral", "neox", "phi3", "qwen3"])
def test_bits_are_those_of_plain_steps_whatever_the_architecture(architecture: str) -> None:
    model = model_of(tiny_model(architecture))
    for tokens in ([7, 8, 9], [5], [], [11] * 12):
        assert torch.equal(after(model, "Who built it?", tokens), plain_logits(model, "Who built it?", tokens))


def test_an_answer_goes_on_behind_known_steps_with_the_same_bits() -> None:
    model, tokens = model_of(tiny_model("llama")), [9, 20, 31, 42]
    plain, known = read(model, "Who built it?"), read(model, "Who built it?")
    for token in tokens:
        plain.append([token])
    known_steps.read_known(model._lm, known, tokens)
    assert known.tokens == plain.tokens
    assert torch.equal(known.append([3]), plain.append([3]))
    assert all(torch.equal(one, other) for one, other in zip(known.cached(), plain.cached(), strict=True))


def test_a_weight_is_taken_in_parts_of_whole_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    linear = known_steps.linear

    def noted(row, weight, *bias, whole):
        taken.append(len(weight))
        return linear(row, weight, *bias, whole=whole)

    monkeypatch.setattr(known_steps, "linear", noted)
    for inputs, outputs, sizes in ((96, 500, [128, 128, 244]), (2**14, 200, [64, 64, 72]), (2**15, 130, [64, 66])):
        known_steps._KnownSteps.product(torch.zeros(1, 1, inputs), torch.zeros(outputs, inputs))
        assert taken == sizes
        taken.clear()
    monkeypatch.setattr(known_steps, "_PART", 2**20)
    known_steps._KnownSteps.product(torch.zeros(1, 1, 96), torch.zeros(500, 96))
    assert taken == [500]


def test_a_weight_is_taken_in_parts_with_the_bits_of_the_whole() -> None:
    chance = torch.Generator().manual_seed(0)
    for outputs in (1, 255, 256, 511, 512, 1000, 1537):
        weight, bias = (torch.randn(*shape, generator=chance) for shape in ((outputs, 96), (outputs,)))
        rows = torch.randn(5, 1, 96, generator=chance)
        for added in (None, bias):
            found = known_steps._KnownSteps.product(rows, weight, added)
            assert found.shape == (5, 1, outputs)
            wanted = torch.nn.functional.linear(rows, weight, added)
            assert torch.allclose(found, wanted, atol=1e-4)


def test_a_part_of_a_large_weight_has_the_kernel_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[int] = []

    def by_onednn(inputs, weight, bias=None):
        outputs.append(len(weight))
        return torch.nn.functional.linear(inputs, weight, bias)

    monkeypatch.setattr(products, "by_onednn", by_onednn)
    monkeypatch.setattr(products, "_takes_lone_rows", lambda numbers: numbers >= 2**18)
    known_steps._KnownSteps.product(torch.zeros(5, 1, 300), torch.zeros(1200, 300))
    assert sum(outputs) == 5 * 1200
    assert max(outputs) * 300 < 2**18


def test_they_are_not_taken_where_bits_would_move(monkeypatch: pytest.MonkeyPatch) -> None:
    attend = known_steps._KnownSteps.attend
    monkeypatch.setattr(known_steps._KnownSteps, "attend", lambda *a: attend(*a) * (1 + 2**-20))
    model = model_of(tiny_model("llama"))
    assert torch.equal(after(model, "Who?", [5, 6, 7]), plain_logits(model, "Who?", [5, 6, 7]))
    assert not model._reader.takes_known_steps(read(model, "Who?"), [5, 6, 7])
    monkeypatch.setattr(known_steps._KnownSteps, "attend", attend)
    model.forget_prefixes()
    assert model._reader.takes_known_steps(read(model, "Who?"), [5, 6, 7])


@pytest.mark.parametrize("settings", [{"rows_at_once": 8}, {"fixed_shapes": True}, {"share_prefixes": False}])
def test_other_ways_of_taking_steps_take_them_one_by_one(settings: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("steps are taken in another way here")

    monkeypatch.setattr("robustrag_integrations.models.local.greedy.read_known", refuse)
    model = model_of(tiny_model("llama"), **settings)
    logits = after(model, "Who built it?", [7, 8, 9])
    said = []
    model._ask_alone(Prompt("Who built it?", (0, 0)), said.append)
    assert torch.equal(logits[:1], said[0])
    assert logits.shape[0] == 4
