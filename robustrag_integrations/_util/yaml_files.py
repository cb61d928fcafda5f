"""Reads a YAML file that nobody has checked: the only loader of YAML in the package."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError, missing

_LARGEST = 64 * 1024  # bytes
_DEEPEST = 10  # nested lists and mappings
_LONGEST_NUMBER = 40  # characters
_PLAIN = "aliases (*name) and deep nesting are not read; write plain keys and values"


def read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the keys and values in a YAML file of at most 64 KiB; JSON is YAML as well. An empty file has none.

    Time and memory are bounded by the file's size: aliases, merged keys (`<<`), deep nesting and numbers of any length
    are refused with a RobustRAGError, so what comes back is no larger than what was written. Nothing is constructed but
    plain values.
    """
    try:
        import yaml
    except ImportError as absent:
        raise missing("a config needs pyyaml", "eval") from absent
    text = _text(path)
    try:
        _check(yaml.compose(text, Loader=yaml.SafeLoader))  # which builds no values
        found = yaml.safe_load(text)
    except RobustRAGError:
        raise
    except RecursionError:
        raise RobustRAGError(_PLAIN) from None
    except Exception as failure:  # of any kind: 2022-13-45, which is not a date, raises one that is not the parser's
        raise RobustRAGError(f"not YAML: {printable(' '.join(str(failure).split()), 300)}") from failure
    found = {} if found is None else found
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise RobustRAGError("it must hold keys and values, such as 'method: keyword'")
    return found


def shown(value: Any) -> str:
    """Return a value for an error message, cut and made printable."""
    return printable(repr(value), 80)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        with Path(path).open("rb") as file:
            found = file.read(_LARGEST + 1)
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else str(failure)
        raise RobustRAGError(f"cannot read the config: {reason}") from failure
    if len(found) > _LARGEST:
        raise RobustRAGError(f"larger than {_LARGEST // 1024} KiB: not a config")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise RobustRAGError("not UTF-8 text: not a config") from failure


def _check(root: Any) -> None:
    """Refuse aliases, deep nesting, doubled and merged keys, and numbers that are not what they look like."""
    nodes, seen = [(root, 1)], set[int]()
    while nodes:
        node, depth = nodes.pop()
        if node is None:
            continue
        kind = node.tag.rpartition(":")[2]
        if id(node) in seen or (node.id != "scalar" and depth > _DEEPEST):
            raise RobustRAGError(_PLAIN)
        seen.add(id(node))
        if node.id == "sequence":
            nodes += [(item, depth + 1) for item in node.value]
        elif node.id == "mapping":
            keys = Counter(key.value for key, _ in node.value if key.id == "scalar")
            if twice := next((key for key, count in keys.items() if count > 1), None):
                raise RobustRAGError(f"the key {shown(twice)} is there twice; leave one out")
            nodes += [(part, depth + 1) for pair in node.value for part in pair]
        elif kind == "merge":
            raise RobustRAGError("merged keys (<<) are not read; write plain keys and values")
        elif kind in ("int", "float") and (":" in node.value or len(node.value) > _LONGEST_NUMBER):
            # 190:20:30 is 685,230 in YAML 1.1, and each further part makes it sixty times as large.
            said = f"{shown(node.value)} is read as a number"
            raise RobustRAGError(f"{said}: write it in decimal digits, or a text in quotes")
