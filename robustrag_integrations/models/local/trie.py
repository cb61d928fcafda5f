"""Token sequences that may follow a prompt, their common beginnings held once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch


class TokenTrie:
    """A trie of tokens. Nodes are numbered as they are added; -1 is the root, the end of the prompt."""

    def __init__(self, sequences: Iterable[Sequence[int]] = ()) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        for sequence in sequences:
            self.add(sequence)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, sequence: Sequence[int]) -> None:
        """Add a sequence."""
        node = -1
        for depth, token in enumerate(sequence):
            known = self.child(node, token)
            if known is None:
                known = self._children[node, token] = len(self)
                self.tokens.append(token)
                self.depths.append(depth)
                self.parents.append(node)
            node = known

    def child(self, node: int, token: int) -> int | None:
        """Return the child of a node for a token, if there is one."""
        return self._children.get((node, token))

    def path(self, sequence: Sequence[int]) -> list[int]:
        """Return the nodes of a sequence that is in the trie."""
        nodes = [-1]
        for token in sequence:
            nodes.append(self._children[nodes[-1], token])
        return nodes[1:]

    def visible(self, before: int) -> torch.Tensor:
        """Return the mask [before + nodes, nodes]: a node sees its ancestors and itself; earlier columns see none."""
        seen = torch.zeros((before + len(self), len(self)), dtype=torch.bool)
        for node, parent in enumerate(self.parents, before):
            if parent >= 0:
                seen[node] = seen[parent + before]
            seen[node, node - before] = True
        return seen
