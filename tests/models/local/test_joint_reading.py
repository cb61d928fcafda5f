"""Several prompts behind each other in a pass: what accelerators do, here on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import DecodingAggregation, LocalModel  # noqa: E402
from robustrag_integrations.models.local import isolation_probe  # noqa: E402
from robustrag_integrations.models.local.joint_reading import ENOUGH, PassShape  # noqa: E402
from robustrag_integrations.prompts import prompts_for  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import PROMPTS, QUERY, local, moved, numbers  # noqa: E402

PASSAGES = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra. " * 4]
FIVE = [*PASSAGES, "Tomas Brevik, 1871.", "Nobody knows."]


@contextmanager
def shapes_read(model: LocalModel) -> Iterator[list[tuple[int, int]]]:
    """The rows and tokens of each forward pass."""
    found: list[tuple[int, int]] = []
    hook = model._model.register_forward_pre_hook(
        lambda module, args, kwargs: found.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    yield found
    hook.remove()


def opened(model: LocalModel, texts: Sequence[str], prompts: Any = PROMPTS) -> Any:
    isolated = [prompts.isolated.render(context=t, query=QUERY) for t in texts]
    return model.open_session(isolated, prompts.no_retrieval.render(query=QUERY), 4)


@pytest.mark.parametrize("rows", [3, 6, 11])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", ["llama", "gemma3", "gpt2"])
def test_no_passage_moves_a_bit_of_another_row(architecture: str, dtype: Any, rows: int) -> None:
    """Through its words, its length or its rank."""
    model = local(tiny_model(architecture, dtype=dtype), fixed_shapes=True)
    gap, promised = moved(model, rows)
    assert gap <= promised
    if isolation_is_exact(model):
        assert gap == 0


def isolation_is_exact(model: LocalModel) -> bool:
    return all(found.exact for found in model._reader.probe.found)


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen3", "gemma2", "gemma3", "phi3", "gpt2", "neox"])
@pytest.mark.parametrize("query_first", [False, True])
def test_the_numbers_are_those_of_reading_each_prompt_by_itself(architecture: str, query_first: bool) -> None:
    network = tiny_model(architecture)
    prompts = prompts_for("short_answer", query_first=query_first)
    found = []
    for fixed in (False, True):
        session = opened(local(network, fixed_shapes=fixed), FIVE, prompts)
        steps = [session.opening.distributions, session.append(40), session.append(41)]
        found.append([session.opening.abstention, *(np.vstack([s.groups, s.no_retrieval]) for s in steps)])
    for ours, theirs in zip(*found, strict=True):
        assert np.abs(ours - theirs).max() < 1e-5


def test_all_short_prompts_stand_in_one_pass_of_a_few_sizes_the_one_without_passages_among_them() -> None:
    model = local(tiny_model("llama"), fixed_shapes=True, max_context_tokens=200)
    for texts in (FIVE, [*FIVE[:4], "word " * 60], [FIVE[0], *["word " * 40] * 4], [*FIVE[:4], ""]):
        opened(model, texts)  # what the probe does
        with shapes_read(model) as found:
            opened(model, texts)
        [(rows, tokens)] = found
        assert rows == 1
        assert PassShape.of(tokens, 1).tokens == tokens >= ENOUGH


def test_a_pass_is_at_most_an_eighth_longer_than_its_prompts() -> None:
    assert PassShape.of(1, 1) == PassShape(ENOUGH, 32)
    for tokens in (ENOUGH, 257, 300, 1490, 8000, 8192):
        assert tokens <= PassShape.of(tokens, 33).tokens <= tokens * 9 / 8
    assert PassShape.of(1490, 33) == PassShape(1536, 64)
    assert len({PassShape.of(tokens, 1) for tokens in range(8193)}) == 41


def test_long_prompts_are_read_by_themselves_at_their_own_length() -> None:
    model = local(tiny_model("llama"), fixed_shapes=True, max_context_tokens=500)
    texts = [*FIVE, "word " * 290]
    opened(model, texts)
    with shapes_read(model) as found:
        opened(model, texts)
    lengths = [tokens for _, tokens in found]
    assert len(found) == 2
    assert max(lengths) > 290
    assert min(lengths) >= ENOUGH
    assert max(lengths) not in {PassShape.of(tokens, 1).tokens for tokens in lengths}


def test_no_pass_has_more_tokens_than_are_read_at_once() -> None:
    several = local(tiny_model("llama"), fixed_shapes=True, prefill_tokens=300)
    few = local(tiny_model("llama"), fixed_shapes=True, prefill_tokens=ENOUGH - 1)
    texts = [f"{i} {'word ' * 40}" for i in range(6)]
    wanted = numbers(local(tiny_model("llama")), texts)[0]
    for model, passes in ((several, 3), (few, 7)):
        assert np.abs(numbers(model, texts)[0] - wanted).max() < 1e-5
        with shapes_read(model) as found:
            opened(model, texts)
        assert len(found) == passes
        assert all(tokens <= 300 for _, tokens in found)


def test_a_row_has_the_same_bits_in_passes_of_all_sizes() -> None:
    """However many others are read with it; on the processor that this runs on, where it finds such sizes."""
    model = local(tiny_model("llama"), fixed_shapes=True)
    same = [opened(model, [*FIVE[:2], *(f"{i} " + "word " * 50 for i in range(more))]) for more in (1, 9)]
    ours, theirs = (session.opening.distributions for session in same)
    assert np.array_equal(ours.groups[:2], theirs.groups[:2])
    assert np.array_equal(ours.no_retrieval, theirs.no_retrieval)


def test_models_whose_attention_is_not_torchs_own_read_each_prompt_by_itself() -> None:
    network = tiny_model("llama")
    network.set_attn_implementation("eager")
    model = local(network, fixed_shapes=True)
    with shapes_read(model) as found:
        opened(model, FIVE)
    assert max(tokens for _, tokens in found) < ENOUGH
    assert model.numerics["reading"] == "each by itself, at its own length"


def test_shapes_that_are_not_exact_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny_model("llama")
    wanted = numbers(local(network), FIVE)[0]
    monkeypatch.setattr(isolation_probe, "is_exact", lambda *args, **kwargs: False)
    model = local(network, fixed_shapes=True)
    opened(model, FIVE)
    with shapes_read(model) as found:
        opened(model, FIVE)
    assert len(found) == len(FIVE) + 1
    assert "(0 exact, 1 not used)" in model.numerics["reading"]
    assert np.abs(numbers(model, FIVE)[0] - wanted).max() < 1e-5


class _Leaking(torch.nn.Module):
    """A layer that gives a row something of the others that are read in the same pass, in no decoding step."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    @property
    def weight(self) -> torch.Tensor:
        return self.layer.weight

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found = self.layer(inputs)
        return found + 1e-6 * inputs.sum() if inputs.shape[1] >= ENOUGH else found


