"""Draws answers and certificates from plain data: one renderer for notebooks, the report page and the playground.

`elements` makes markup that no content can break out of, `text` shows hostile characters. `answer` and `certificate`
are the parts of evidence; `notebook` gives the parts inline styles.
"""
