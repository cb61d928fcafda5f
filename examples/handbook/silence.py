"""Asks for silence in several words and places, about passages that hold the answer and about some that do not.

pip install '.[cli,local]'
python examples/handbook/silence.py --model FOLDER --output silence.jsonl

The prompt is the one for trusted passages, with each sentence behind its first one or at the end. A run goes on where
it stopped.
"""

import argparse
import json
import re
import runpy
from itertools import zip_longest
from pathlib import Path
from typing import Any

from robustrag_integrations.corpus import BM25Index, read_documents, split
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.text.abstention import silence_of
from robustrag_integrations.text.languages import stop_words
from robustrag_integrations.text.prompts import Prompt

HERE = Path(__file__).parent
UPLOADS = runpy.run_path(str(HERE / "uploads.py"))
FOUND = 2
REQUESTS = {
    "does not hold": 'If the text does not hold the answer, reply "I don\'t know" and nothing else.',
    "says nothing": "Reply with the answer. Only where the text says nothing about the question, reply "
    '"I don\'t know" and nothing else.',
    "what it says": "Answer with what the text says. If it says nothing about this, reply "
    '"I don\'t know" and nothing else.',
}
STOPS = stop_words("en") | stop_words("de")


def prompts(context: str, question: str) -> dict[tuple[str, str], str]:
    """The prompt without a request, and with each at each place."""
    asked = UPLOADS["BODY"].format(context=context, query=question)
    plain = UPLOADS["PLAIN"]
    found = {("none", ""): plain + asked}
    for name, request in REQUESTS.items():
        found[name, "first"] = f"{plain.rstrip()} {request}\n\n{asked}"
        found[name, "end"] = f"{plain}{asked}\n\n{request}"
    return found


def words(text: str) -> set[str]:
    """The content words of a text."""
    return set(re.findall(r"\w+", text.casefold())) - STOPS


def passes(reply: str, question: str, context: str) -> tuple[bool, bool]:
    """Whether a reply shares a content word with the passages, or has none; and a word that is not the question's."""
    said = words(reply)
    new = said - words(question)
    return not said or bool(said & words(context)), not new or bool(new & words(context))


def questions() -> list[tuple[dict[str, Any], bool]]:
    """Questions in turn: of those with an answer in the handbook, and of those without."""
    facts, uploads, long = (
        [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
        for name in ("questions.jsonl", "uploads.jsonl", "long.jsonl")
    )
    nowhere = [row for row in facts if row["kind"] == "unanswerable"]
    facts = [row for row in facts if row["kind"] != "unanswerable"][1::3]
    there = [row for three in zip_longest(facts[::3], facts[1::3], long[1::4]) for row in three if row]
    absent = [row for two in zip_longest(nowhere, uploads[:20:2]) for row in two if row]
    pairs = zip_longest(((row, True) for row in there), ((row, False) for row in absent))
    return [one for pair in pairs for one in pair if one]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a folder, or python:MODULE:FUNCTION")
    parser.add_argument("--output", type=Path, required=True, help="rows, as JSONL")
    chosen = parser.parse_args()

    longest = {} if chosen.model.startswith("python:") else {"max_new_tokens": 48}
    model = NamedModel(chosen.model, **longest).load()
    index = BM25Index(split(read_documents([str(HERE / "documents")]).documents))
    lines = chosen.output.read_text(encoding="utf-8").splitlines() if chosen.output.exists() else []
    done = {row["id"] for row in map(json.loads, lines)}
    for row, there in questions():
        found = index.search(row["question"], FOUND)
        if row["id"] in done or (there and not {p.origin for p in found} & set(row["files"])):
            continue
        context = "\n\n".join(p.text for p in found)
        asked = prompts(context, row["question"])
        said = model.generate([Prompt(text) for text in asked.values()], "final")
        with chosen.output.open("a", encoding="utf-8") as out:
            for (request, place), response in zip(asked, said, strict=True):
                text = response.text or ""
                kept = {"id": row["id"], "kind": row["kind"], "there": int(there), "request": request, "place": place}
                out.write(json.dumps({**kept, **read(text, row, context)}, ensure_ascii=False) + "\n")


def read(text: str, row: dict[str, Any], context: str) -> dict[str, Any]:
    """What a reply is, how right, and whether the gate lets it through: by any word, by one not in the question."""
    status = silence_of(text) or "answers"
    right = UPLOADS["rightness"](text, row) if status == "answers" else 0.0
    any_word, own_word = passes(text, row["question"], context)
    return {"status": status, "right": right, "passes": int(any_word), "passes_own": int(own_word), "text": text}


if __name__ == "__main__":
    main()
