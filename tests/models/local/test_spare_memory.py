"""Memory of caches that are over: lent again, and never to two at a time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from robustrag_integrations import LocalModel  # noqa: E402
from robustrag_integrations.models.local import spare_memory  # noqa: E402
from robustrag_integrations.models.local.key_values import KeyValues  # noqa: E402
from robustrag_integrations.models.local.slab import RowCache, Slab  # noqa: E402
from robustrag_integrations.models.local.spare_memory import SpareMemory  # noqa: E402
from tests.helpers.tiny_models import tiny_model  # noqa: E402
from tests.models.local.moving import BENIGN, PROMPTS, QUERY, local  # noqa: E402

SHAPES = [(2, 3, 5), (7,), (2, 3, 5)]


class Owner:
    """Whose memory it is."""


def places(tensors: list[torch.Tensor]) -> set[int]:
    return {tensor.data_ptr() for tensor in tensors}


def test_parts_have_their_shapes_and_nothing_in_common() -> None:
    owner = Owner()
    lent = list(SpareMemory().lend(owner, SHAPES, torch.float32))
    for number, part in enumerate(lent):
        part.fill_(number)
    assert [tuple(part.shape) for part in lent] == SHAPES
    assert [part.unique().tolist() for part in lent] == [[0], [1], [2]]


def test_memory_is_lent_again_once_its_owner_is_gone() -> None:
    memory, first, second = SpareMemory(), Owner(), Owner()
    lent, others = (list(memory.lend(owner, SHAPES, torch.float32)) for owner in (first, second))
    assert places(lent).isdisjoint(places(others))
    known = places(lent)
    del first, lent
    third = Owner()
    assert places(list(memory.lend(third, SHAPES, torch.float32))) == known
    fourth = Owner()
    assert places(list(memory.lend(fourth, SHAPES, torch.float32))).isdisjoint(known)


@pytest.mark.parametrize(("shapes", "dtype"), [([(9000,)], torch.float32), (SHAPES, torch.float64)])
def test_memory_that_does_not_fit_is_not_lent(shapes: list[tuple[int, ...]], dtype: torch.dtype) -> None:
    memory, first, second = SpareMemory(), Owner(), Owner()
    kept = list(memory.lend(first, SHAPES, torch.float32))
    del first
    [*found] = memory.lend(second, shapes, dtype)
    assert [tuple(part.shape) for part in found] == shapes
    assert found[0].dtype == dtype
    assert places(found).isdisjoint(places(kept))


def test_much_memory_is_given_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_memory, "_MOST_BYTES", 100)
    memory, owner = SpareMemory(), Owner()
    list(memory.lend(owner, SHAPES, torch.float32))
    del owner
    assert not memory._spare


def test_a_row_that_is_read_where_it_stays_is_that_which_is_copied() -> None:
    """Whatever stood there before."""
    memory = SpareMemory()
    prefix = KeyValues(tuple((torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)) for _ in range(2)), 3)
    new = [(torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)) for _ in range(2)]
    own = RowCache(8, prefix)
    for layer, pair in enumerate(new):
        own.update(*pair, layer)
    copied = Slab(2, 20, row_by_row=True)
    for _ in range(2):
        slab = Slab(2, 20, row_by_row=True, memory=memory)
        for row in range(2):
            cache = slab.row(row, prefix)
            assert cache is not None
            for layer, pair in enumerate(new):
                cache.update(*pair, layer)
            slab.put(row, cache.pairs(), 0)
            copied.put(row, own.pairs(), 0)
        for got, wanted in zip(slab.pairs(), copied.pairs(), strict=True):
            assert all(map(torch.equal, got, wanted))
        for layer in slab.layers:
            layer.keys.fill_(torch.nan)
        del slab, cache, layer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [2, 3, 7])
def test_all_rows_of_a_batch_begin_at_whole_lines_of_memory(dtype: torch.dtype, rows: int) -> None:
    """Kernels sum up otherwise where numbers begin elsewhere, and a row's rank decides where it is."""
    network = tiny_model("llama", dtype=dtype, head_dim=10, num_key_value_heads=1)
    texts = [f"{BENIGN[row % 3]} {row}" for row in range(rows)]
    groups = [PROMPTS.isolated.render(context=text, query=QUERY) for text in texts]
    session = local(network).open_session(groups, PROMPTS.no_retrieval.render(query=QUERY), 5)
    slab = session._batch._slab
    assert all(
        kept[row].data_ptr() % 64 == 0
        for layer in slab.layers
        for kept in (layer.keys, layer.values)
        for row in range(rows)
    )


def test_rows_that_are_not_decoded_one_by_one_are_not_read_where_they_stay() -> None:
    prefix = KeyValues(((torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)),), 3)
    assert Slab(2, 20, row_by_row=False).row(0, prefix) is None
    assert Slab(2, 20, row_by_row=True).row(0, None) is None
    assert Slab(2, 20, prefix, row_by_row=True).row(0, prefix) is None


def test_answers_are_the_same_whatever_memory_held_before() -> None:
    from robustrag_integrations import MajorityVoting

    model = LocalModel.bundled()
    defense = MajorityVoting(model, group_by="passage")
    passages = [f"The mayor of {town} is Ann." for town in ("Brezar", "Dorarton", "Kilon")]
    asked = "Who is the mayor of Brezar?", passages
    first = defense.answer(*asked, choices=("Ann", "Bob"))
    with torch.inference_mode():
        for buffer in model._reader._memory._spare:
            buffer.fill_(torch.nan)
    assert len(model._reader._memory._spare) > 0
    assert defense.answer(*asked, choices=("Ann", "Bob")) == first
