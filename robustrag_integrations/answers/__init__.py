"""Answers as users get them: text, radius, groups, citations, determinism, spending."""
