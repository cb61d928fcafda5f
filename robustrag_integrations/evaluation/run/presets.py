"""The paper's tables and figures as configurations (section V and its appendix), and the field's attacks.

A preset is data: `robustrag eval --preset NAME --show-config` prints it. Data set and model are whatever the user has;
without any, the fictional world and the bundled reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from robustrag_integrations.attacks.families import ATTACKS

_PAPER = {"name": "keyword", "extractor": "spacy", "final": "always"}
_SHORT = {**_PAPER, "alpha": 0.2, "beta": 3, "tasks": ["qa"]}
# Long replies that are cut count as far as they go.
_VANILLA = ({"name": "vanilla", "tasks": ["mc", "qa"]}, {"name": "vanilla", "tasks": ["long"], "cut_replies": "count"})
_LONG = {
    "name": "keyword",
    "alpha": 0.4,
    "beta": 4,
    "extractor": "spacy",
    "final": "always",
    "tasks": ["long"],
    "cut_replies": "count",
}
_TOKENS = {"name": "decoding", "eta": 0.0, "tasks": ["qa"]}
_TOKENS_C = {"name": "decoding", "eta": 1.0, "tasks": ["long"], "label": "decoding-c"}
_TOKENS_R = {"name": "decoding", "eta": 4.0, "tasks": ["long"], "label": "decoding-r"}


@dataclass(frozen=True)
class Preset:
    """A table or figure of the paper, or what goes beyond it.

    Attributes:
        about: what it shows.
        config: its configuration.
        cached: whether model calls may come from the cache; not where time is measured.
    """

    about: str
    config: Mapping[str, Any]
    cached: bool = True


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "paper-table1": Preset(
            "accuracy without an attack, and certified against one injected passage (Table 1)",
            {
                "layout": "paper-table1",
                "leave_out": True,
                "tasks": ["mc", "qa", "long"],
                "defenses": ["no-rag", *_VANILLA, _SHORT, _LONG, _TOKENS, _TOKENS_C, _TOKENS_R, "voting"],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1]},
            },
        ),
        "paper-table2": Preset(
            "accuracy and attack success under prompt injection and poisoning (Table 2)",
            {
                "layout": "paper-table2",
                "leave_out": True,
                "tasks": ["qa", "long"],
                "defenses": [*_VANILLA, _SHORT, _LONG, _TOKENS, _TOKENS_C],
                "attacks": [
                    {"name": "pia", "tasks": ["qa"]},
                    {"name": "poison", "tasks": ["qa"]},
                    {"name": "pia-long", "tasks": ["long"]},
                    {"name": "poison-long", "tasks": ["long"]},
                ],
                "top_k": [10],
            },
        ),
        "modification": Preset(
            "certified against one injected and against one modified passage (the appendix's table)",
            {
                "layout": "modification",
                "leave_out": True,
                "tasks": ["mc", "qa"],
                "defenses": [{**_SHORT, "alpha": 0.3, "beta": 3}, _TOKENS, "voting"],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1], "attacks": ["injection", "modification"]},
            },
        ),
        "group-size": Preset(
            "the effect of the group size omega, certified against k' = 1",
            {
                "layout": "group-size",
                "leave_out": True,
                "tasks": ["qa"],
                "defenses": [
                    "vanilla",
                    {**_SHORT, "group_size": [1, 2, 3, 4, 5]},
                    {**_TOKENS, "group_size": [1, 2, 3, 4, 5]},
                ],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1]},
            },
        ),
        "top-k": Preset(
            "the effect of the number of passages k, certified against k' = 1",
            {
                "layout": "top-k",
                "leave_out": True,
                "tasks": ["qa", "long"],
                "defenses": [*_VANILLA, _SHORT, _LONG, _TOKENS, _TOKENS_C],
                "attacks": [],
                "top_k": [2, 4, 6, 8, 10, 15, 20],
                "certify": {"corruption_sizes": [1]},
            },
        ),
        "corruption": Preset(
            "certified accuracy by corruption size k' from 1 to 5, of all defences",
            {
                "layout": "corruption",
                "leave_out": True,
                "tasks": ["mc", "qa"],
                "defenses": ["vanilla", _SHORT, _TOKENS, "voting"],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1, 2, 3, 4, 5]},
            },
        ),
        "thresholds": Preset(
            "the effect of the keyword thresholds alpha and beta, by corruption size",
            {
                "layout": "thresholds",
                "leave_out": True,
                "tasks": ["qa"],
                "defenses": [
                    {**_SHORT, "alpha": 0.2, "beta": 2},
                    {**_SHORT, "alpha": 0.3, "beta": 3},
                    {**_SHORT, "alpha": 0.4, "beta": 4},
                    {**_SHORT, "alpha": 0.5, "beta": 5},
                ],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1, 2, 3, 4, 5]},
            },
        ),
        "eta": Preset(
            "the effect of the decoding threshold eta, by corruption size",
            {
                "layout": "eta",
                "leave_out": True,
                "tasks": ["qa", "long"],
                "defenses": [{"name": "decoding", "eta": [0.0, 1.0, 2.0, 3.0, 4.0]}],
                "attacks": [],
                "top_k": [10],
                "certify": {"corruption_sizes": [1, 2, 3, 4, 5]},
            },
        ),
        "field": Preset(
            "attacks of the field beyond the paper's, at the top and at the end of the passages",
            {
                "tasks": ["qa"],
                "defenses": ["vanilla", _SHORT, "consensus"],
                "attacks": [name for name, attack in ATTACKS.items() if attack.write and not name.endswith("-long")],
                "ranks": ["first", "last"],
                "top_k": [10],
            },
        ),
        "runtime": Preset(
            "time per question, next to vanilla RAG, with 0, 1 or 4 worked examples as the task has in the paper",
            {
                "layout": "runtime",
                "leave_out": True,
                "tasks": ["mc", "qa", "long"],
                "defenses": [
                    {"name": "vanilla", "exemplars": 0, "tasks": ["mc"]},
                    {"name": "vanilla", "exemplars": [1, 4], "tasks": ["qa"]},
                    {"name": "vanilla", "exemplars": 1, "tasks": ["long"], "cut_replies": "count"},
                    {**_SHORT, "exemplars": [1, 4]},
                    {**_LONG, "exemplars": 1},
                    {**_TOKENS, "exemplars": [1, 4]},
                    {**_TOKENS_C, "exemplars": 1, "label": "decoding"},
                    {"name": "voting", "exemplars": 0},
                ],
                "attacks": [],
                "top_k": [10],
            },
            cached=False,
        ),
    }
)
