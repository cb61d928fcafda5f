"""Attacks: the texts that an attacker writes, and the ranks at which they are planted."""

from __future__ import annotations

from robustrag_integrations.evaluation.attacks.families import (
    ATTACKS,
    Attack,
    Scene,
    false_statement,
    poisoning,
    prompt_injection,
)
from robustrag_integrations.evaluation.attacks.planning import AttackedRetrieval, plan_attack, planted_texts

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackedRetrieval",
    "Scene",
    "false_statement",
    "plan_attack",
    "planted_texts",
    "poisoning",
    "prompt_injection",
]
