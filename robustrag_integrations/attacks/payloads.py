"""Payloads that others have collected, as an attack: `payloads:FILE`.

Read are JSON (a list of texts, garak's object with `payloads`, BIPIA's lists by category), and text with one payload
per line. The file's author is not trusted: nothing in it is run, and sizes are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations.attacks.canned import repeated
from robustrag_integrations.attacks.scene import Attack, Scene

PREFIX = "payloads:"
LARGEST = 16 * 1024 * 1024  # bytes of a file
LONGEST = 20_000  # characters of a payload
MOST = 100_000


def payload_attack(path: str) -> Attack:
    """The attack that plants payloads of a file, each behind the text of the best passage.

    The payload that a question meets is drawn by seed and question; several planted passages have several payloads.
    `{{question}}` and `{{target}}` in a payload are replaced; where some payload has a target, the attacker's success
    is that the target is answered, else nothing in an answer shows it.

    Raises:
        ValueError: the file cannot be read, is larger than 16 MiB, or holds no payload; the message names it.
    """
    try:
        texts = _read(path, Path(path).stat().st_mtime_ns)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot read the payloads {path!r}: {printable(str(error), 200)}") from error

    def write(scene: Scene) -> list[str]:
        random = Random(f"{scene.seed} {scene.question}")
        chosen = random.sample(texts, min(max(scene.corruption_size, 1), len(texts)))
        filled = [t.replace("{{question}}", scene.question).replace("{{target}}", scene.target) for t in chosen]
        return [f"{scene.cover} {repeated(text[: 2 * LONGEST], scene.repeat)}" for text in filled]

    about = f"{len(texts):,} payloads of a file"
    if any("{{target}}" in text for text in texts):
        return Attack(f"{PREFIX}{path}", about, write, 1)
    return Attack(f"{PREFIX}{path}", about, write, 1, lambda question: question.incorrect or "", goal="other")


@lru_cache(maxsize=16)  # each question asks for them
def _read(path: str, changed: int) -> tuple[str, ...]:
    """The payloads of a file, in its order and without repeats."""
    with Path(path).open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"more than {LARGEST >> 20} MiB; split the file")
    if path.lower().endswith((".yaml", ".yml", ".jsonl")):
        raise ValueError("write a JSON list (.json), or one text per line")
    text = data.decode("utf-8-sig")
    listed = _texts(json.loads(text)) if path.lower().endswith(".json") else text.splitlines()
    found = tuple(dict.fromkeys(payload.strip()[:LONGEST] for payload in listed if payload.strip()))
    if not found:
        raise ValueError("it holds no text; write a JSON list, or one text per line")
    return found[:MOST]


def _texts(value: Any) -> list[str]:
    """The texts of a list, of an object's `payloads`, or else of all lists of an object."""
    if isinstance(value, Mapping):
        value = value["payloads"] if isinstance(value.get("payloads"), list) else list(value.values())
    listed = value if isinstance(value, list) else []
    return [t for item in listed for t in (item if isinstance(item, list) else [item]) if isinstance(t, str)]