def test_the_probe_finds_a_leak_between_the_rows_of_a_pass() -> None:
    network = tiny_model("llama")
    attention = network.model.layers[1].self_attn
    attention.v_proj = _Leaking(attention.v_proj)
    model = local(network, fixed_shapes=True)
    assert moved(model, 6) == (0.0, 0.0)
    assert "(0 exact, 1 not used)" in model.numerics["reading"]


def test_decoding_steps_attend_to_columns_that_the_settings_say_behind_a_prefix_that_is_read_once() -> None:
    """With an explicit mask, in single precision: the steps of a GPU."""
    model = local(tiny_model("llama"), fixed_shapes=True)
    slabs = []
    for texts in (FIVE, [*FIVE[:4], "word " * 60]):
        session = opened(model, texts, prompts_for("short_answer", exemplars=True))
        session.append(40)
        slabs.append(session._batch._slab)
    assert all(slab.shared is not None and not slab.row_by_row for slab in slabs)
    assert slabs[0].width == slabs[1].width


def test_answers_and_certificates_come_from_the_same_shapes() -> None:
    model = local(tiny_model("llama"), fixed_shapes=True)
    defense = DecodingAggregation(model, max_new_tokens=4, stop=())
    answer = defense.answer(QUERY, FIVE)
    assert (
        answer.text
        == DecodingAggregation(local(tiny_model("llama")), max_new_tokens=4, stop=()).answer(QUERY, FIVE).text
    )
    certificate = defense.certify(QUERY, FIVE, answer.text or "x", corruption_size=1)
    assert "several in a pass" in certificate.numerics["reading"]


def test_replies_are_those_of_reading_each_prompt_by_itself() -> None:
    network = tiny_model("llama")
    prompts = [PROMPTS.isolated.render(context=t, query=QUERY) for t in FIVE]
    texts = [[r.text for r in local(network, fixed_shapes=f).generate(prompts, "isolated")] for f in (False, True)]
    assert texts[0] == texts[1]
