"""Answers as users get them: text, radius, sources, citations, determinism, spending."""
