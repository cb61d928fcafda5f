"""Writes the passages of a file of questions: the first five that `robustrag ask --docs` finds for each.

pip install '.[cli]'
python examples/handbook/retrieve.py [DOCUMENTS QUESTIONS.jsonl]
"""

import json
import sys
from pathlib import Path

from robustrag_integrations.corpus import BM25Index, Library, read_documents, split

HERE = Path(__file__).parent
FOUND = 5


def with_passages(rows: list[dict], documents: str) -> list[dict]:
    """The rows with the passages that are found for their questions in a folder, best first."""
    library = Library(BM25Index(split(read_documents([documents]).documents)), top_k=FOUND)
    found = [library.search(row["question"])[:FOUND] for row in rows]
    return [
        {**row, "passages": [{"source": p.origin, "text": p.text} for p in passages]}
        for row, passages in zip(rows, found, strict=True)
    ]


if __name__ == "__main__":
    documents, questions = sys.argv[1:] or (str(HERE / "documents"), str(HERE / "questions.jsonl"))
    lines = Path(questions).read_text(encoding="utf-8").splitlines()
    rows = with_passages([json.loads(line) for line in lines], documents)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(questions).write_text(text, encoding="utf-8")
