"""Majority voting over options: settings, counting, plan, certificate and front door (paper, section III-B)."""
