"""Payloads that others have collected, as an attack: `payloads:FILE`.

Read are garak's files (`payloads`), promptfoo's (`tests` with `vars`, `intent`, `prompts`), BIPIA's attacks (lists by
category), any JSON or YAML list, JSON lines, and text with one payload per line. The file's author is not trusted:
nothing in it is run, and sizes are bounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations.attacks.orders import cover
from robustrag_integrations.attacks.scene import Attack, AttackedQuestion, Scene, Writer, incorrect_of

PREFIX = "payloads:"
LARGEST = 16 * 1024 * 1024  # bytes of a file
LONGEST = 20_000  # characters of a payload
MOST = 100_000

_LISTS = ("payloads", "intent", "prompts", "tests", "jailbreaks", "attacks")
_TEXTS = ("payload", "injection", "attack", "prompt", "text", "goal", "input", "query", "content", "value")
_MARKS = {"question": ("{{question}}", "{question}"), "target": ("{{target}}", "{target}")}
_DEEPEST = 8


def payload_attack(path: str) -> Attack:
    """The attack that plants payloads of a file, each behind the text of the best passage.

    The payload that a question meets is drawn by seed and question; several planted passages have several payloads.
    `{{question}}` and `{{target}}` in a payload are replaced; where some payload has a target, the attacker's success
    is that the target is answered, else nothing in an answer shows it.

    Raises:
        ValueError: the file cannot be read, or holds no payload.
    """
    texts = read_payloads(path)
    aims = any(mark in text for text in texts for mark in _MARKS["target"])
    about = f"{len(texts):,} payloads of a file"
    name = f"{PREFIX}{path}"
    return Attack(name, about, _writer(texts), 1, incorrect_of if aims else _any, goal="answer" if aims else "other")


def payloads_digest(path: str) -> str:
    """A hash of the file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def read_payloads(path: str) -> tuple[str, ...]:
    """The payloads of a file, in its order and without repeats.

    Raises:
        ValueError: the file cannot be read, is larger than 16 MiB, or holds no payload; the message names it.
    """
    try:
        file = Path(path)
        found = file.stat()
        return _read(path, found.st_size, found.st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the payloads {path!r}: {error}") from error


@lru_cache(maxsize=16)
def _read(path: str, size: int, _: int) -> tuple[str, ...]:
    if size > LARGEST:
        raise ValueError(f"the payloads {path!r} are more than {LARGEST >> 20} MiB; split the file")
    text = Path(path).read_text(encoding="utf-8-sig")
    texts: dict[str, None] = {}
    for payload in _payloads(_parsed(path, text)):
        if payload.strip() and len(texts) < MOST:
            texts.setdefault(payload.strip()[:LONGEST])
    if not texts:
        raise ValueError(
            f"the payloads {path!r} hold no text; write a list, one text per line, or an object with a list such as "
            '{"payloads": [...]}'
        )
    return tuple(texts)


def _parsed(path: str, text: str) -> Any:
    """The file's value: by its ending, and lines of text where it is none of JSON and YAML."""
    ending = Path(path).suffix.lower()
    try:
        if ending == ".json":
            return json.loads(text)
        if ending == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        if ending in (".yaml", ".yml"):
            return _yaml(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the payloads {path!r} are not {ending[1:]}: {printable(str(error), 200)}") from error
    return text.splitlines()


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("YAML payloads need pyyaml: pip install 'robustrag-integrations[eval]'") from error
    try:
        return yaml.safe_load(text)
    except Exception as error:  # of any kind, for dates that are none
        raise ValueError(" ".join(str(error).split())) from error


def _payloads(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts that are payloads: of lists, of known keys of an object, else of all lists that it has."""
    if isinstance(value, str):
        yield value
    elif depth > _DEEPEST:
        return
    elif isinstance(value, list):
        for item in value:
            yield from _payloads(item, depth + 1)
    elif isinstance(value, Mapping):
        yield from _of_object(value, depth + 1)


def _of_object(value: Mapping[Any, Any], depth: int) -> Iterator[str]:
    if isinstance(value.get("redteam"), Mapping):  # promptfoo's configuration, whose other lists are not payloads
        listed = value["redteam"].get("plugins")
        plugins = [p.get("config") for p in listed if isinstance(p, Mapping)] if isinstance(listed, list) else []
        found = [p["intent"] for p in plugins if isinstance(p, Mapping) and "intent" in p]
        yield from _payloads([*found, value.get("tests")], depth)
        return
    if isinstance(value.get("vars"), Mapping):  # promptfoo's test: the longest variable is the injected one
        texts = [text for text in value["vars"].values() if isinstance(text, str)]
        named = [value["vars"][key] for key in _TEXTS if isinstance(value["vars"].get(key), str)]
        yield from named[:1] or sorted(texts, key=len)[-1:]
        return
    if lists := [value[key] for key in _LISTS if isinstance(value.get(key), list)]:
        yield from _payloads(lists, depth)
    elif texts := [value[key] for key in _TEXTS if isinstance(value.get(key), str)]:
        yield texts[0]
    else:
        yield from _payloads([item for item in value.values() if isinstance(item, (list, Mapping))], depth)


def _writer(texts: tuple[str, ...]) -> Writer:
    def write(scene: Scene) -> list[str]:
        random = Random(f"{scene.seed} {scene.question}")
        chosen = random.sample(texts, min(max(scene.corruption_size, 1), len(texts)))
        return [f"{cover(scene)} {' '.join([_filled(text, scene)] * scene.repeat)}" for text in chosen]

    return write


def _filled(text: str, scene: Scene) -> str:
    for name, marks in _MARKS.items():
        for mark in marks:
            text = text.replace(mark, getattr(scene, name))
    return text[: 2 * LONGEST]


def _any(question: AttackedQuestion) -> str | None:
    return question.incorrect or ""
