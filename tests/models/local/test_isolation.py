"""The isolation probe: leaks planted in kernels are found, and what it says of a model holds for real batches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.nn import functional  # noqa: E402
from transformers import MixtralConfig, MixtralForCausalLM  # noqa: E402

from robustrag_integrations import DecodingAggregation, KeywordAggregation  # noqa: E402
from robustrag_integrations.models.local import reading  # noqa: E402
from robustrag_integrations.models.local.isolation import Isolation, sums_differ  # noqa: E402
from robustrag_integrations.models.local.language_model import CausalLM  # noqa: E402
from robustrag_integrations.text.prompts import Prompt  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import ATTACKS, BENIGN, PLANTED, QUERY, isolated, local, moved, session  # noqa: E402
from tests.needs import needing  # noqa: E402

Leak = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Leaking(torch.nn.Module):
    """A linear layer whose rows have something to do with each other."""

    def __init__(self, layer: torch.nn.Module, leak: Leak) -> None:
        super().__init__()
        self.layer, self.leak = layer, leak

    @property
    def weight(self) -> torch.Tensor:
        return self.layer.weight

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.leak(self.layer(inputs), inputs)


def in_remainders(multiple: int) -> Leak:
    """What does not fill a block of rows is computed by another kernel."""

    def leak(outputs: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        flat = outputs.flatten(0, -2)
        whole = len(flat) // multiple * multiple
        return torch.cat([flat[:whole], flat[whole:] * (1 + 2.0**-20)]).reshape(outputs.shape)

    return leak


def _signs(outputs: torch.Tensor) -> torch.Tensor:
    return torch.tensor([1.0, -1.0]).repeat(outputs.shape[-1] // 2)


def by_content(size: float) -> Leak:
    return lambda outputs, inputs: outputs + size * _signs(outputs) * torch.sin(50 * inputs.sum())


def by_rank(size: float) -> Leak:
    return lambda outputs, inputs: outputs + size * _signs(outputs) * torch.arange(len(outputs))[:, None, None]


def leaking(leak: Leak, *, everywhere: bool = False) -> Any:
    """A tiny model with a leak in its output, or in a layer of its body as well."""
    network = tiny_model("llama")
    network.lm_head = Leaking(network.lm_head, leak)
    if everywhere:
        layer = network.model.layers[1].mlp
        layer.down_proj = Leaking(layer.down_proj, leak)
    return network


def peaked(network: Any) -> Any:
    """The model with probabilities that leave room for attackers."""
    with torch.no_grad():
        network.lm_head.weight.mul_(40)
    return network


def isolation(model: Any) -> Isolation:
    [found] = model._reader.probed
    return found


@pytest.mark.parametrize("rows", [3, 11])
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("multiple", [4, 8, 16])
def test_rows_are_padded_to_where_remainders_do_not_matter(multiple: int, everywhere: bool, rows: int) -> None:
    model = local(leaking(in_remainders(multiple), everywhere=everywhere))
    assert moved(model, rows) == (0.0, 0.0)
    padded = isolation(model).padded
    assert padded < multiple or padded % multiple == 0  # all of them are in the remainder, or none
    assert padded < rows + 8 * (multiple <= 8) + 16 * (multiple > 8)
    assert model.numerics["isolation"].startswith("probed: not a bit")


def test_keys_and_values_are_compared_as_well_as_what_is_said() -> None:
    """One token later they may decide what is said."""
    network = tiny_model("llama")
    attention = network.model.layers[1].self_attn
    with torch.no_grad():
        attention.o_proj.weight.zero_()  # nothing shows in the logits
    attention.v_proj = Leaking(attention.v_proj, in_remainders(8))
    model = local(network)
    assert moved(model, 11) == (0.0, 0.0)
    assert isolation(model).padded < 8 or isolation(model).padded % 8 == 0  # all in the remainder, or none


@pytest.mark.parametrize("rows", [3, 8])
@pytest.mark.parametrize(
    "leak", [by_content(1e-3), by_rank(1e-2), by_content(1e-6)], ids=["content", "rank", "float noise"]
)
def test_a_leak_that_no_shape_mends_is_found_and_prompts_are_read_apart(leak: Leak, rows: int) -> None:
    model = local(leaking(leak))
    assert moved(model, rows) == (0.0, 0.0)
    assert not isolation(model).exact
    assert f"{rows} rows of a batch move each other's numbers" in model.numerics["isolation"]


@needing("INT8")
def test_no_attack_within_the_radius_changes_an_answer_of_a_quantised_model() -> None:
    """Rows of a batch would share a scale: each prompt is a batch of its own."""
    layers = {torch.nn.Linear}
    quantised = torch.ao.quantization.quantize_dynamic(peaked(tiny_model("llama")), layers, dtype=torch.qint8)
    passages, model = [BENIGN[0]] * 6, local(quantised)
    assert moved(model, 5) == (0.0, 0.0)
    assert model.numerics["isolation"] == "every prompt in a batch of its own"
    defense = DecodingAggregation(model, max_new_tokens=3)
    clean = defense.answer(QUERY, passages)
    assert clean.radius > 0
    for attack in ATTACKS:
        assert defense.answer(QUERY, [*passages[:5], attack]).text == clean.text


@pytest.mark.parametrize("shares", [True, False])
def test_a_model_that_gives_other_numbers_each_time_has_radius_zero_and_no_certificate(shares: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    network = leaking(lambda outputs, inputs: outputs + 1e-3 * torch.randn(outputs.shape, generator=generator))
    model = local(peaked(network), share_prefixes=shares)
    defense = DecodingAggregation(model, max_new_tokens=2)
    answer = defense.answer(QUERY, [BENIGN[0]] * 5)
    assert answer.radius == 0
    assert any("the radius is 0" in w for w in answer.warnings)
    assert not model.deterministic
    assert not defense.certify(QUERY, [BENIGN[0]] * 5, "x", corruption_size=1).certified
    with pytest.raises(ValueError, match="no certificate would hold"):
        KeywordAggregation(model, extractor=str.split).certify(QUERY, [BENIGN[0]] * 5, "x", corruption_size=1)


def test_a_near_tie_that_other_rows_would_decide_is_read_apart() -> None:
    """Every token has a twin; which of both is best is up to the other rows, by a millionth."""
    signs = torch.tensor([1.0, -1.0]).repeat(200)

    def leak(outputs: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        return outputs + 1e-5 * signs * torch.sin(50 * inputs.sum())

    def texts(attack: str) -> list[str | None]:
        network = leaking(leak)
        with torch.no_grad():
            network.lm_head.weight[1::2] = network.lm_head.weight[::2]
        model = local(network)
        prompts = isolated([*BENIGN, attack])
        said = [r.text for r in model.generate(prompts, "isolated")]
        assert not isolation(model).exact
        assert said == [model.generate([p], "isolated")[0].text for p in prompts]
        return said[:3]

    assert len({tuple(texts(attack)) for attack in ATTACKS}) == 1


def test_a_mixture_of_experts_is_read_apart() -> None:
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=400, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1024, initializer_range=0.35, num_local_experts=4,
    )  # fmt: skip
    model = local(MixtralForCausalLM(config).eval())
    assert moved(model, 5) == (0.0, 0.0)
    assert "mixture of experts" in model.numerics["isolation"]


def test_what_was_found_holds_for_the_weights_and_threads_it_was_found_with(monkeypatch: pytest.MonkeyPatch) -> None:
    model = local()
    probed: list[int] = []
    measure = reading.probe
    monkeypatch.setattr(reading, "probe", lambda *args: probed.append(1) or measure(*args))  # type: ignore[func-returns-value]
    session(model, BENIGN)
    session(model, [*BENIGN[:2], PLANTED])
    assert len(probed) == 1
    session(model, BENIGN[:2])
    assert len(probed) == 2  # another number of rows
    with torch.no_grad():
        model._model.lm_head.weight.mul_(1)
    session(model, BENIGN)
    assert len(probed) == 3
    model.forget_prefixes()
    session(model, BENIGN)
    assert len(probed) == 4
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        session(model, BENIGN)
    finally:
        torch.set_num_threads(before)
    assert len(probed) == 5


@pytest.mark.parametrize(
    ("kernels", "threads", "rows"),
    [
        ("", "1", "5 6 11 17"),
        ("COMPATIBLE", "1", "5 11 13 17 22"),
        ("COMPATIBLE", "2", "33"),
        ("AVX2", "1", "5 11"),
        ("", "2", "5 11"),
    ],
)
def test_nothing_moves_further_than_promised_under_several_sets_of_kernels(
    kernels: str, threads: str, rows: str
) -> None:
    """One machine stands for others: MKL_CBWR chooses among MKL's kernels, before it is loaded."""
    chosen = {"MKL_CBWR": kernels} if kernels else {}
    others = {k: v for k, v in os.environ.items() if k != "MKL_CBWR"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.local.moving", threads, *rows.split()],
        env={**others, **chosen, "OMP_NUM_THREADS": threads},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "probed: not a bit of a row depends on other rows" in done.stdout


def test_a_question_that_leaves_little_of_the_window_is_probed_within_it() -> None:
    """GPT-2 has a place for each token of its window, and for none behind it."""
    model = local(tiny_model("gpt2", window=128), max_new_tokens=1, stop=())
    asked, prompts = 0, list[Prompt]()
    for words in range(90, 130):
        question = "who built it" + " a" * words + "\n"
        prompts = [Prompt(question + text, (len(question), len(question) + len(text))) for text in BENIGN[:2]]
        try:
            found = model.generate(prompts, "isolated")
        except ValueError as error:
            assert "leaves no room for passages" in str(error)  # noqa: PT017 - the last one that fits is what is wanted
            break
        assert [r.text for r in found] == [model.generate([p], "isolated")[0].text for p in prompts]
        asked += 1
    assert asked


def one_after_another(rows: Any, weight: Any, bias: Any = None) -> Any:
    """A product whose rows behind the eighth sum up from the back; all in single precision."""
    terms = rows.float()[..., None, :] * weight.float()
    total = torch.zeros(terms.shape[:-1])
    whole = len(rows) // 8 * 8
    columns = range(weight.shape[1])
    for column, other in zip(columns, reversed(columns), strict=True):
        total[:whole] += terms[:whole, ..., column]
        total[whole:] += terms[whole:, ..., other]
    return total.to(rows.dtype)


def test_another_order_of_summation_shows_where_half_precision_rounds_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(1, 1, 64).bfloat16().expand(12, -1, -1), torch.randn(40, 64).bfloat16()
    product = one_after_another(rows, weight)
    assert torch.equal(product, product[:1].expand_as(product))
    lm = CausalLM(tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1))
    monkeypatch.setattr(functional, "linear", one_after_another)
    assert sums_differ(lm, 12)
    assert not sums_differ(lm, 16)


def test_steps_are_padded_to_where_all_rows_sum_up_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "linear", one_after_another)
    model = local(tiny_model("llama", dtype=torch.bfloat16, num_hidden_layers=1))
    assert moved(model, 11) == (0.0, 0.0)
    [found] = model._reader.probed
    assert (found.rows, found.padded, found.exact) == (11, 16, True)
