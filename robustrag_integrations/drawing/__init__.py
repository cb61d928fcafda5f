"""Draws answers, certificates and figures from plain data: one renderer for notebooks, the report page and files.

`elements` makes markup that no content can break out of, `text` shows hostile characters. `answer` and `certificate`
are the parts of evidence and `charts` the figures of an evaluation, as SVG; `notebook` gives the parts inline styles.
`files` puts figures into SVG files.
"""
