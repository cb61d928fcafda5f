"""Certification: the score that an answer keeps, whatever a bounded attacker writes (paper, section IV).

`defense.certify(query, passages, reference)` is the front door. Like the defences, certification is written as plans,
and each step that decides an answer is the defences' own. Each method's certificate stands in the method's room; here
is what they share.
"""

from __future__ import annotations

from robustrag_integrations.certification.cases import AttackMode, BenignCase, benign_source_cases
from robustrag_integrations.certification.result import Certification, PossibleResponse

__all__ = ["AttackMode", "BenignCase", "Certification", "PossibleResponse", "benign_source_cases"]
