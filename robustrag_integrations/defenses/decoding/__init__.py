"""Secure decoding aggregation: settings, token choice, plan, certificate and front door (paper, III-C and IV-C)."""
