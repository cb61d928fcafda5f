"""Certification: what the answer is worth at worst, whatever a bounded attacker writes (paper, section IV)."""

from __future__ import annotations

from robustrag_integrations.certification.cases import Attack, BenignCase, benign_group_cases

__all__ = ["Attack", "BenignCase", "benign_group_cases"]
