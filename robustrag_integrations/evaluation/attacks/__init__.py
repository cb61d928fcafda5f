"""Attacks: the texts that an attacker writes, and the ranks at which they are planted."""

from __future__ import annotations

from robustrag_integrations.evaluation.attacks.canned import false_statement, inject, poisoning, prompt_injection
from robustrag_integrations.evaluation.attacks.families import ATTACKS
from robustrag_integrations.evaluation.attacks.planning import AttackedRetrieval, plan_attack, planted_texts
from robustrag_integrations.evaluation.attacks.scene import Attack, Scene

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackedRetrieval",
    "Scene",
    "false_statement",
    "inject",
    "plan_attack",
    "planted_texts",
    "poisoning",
    "prompt_injection",
]
