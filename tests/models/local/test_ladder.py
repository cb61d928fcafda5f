"""Several prompts in a pass, on a fixed ladder of widths: what accelerators do, here on the CPU."""

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
from robustrag_integrations.models.local.alone import Row  # noqa: E402
from robustrag_integrations.models.local.ladder import ENOUGH, PassShape  # noqa: E402
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


def test_other_prompts_decide_no_shape() -> None:
    """A row's pass has the rows and the width that its own length asks for, however many others are as long."""
    model = local(tiny_model("llama"), fixed_shapes=True, max_context_tokens=200)
    shapes = set()
    for texts in (FIVE, [*FIVE[:4], "word " * 60], [FIVE[0], *["word " * 40] * 4], [*FIVE[:4], ""]):
        opened(model, texts)  # what the probe does
        with shapes_read(model) as found:
            opened(model, texts)
        several = [shape for shape in found if shape[0] > 1]
        assert several
        assert all(width % 16 == 0 and rows * width <= 2 * ENOUGH for rows, width in several)
        by_width = {width: rows for rows, width in several}
        assert len(set(several)) == len(by_width)
        shapes |= set(several)
    assert len(shapes) == len({width for _, width in shapes})


def test_long_prompts_and_lone_ones_are_read_by_themselves_at_their_own_length() -> None:
    assert PassShape.of(Row(None, (1,) * 236), 2, 10, 8192) == PassShape(2, 238, 2, 0)
    assert PassShape.of(Row(None, (1,) * ENOUGH), 0, 10, 8192) is None
    assert PassShape.of(Row(None, (1,) * 100), 0, 1, 8192) is None
    assert PassShape.of(Row(None, (1,) * 100), 0, 10, 150) is None  # two do not fit into a pass


@pytest.mark.parametrize(
    ("tokens", "alike", "rows"), [(140, 10, 2), (100, 10, 5), (60, 10, 5), (10, 10, 10), (60, 3, 3)]
)
def test_how_many_rows_a_pass_has(tokens: int, alike: int, rows: int) -> None:
    shape = PassShape.of(Row(None, (1,) * tokens), 2, alike, 8192)
    assert shape is not None
    assert shape.rows == rows
    assert (shape.columns + shape.nodes) % 16 == 0
    assert 0 <= shape.columns - tokens < 16


def test_shapes_that_are_not_exact_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny_model("llama")
    wanted = numbers(local(network), FIVE)[0]
    monkeypatch.setattr(isolation_probe, "is_exact", lambda *args, **kwargs: False)
    model = local(network, fixed_shapes=True)
    opened(model, FIVE)
    with shapes_read(model) as found:
        opened(model, FIVE)
    assert {rows for rows, _ in found} == {1}
    assert "0 probed and exact" in model.numerics["reading"]
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
        return found + 1e-6 * inputs.sum() if len(inputs) > 1 and inputs.shape[1] > 1 else found


def test_the_probe_finds_a_leak_between_the_rows_of_a_pass() -> None:
    network = tiny_model("llama")
    attention = network.model.layers[1].self_attn
    attention.v_proj = _Leaking(attention.v_proj)
    model = local(network, fixed_shapes=True)
    assert moved(model, 6) == (0.0, 0.0)
    assert "0 probed and exact" in model.numerics["reading"]


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
    assert "several in a pass of a fixed shape" in certificate.numerics["reading"]


def test_replies_are_those_of_reading_each_prompt_by_itself() -> None:
    network = tiny_model("llama")
    prompts = [PROMPTS.isolated.render(context=t, query=QUERY) for t in FIVE]
    texts = [[r.text for r in local(network, fixed_shapes=f).generate(prompts, "isolated")] for f in (False, True)]
    assert texts[0] == texts[1]
