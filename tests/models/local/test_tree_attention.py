"""A tree's nodes attend to what they see, as with torch's own attention, whatever the mask."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.nn import functional  # noqa: E402

from robustrag_integrations.models.local.tree_attention import BLOCK, TreeAttention  # noqa: E402

HIDDEN = torch.finfo(torch.float32).min


def tree_mask(nodes: int, before: int, chance: random.Random):
    """[1, 1, nodes, before + nodes]: every node sees all before the tree, its ancestors and itself."""
    seen = torch.zeros(nodes, before + nodes, dtype=torch.bool)
    seen[:, :before] = True
    for node in range(nodes):
        parent = chance.choice([node - 1, node - 1, chance.randrange(-1, node)]) if node else -1
        if parent >= 0:
            seen[node] = seen[parent]
        seen[node, before + node] = True
    return torch.zeros(seen.shape).masked_fill_(~seen, HIDDEN)[None, None]


def numbers(*shape: int):
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(sum(shape)))


def agrees(attention: TreeAttention, mask, *, heads: int = 3, groups: int = 3, width: int = 16, **settings) -> bool:
    nodes, columns = mask.shape[2:]
    query, key, value = numbers(nodes, heads, width), numbers(groups, columns, width), numbers(groups, columns, width)
    asked = {"attn_mask": mask, **settings}
    wanted = functional.scaled_dot_product_attention(query.transpose(1, 2), key, value, **asked)
    found = attention(query.transpose(1, 2), key, value, **asked)
    return found.shape == wanted.shape and bool((found - wanted).abs().max() < 1e-5)


@pytest.mark.parametrize("before", [0, 1, 63, 200])
@pytest.mark.parametrize("nodes", [BLOCK, BLOCK + 1, 2 * BLOCK - 1, 3 * BLOCK])
def test_nodes_attend_to_their_ancestors_alone(nodes: int, before: int) -> None:
    chance, attention = random.Random(nodes + before), TreeAttention()
    masks = [tree_mask(nodes, before, chance) for _ in range(2)]
    assert all(agrees(attention, mask) for mask in (*masks, *masks))
    assert agrees(attention, masks[0], scale=0.5)


def test_masks_that_come_and_go_are_told_apart() -> None:
    attention = TreeAttention()
    assert all(agrees(attention, tree_mask(BLOCK, 5, random.Random(seed))) for seed in range(12))


def test_a_mask_that_weighs_what_is_seen_keeps_its_weights() -> None:
    mask = tree_mask(BLOCK + 9, 40, random.Random(0))
    assert agrees(TreeAttention(), mask - torch.arange(mask.shape[-1]) / 7)


@pytest.mark.parametrize("mask", [tree_mask(9, 3, random.Random(0)), tree_mask(BLOCK, 3, random.Random(0))])
def test_what_it_is_not_made_for_is_left_to_torch(mask) -> None:
    assert agrees(TreeAttention(), mask, heads=4, groups=2, enable_gqa=True)
    assert agrees(TreeAttention(), mask.expand(1, 3, -1, -1))
    assert agrees(TreeAttention(), mask > HIDDEN)
