"""The paper's tables and figures as configurations (section V and its appendix), and the field's attacks.

A preset is data: `robustrag eval --preset NAME --show-config` prints it. Data set and model are whatever the user has;
without any, the fictional world and the bundled reader. Prompts show as many worked examples as the paper's (appendix,
Figures 13 to 19): none for multiple choice, four for short answers, one for long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from robustrag_integrations.attacks.families import ATTACKS

SHOTS = {"mc": 0, "qa": 4, "long": 1}  # worked examples in the paper's prompts

_PAPER = {"name": "keyword", "extractor": "spacy", "final": "always"}
_SHORT = {**_PAPER, "alpha": 0.2, "beta": 3, "tasks": ["qa"], "exemplars": SHOTS["qa"]}
# Long replies that are cut count as far as they go.
_LONG = {**_PAPER, "alpha": 0.4, "beta": 4, "tasks": ["long"], "cut_replies": "count", "exemplars": SHOTS["long"]}
_TOKENS = {"name": "decoding", "eta": 0.0, "tasks": ["qa"], "exemplars": SHOTS["qa"]}
_TOKENS_C = {"name": "decoding", "eta": 1.0, "tasks": ["long"], "label": "decoding-c", "exemplars": SHOTS["long"]}
_TOKENS_R = {**_TOKENS_C, "eta": 4.0, "label": "decoding-r"}
_VOTING = {"name": "voting", "options": "letters"}
_NO_RAG = {"name": "no-rag", "options": "letters"}


@dataclass(frozen=True)
class Preset:
    """A table or figure of the paper, or an extension of it.

    Attributes:
        about: a description.
        config: its configuration.
        cached: True if model calls may come from the cache; not where time is measured.
    """

    about: str
    config: Mapping[str, Any]
    cached: bool = True


def _vanilla(*tasks: str) -> list[dict[str, Any]]:
    """Vanilla RAG with the paper's prompts for each of these tasks."""
    own = {"mc": {"options": "letters"}, "long": {"cut_replies": "count"}}
    return [{"name": "vanilla", "tasks": [task], "exemplars": SHOTS[task], **own.get(task, {})} for task in tasks]


def _of_paper(
    name: str, about: str, tasks: list[str], defenses: list[Any], *, cached: bool = True, **more: Any
) -> tuple[str, Preset]:
    """A table or figure; without an attack and with ten passages, unless it says more."""
    shared = {"leave_out": True, "tasks": tasks, "defenses": defenses, "attacks": [], "top_k": [10]}
    return name, Preset(about, {**shared, **more}, cached)


_ONE = {"corruption_sizes": [1]}
_FIVE = {"corruption_sizes": [1, 2, 3, 4, 5]}
_SIZES = [1, 2, 3, 4, 5]

PRESETS: Mapping[str, Preset] = MappingProxyType(
    dict(
        [
            _of_paper(
                "paper-table1",
                "accuracy without an attack, and certified against one injected passage (Table 1)",
                ["mc", "qa", "long"],
                [_NO_RAG, *_vanilla("mc", "qa", "long"), _SHORT, _LONG, _TOKENS, _TOKENS_C, _TOKENS_R, _VOTING],
                certify=_ONE,
            ),
            _of_paper(
                "paper-table2",
                "accuracy and attack success under prompt injection and poisoning (Table 2)",
                ["qa", "long"],
                [*_vanilla("qa", "long"), _SHORT, _LONG, _TOKENS, _TOKENS_C],
                attacks=[
                    {"name": "pia", "tasks": ["qa"]},
                    {"name": "poison", "tasks": ["qa"]},
                    {"name": "pia", "tasks": ["long"], "repeat": 3},
                    {"name": "poison", "tasks": ["long"], "repeat": 3},
                ],
            ),
            _of_paper(
                "modification",
                "certified against one injected and against one modified passage (the appendix's table)",
                ["mc", "qa"],
                [{**_SHORT, "alpha": 0.3, "beta": 3}, _TOKENS, _VOTING],
                certify={**_ONE, "attacks": ["injection", "modification"]},
            ),
            _of_paper(
                "group-size",
                "the effect of the group size omega, certified against k' = 1",
                ["qa"],
                [*_vanilla("qa"), {**_SHORT, "group_size": _SIZES}, {**_TOKENS, "group_size": _SIZES}],
                certify=_ONE,
            ),
            _of_paper(
                "top-k",
                "the effect of the number of passages k, certified against k' = 1",
                ["qa", "long"],
                [*_vanilla("qa", "long"), _SHORT, _LONG, _TOKENS, _TOKENS_C],
                top_k=[2, 4, 6, 8, 10, 15, 20],
                certify=_ONE,
            ),
            _of_paper(
                "corruption",
                "certified accuracy by corruption size k' from 1 to 5, of all defences",
                ["mc", "qa"],
                [*_vanilla("mc", "qa"), _SHORT, _TOKENS, _VOTING],
                certify=_FIVE,
            ),
            _of_paper(
                "thresholds",
                "the effect of the keyword thresholds alpha and beta, by corruption size",
                ["qa"],
                [{**_SHORT, "alpha": beta / 10, "beta": beta} for beta in (2, 3, 4, 5)],
                certify=_FIVE,
            ),
            _of_paper(
                "eta",
                "the effect of the decoding threshold eta, by corruption size",
                ["qa", "long"],
                [{"name": "decoding", "tasks": [t], "exemplars": SHOTS[t], "eta": [0.0, 1.0, 2.0, 3.0, 4.0]}
                 for t in ("qa", "long")],
                certify=_FIVE,
            ),
            _of_paper(
                "runtime",
                "time per question, next to vanilla RAG, with 0, 1 or 4 worked examples as the task has in the paper",
                ["mc", "qa", "long"],
                [
                    *({**entry, "exemplars": [1, 4]} if entry["tasks"] == ["qa"] else entry
                      for entry in _vanilla("mc", "qa", "long")),
                    {**_SHORT, "exemplars": [1, 4]},
                    _LONG,
                    {**_TOKENS, "exemplars": [1, 4]},
                    {**_TOKENS_C, "label": "decoding"},
                    _VOTING,
                ],
                cached=False,
            ),
            (
                "field",
                Preset(
                    "attacks of the field beyond the paper's, at the top and at the end of the passages",
                    {
                        "tasks": ["qa"],
                        "defenses": ["vanilla", {**_SHORT, "exemplars": 0}, "consensus"],
                        "attacks": [
                            name for name, attack in ATTACKS.items() if attack.write
                        ],
                        "ranks": ["first", "last"],
                        "top_k": [10],
                    },
                ),
            ),
        ]
    )
)  # fmt: skip
