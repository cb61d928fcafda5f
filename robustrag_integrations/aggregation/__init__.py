"""Secure aggregation as pure functions on responses: no model, no I/O, no clock (paper, sections III-B and III-C)."""
