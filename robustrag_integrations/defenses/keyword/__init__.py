"""Secure keyword aggregation (paper, sections III-B and IV-B): settings, threshold, plan, certificate, front door."""
