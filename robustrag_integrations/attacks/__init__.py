"""Attacks: what an attacker writes, and where it is put."""

from __future__ import annotations

from robustrag_integrations.attacks.adaptive import AdaptiveAttack, adaptive, adaptive_substitution
from robustrag_integrations.attacks.canned import false_statement, inject, poisoning, prompt_injection

__all__ = [
    "AdaptiveAttack",
    "adaptive",
    "adaptive_substitution",
    "false_statement",
    "inject",
    "poisoning",
    "prompt_injection",
]
