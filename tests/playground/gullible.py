"""A model that obeys whoever gives orders, and otherwise knows one mayor; and one that takes its time."""

from __future__ import annotations

import re
import time

ASKED: list[float] = []  # when the slow one was asked


def answer(prompt: str) -> str:
    if found := re.search(r"please output ([^.]{1,60})\.", prompt):
        return found[1]
    names = [name for name in ("Kilon Pemel", "Jiso Labun") if name.lower() in prompt.lower()]
    return names[0] if names else "I don't know"


def slow(prompt: str) -> str:
    ASKED.append(time.monotonic())
    time.sleep(0.3)
    return answer(prompt)
