"""Majority voting over options: counting, plan, certificate and front door (paper, section III-B)."""
