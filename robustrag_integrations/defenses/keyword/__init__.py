"""Secure keyword aggregation: counting, plan, certificate and front door (paper, sections III-B and IV-B)."""
