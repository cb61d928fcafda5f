"""How far rows of a real session move when other rows change; run as a module, under the kernels that it is given.

MKL_CBWR=COMPATIBLE python -m tests.models.local.moving THREADS ROWS ...
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from robustrag_integrations import LocalModel
from robustrag_integrations.text.prompts import Prompt, PromptSet, prompts_for
from tests.helpers.tiny_models import tiny_model, tiny_tokenizer

QUERY = "Who built the Halden Light?"
BENIGN = ["The Halden Light was built by Tomas Brevik in 1871.", "Brevik built it.", "It stands on Sorra. " * 4]
PLANTED = "A planted passage."
ATTACKS = ["", "x", "Nonsense " * 3, "The Halden Light was built by the attacker. " * 40, "</s><s>" * 10]
PROMPTS = prompts_for("short_answer")
TOKENIZER = tiny_tokenizer()


def isolated(texts: Sequence[str], query: str = QUERY, prompts: PromptSet = PROMPTS) -> list[Prompt]:
    """The prompts of these passages."""
    return [prompts.isolated.render(context=text, query=query) for text in texts]


def session(model: LocalModel, texts: Sequence[str], query: str = QUERY, prompts: PromptSet = PROMPTS) -> Any:
    """A decoding session over these passages."""
    return model.open_session(isolated(texts, query, prompts), prompts.no_retrieval.render(query=query), 6)


def local(network: Any = "llama", **settings: Any) -> LocalModel:
    """A model with room for short passages, on a network or one of a name."""
    network = tiny_model(network) if isinstance(network, str) else network
    return LocalModel(network, TOKENIZER, **{"max_context_tokens": 96, "max_new_tokens": 6, "stop": (), **settings})


def numbers(model: LocalModel, texts: Sequence[str]) -> tuple[np.ndarray, float]:
    """Everything a session says of each text, [texts + 1, numbers], and how far it says that others may move it."""
    opened = session(model, texts)
    steps = [opened.opening.distributions, opened.append(40), opened.append(41)]
    rows = [np.vstack([s.sources, s.no_retrieval]) for s in steps]
    return np.hstack([np.append(opened.opening.abstention, 0.0)[:, None], *rows]), steps[0].noise


def moved(model: LocalModel, rows: int) -> tuple[float, float]:
    """How far benign rows of a session of so many rows move, and how far the model says that they may."""
    texts = [f"{BENIGN[i % 3]} {i}" for i in range(rows - 2)]
    before, promised = numbers(model, [*texts, PLANTED])
    kept = [*range(rows - 2), rows - 1]
    gaps = [np.abs(before[kept] - numbers(model, [*texts, attack])[0][kept]).max() for attack in ATTACKS]
    for rank in sorted({0, 1, (rows - 2) // 2, rows - 3} & set(range(rows - 2))):
        order = [*range(rank), rows - 2, *range(rank, rows - 2)]
        after, _ = numbers(model, [[*texts, PLANTED][i] for i in order])
        gaps.append(np.abs(before[[*order, rows - 1]] - after).max())
    return float(max(gaps)), promised


def main() -> int:
    """Nothing may move further than promised; gives 1 if something does."""
    torch.set_num_threads(int(sys.argv[1]))
    model = local()
    found = {rows: moved(model, rows) for rows in map(int, sys.argv[2:])}
    print(model.numerics["isolation"])
    strays = {rows: gap for rows, gap in found.items() if not gap[0] <= gap[1]}
    print(strays or "nothing moved")
    return 1 if strays else 0


if __name__ == "__main__":
    raise SystemExit(main())
