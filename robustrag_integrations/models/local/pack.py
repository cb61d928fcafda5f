"""One tree of prompts and answers, read in few forward passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from robustrag_integrations.models.local.packing import TokenTree, logit_noise


class Pack:
    """One tree of prompts and answers, read in few forward passes.

    `next` has, for every node that was wanted and read, the best next token and its lead over the second best, as a
    share of the largest logit (taken as at least 1).
    """

    def __init__(self, tree: TokenTree, trunk: Sequence[int]) -> None:
        self._tree = tree
        self._children: dict[tuple[int, int], int] = {(i - 1, t): i for i, t in enumerate(trunk[: tree.size])}
        self._parents: list[int] = []
        self._tokens: list[int] = []
        self._wanted: dict[int, None] = {}
        self.next: dict[int, tuple[int, float]] = {}
        self._logits = torch.empty(0)
        self._row: dict[int, int] = {}
        self.path(trunk)

    def child(self, node: int, token: int) -> int:
        """The node of a token after another node; -1 if there is none."""
        return self._children.get((node, token), -1)

    def path(self, tokens: Sequence[int]) -> int:
        """Add a path from the root and give its end."""
        node = -1
        for token in tokens:
            known = self._children.get((node, token))
            node = self._add(node, token) if known is None else known
        return node

    def want(self, node: int, tokens: Sequence[int]) -> list[int]:
        """Add a path below a node, and ask what follows the node and each token of the path.

        A node that was read already, without asking what follows it, is read anew.
        """
        nodes = [node]
        for token in tokens:
            known = self.child(nodes[-1], token)
            fresh = known >= self._tree.size or known in self.next
            nodes.append(known if fresh else self._add(nodes[-1], token))
        self._wanted.update((n, None) for n in nodes if n not in self.next)
        return nodes

    def read(self) -> None:
        """Read what was added, in one forward pass."""
        if not self._tokens:
            return
        first, wanted = self._tree.size, list(self._wanted)
        self._logits = self._tree.extend(self._parents, self._tokens, [n - first for n in wanted])[0]
        self._row = {node: row for row, node in enumerate(wanted)}
        best = self._logits.topk(2, dim=-1)
        largest = best.values[:, 0].maximum(-self._logits.amin(-1)).clamp(min=1)
        leads = (best.values[:, 0] - best.values[:, 1]) / largest
        for node, token, lead in zip(wanted, best.indices[:, 0].tolist(), leads.tolist(), strict=True):
            self.next[node] = (token, lead)
        self._parents, self._tokens, self._wanted = [], [], {}

    def noise(self, nodes: Sequence[int], expected: torch.Tensor) -> float:
        """How far the logits of nodes just read are from the expected [nodes, V], as a share of each node's largest."""
        got = self._logits[[self._row[n] for n in nodes]]
        return logit_noise(got, expected)

    def _add(self, parent: int, token: int) -> int:
        node = self._children[parent, token] = self._tree.size + len(self._tokens)
        self._parents.append(parent)
        self._tokens.append(token)
        return node
