"""Defences of other papers, to compare with (`defenses.registry.BASELINES`)."""
