"""Token sequences that may follow a prompt, their common beginnings held once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch


class TokenTrie:
    """A trie of tokens. Nodes are numbered as they are added; -1 is the root, the end of the prompt."""

    def __init__(self, sequences: Iterable[Sequence[int]] = ()) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self._parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        for sequence in sequences:
            self.add(sequence)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, sequence: Sequence[int], most: int | None = None) -> None:
        """Add a sequence, as far as the trie has no more than `most` nodes then."""
        node = -1
        for depth, token in enumerate(sequence):
            known = self.child(node, token)
            if known is None:
                if most is not None and len(self) >= most:
                    return
                known = self._append(node, token, depth)
            node = known

    def _append(self, parent: int, token: int, depth: int) -> int:
        node = self._children[parent, token] = len(self)
        self.tokens.append(token)
        self.depths.append(depth)
        self._parents.append(parent)
        return node

    def child(self, node: int, token: int) -> int | None:
        """The node of a token after another node, if there is one."""
        return self._children.get((node, token))

    def path(self, sequence: Sequence[int]) -> list[int]:
        """The nodes of a sequence that is in the trie."""
        nodes = [-1]
        for token in sequence:
            nodes.append(self._children[nodes[-1], token])
        return nodes[1:]

    def visible(self, before: int) -> torch.Tensor:
        """[before + nodes, nodes]: each node sees its ancestors and itself; the columns before the trie see no node."""
        seen = torch.zeros((before + len(self), len(self)), dtype=torch.bool)
        for node, parent in enumerate(self._parents, before):
            if parent >= 0:
                seen[node] = seen[parent + before]
            seen[node, node - before] = True
        return seen
