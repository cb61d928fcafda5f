"""Drawing answers and certificates as HTML: the same parts in a notebook cell and in the report.

`elements` makes markup that no content can break out of, `text` shows hostile characters, `answer` and `certificate`
are the parts, `notebook` gives them inline styles.
"""
