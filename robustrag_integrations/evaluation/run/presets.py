"""The paper's tables and figures as configurations (section V and its appendix), and the field's attacks.

`robustrag eval --preset NAME --show-config` prints one. Data set and model are whatever the user has. Prompts show as
many worked examples as the paper's (appendix, Figures 13 to 19): none for multiple choice, four for short answers, one
for long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robustrag_integrations.evaluation.attacks.families import ATTACKS

_MC, _QA, _LONG = ({"tasks": [task], "exemplars": shots} for task, shots in (("mc", 0), ("qa", 4), ("long", 1)))
_BOTH_SHOTS = {"exemplars": [1, 4]}
_NO_RAG = {"name": "no-rag", "options": "letters"}
_PLAIN_MC = {"name": "vanilla", **_MC, "options": "letters"}
_PLAIN_QA = {"name": "vanilla", **_QA}
_PLAIN_LONG = {"name": "vanilla", **_LONG, "cut_replies": "count"}  # long replies that are cut count as far as they go
_KEYWORD = {"name": "keyword", "extractor": "spacy", "final": "always"}
_WORDS = {**_KEYWORD, "alpha": 0.2, "beta": 3, **_QA}
_WORDS_LONG = {**_KEYWORD, "alpha": 0.4, "beta": 4, **_LONG, "cut_replies": "count"}
_TOKENS = {"name": "decoding", "eta": 0.0, **_QA}
_TOKENS_C = {"name": "decoding", "eta": 1.0, **_LONG, "label": "decoding-c"}
_TOKENS_R = {**_TOKENS_C, "eta": 4.0, "label": "decoding-r"}
_VOTING = {"name": "voting", "options": "letters"}
_ONE, _FIVE = {"corruption_sizes": [1]}, {"corruption_sizes": [1, 2, 3, 4, 5]}


def _clean(tasks: list[str], defenses: list[Any], **more: Any) -> dict[str, Any]:
    """A table or figure; without an attack, unless it says more."""
    return {"tasks": tasks, "defenses": defenses, "attacks": [], **more}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper-table1": _clean(  # accuracy without an attack, and certified against one injected passage
        ["mc", "qa", "long"],
        [_NO_RAG, _PLAIN_MC, _PLAIN_QA, _PLAIN_LONG, _WORDS, _WORDS_LONG, _TOKENS, _TOKENS_C, _TOKENS_R, _VOTING],
        certify=_ONE,
    ),
    "paper-table2": _clean(  # accuracy and attack success under prompt injection and poisoning
        ["qa", "long"],
        [_PLAIN_QA, _PLAIN_LONG, _WORDS, _WORDS_LONG, _TOKENS, _TOKENS_C],
        attacks=[
            *({"name": name, "tasks": ["qa"]} for name in ("pia", "poison")),
            *({"name": name, "tasks": ["long"], "repeat": 3} for name in ("pia", "poison")),
        ],
    ),
    "modification": _clean(  # certified against one injected and against one modified passage
        ["mc", "qa"],
        [{**_WORDS, "alpha": 0.3}, _TOKENS, _VOTING],
        certify={**_ONE, "attacks": ["injection", "modification"]},
    ),
    "group-size": _clean(  # omega
        ["qa"],
        [_PLAIN_QA, *({**entry, "group_size": [1, 2, 3, 4, 5]} for entry in (_WORDS, _TOKENS))],
        certify=_ONE,
    ),
    "top-k": _clean(
        ["qa", "long"],
        [_PLAIN_QA, _PLAIN_LONG, _WORDS, _WORDS_LONG, _TOKENS, _TOKENS_C],
        top_k=[2, 4, 6, 8, 10, 15, 20],
        certify=_ONE,
    ),
    "corruption": _clean(["mc", "qa"], [_PLAIN_MC, _PLAIN_QA, _WORDS, _TOKENS, _VOTING], certify=_FIVE),
    "thresholds": _clean(
        ["qa"], [{**_WORDS, "alpha": beta / 10, "beta": beta} for beta in (2, 3, 4, 5)], certify=_FIVE
    ),
    "eta": _clean(
        ["qa", "long"],
        [{"name": "decoding", **task, "eta": [0.0, 1.0, 2.0, 3.0, 4.0]} for task in (_QA, _LONG)],
        certify=_FIVE,
    ),
    "runtime": _clean(  # time per question, with 0, 1 or 4 worked examples as the task has in the paper
        ["mc", "qa", "long"],
        [
            *(_PLAIN_MC, {**_PLAIN_QA, **_BOTH_SHOTS}, _PLAIN_LONG),
            *({**_WORDS, **_BOTH_SHOTS}, _WORDS_LONG),
            *({**_TOKENS, **_BOTH_SHOTS}, {**_TOKENS_C, "label": "decoding"}, _VOTING),
        ],
    ),
    "field": {
        "tasks": ["qa"],
        "defenses": ["vanilla", {**_WORDS, "exemplars": 0}, "consensus"],
        "attacks": [name for name, attack in ATTACKS.items() if attack.write],
        "ranks": ["first", "last"],
    },
}
UNCACHED = frozenset({"runtime"})
"""Presets that measure time: model calls may not come out of the cache."""
