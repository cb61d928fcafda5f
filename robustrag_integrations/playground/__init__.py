"""The playground: a local page for poisoning passages and comparing answers with and without a defence.

`state` is what a page holds, `models` loads what is asked, `answering` makes answers and certificates, `poisoning`
plants attacks, and `app` serves the page and what its buttons ask for.
"""
