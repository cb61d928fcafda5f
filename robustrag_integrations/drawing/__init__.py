"""Draws answers and certificates from plain data: one renderer for notebooks, the report page and the playground."""
