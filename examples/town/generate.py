"""Writes the web site of an invented town, fifteen pages as such sites have them, and questions about it.

python examples/town/generate.py FOLDER    # FOLDER/site/*.html, FOLDER/questions.jsonl
robustrag ask "When is the town hall open on Thursdays?" --docs FOLDER/site
"""

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

TOWN = "Ober-Linnbach"
PAGES = json.loads((Path(__file__).parent / "facts.json").read_text(encoding="utf-8"))
FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{heading} - {town}</title>
<style>nav {{ float: right }}</style><script>var visits = 1;</script></head>
<body><header><a href="index.html">{town}</a></header>
<nav><ul>{links}</ul></nav>
<main><h1>{heading}</h1>
<p>{text}</p>
<table>{table}</table></main>
<footer><p>{town}, Market Square 1. <a href="imprint.html">Imprint</a>. This site uses no cookies.</p></footer>
</body></html>
"""


def pages() -> Iterator[tuple[str, str]]:
    """The name and the HTML of each page."""
    links = "".join(f'<li><a href="{p["page"]}.html">{escape(p["heading"])}</a></li>' for p in PAGES)
    for page in PAGES:
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in page["table"])
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        texts = {name: escape(page[name]) for name in ("heading", "text")}
        yield f"{page['page']}.html", FRAME.format(town=TOWN, links=links, table=table, **texts)


def questions() -> Iterator[dict]:
    """A question about each page."""
    for page in PAGES:
        about = {"id": f"town-{page['page']}", "kind": "town", "files": [f"site/{page['page']}.html"]}
        yield {**about, "question": page["question"], "answer": [page["answer"]], "incorrect": page["incorrect"]}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "site").mkdir(parents=True, exist_ok=True)
    for name, html in pages():
        (folder / "site" / name).write_text(html, encoding="utf-8")
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in questions())
    (folder / "questions.jsonl").write_text("".join(lines), encoding="utf-8")
