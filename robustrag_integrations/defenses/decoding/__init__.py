"""Secure decoding aggregation: token choice, plan, certificate and front door (paper, sections III-C and IV-C)."""
