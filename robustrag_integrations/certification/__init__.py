"""Certification: the score that an answer keeps, whatever a bounded attacker writes (paper, section IV)."""
