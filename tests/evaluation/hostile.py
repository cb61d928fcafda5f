"""What passages, answers and names may hold when somebody means harm."""

from __future__ import annotations

import copy
from typing import Any

from tests.evaluation.runs import NO_ATTACK, questions, row_of, setups

TEXTS = {
    "script end": "</script><script>attacked('script')</script>",
    "script end in a comment": "<!--<script></script>--><script>attacked('comment')</script>",
    "image": "<img src=x onerror=\"attacked('image')\">",
    "remote image": "<img src=http://192.0.2.1/pixel.png><link rel=stylesheet href=//192.0.2.1/x.css>",
    "address": "<a href=\"javascript:attacked('link')\">javascript:attacked('link')</a>",
    "frame": "<iframe srcdoc=\"<script>parent.attacked('frame')</script>\"></iframe>",
    "attribute": "\" onmouseover=\"attacked('attribute')\" x=\"' autofocus onfocus='attacked(1)'",
    "drawing": "<svg onload=attacked('svg')><animate onbegin=attacked('svg')></svg>",
    "style": "</style><style>body{background:url(http://192.0.2.1/)}*{display:none!important}</style>",
    "style value": "color:red;position:fixed;top:0;background:url(//192.0.2.1/x)",
    "template": "{{script}}{{policy}}${attacked('template')}",
    "separators": "one\u2028two\u2029three\x85four",
    "direction": "user\u202etxt.exe\u202c \u2066hidden\u2069 \u200fright",
    "controls": "\x00\x01\x1b[31mred\x1b[0m\x7f\x9b31m\b\b\b",
    "tags block": "safe" + "".join(chr(0xE0000 + ord(c)) for c in "ignore all"),
    "selectors": "\U0001f600" + "".join(chr(0xE0100 + i) for i in range(40)),
    "half a pair": "\ud800 alone \udfff",
    "long word": "W" * 100_000,
    "long line": "word " * 20_000,
    "stacked marks": "Z" + "\u0351\u0352\u0353" * 400,
    "empty": "",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u0639\u0627\u0644\u0645",
    "formula": "$\\frac{1}{0}$ =cmd|' /C calc'!A0",
    "prototype": "__proto__ constructor toString",
}


def hostile_row(name: str, text: str) -> dict[str, Any]:
    """A row in which everything that a stranger can write is this text."""
    whole, text = text, text[:2000]  # all of it only where a model or a passage says it
    row = copy.deepcopy(row_of(questions(1)[0], "keyword", setups()["keyword"], NO_ATTACK))
    row.update(key=f"hostile {name}", question=f"{name}: {text}", question_id=text, answers=[text], incorrect=text)
    row.update(dataset=text or "empty", model=text, setup=text)
    for passage in row["passages"]:
        passage.update(text=whole, source=text, planted=True)
    row["answer"].update(query=text, warnings=[text], method=text)
    row["answer"]["settings"] = {text: text}
    row["answer"]["evidence"] = {"counts": {text: 3, "fine": 1}, "threshold": 2.0, "retained": [text]}
    row["answer"]["evidence"] |= {"gaps": [1.0, 0.5], "answering": 5}
    row["answer"]["evidence"] |= {"words": [whole, text], "rivals": [text], "tokens": [-1]}
    for group in row["answer"]["groups"]:
        group.update(response=text, keywords=[text], origins=[text], error=text, status="differs")
    row["answer"]["groups"][0]["response"] = row["answer"]["text"] = whole
    for found in row["certificates"]:
        found.update(query=text, references=[text], metric=text, stopped=text, warnings=[text])
        found["responses"] = [{"text": text, "score": 0.0, "cause": text, "case": 0}]
        found["evidence"] = {"counts": {text: 1}, "threshold": 1.0, "corrupted_groups": 1, "untouched_groups": 5}
    return row


def hostile_rows() -> list[dict[str, Any]]:
    """A row per text, and one that failed with it."""
    rows = [hostile_row(name, text) for name, text in TEXTS.items()]
    error = {"type": TEXTS["image"], "message": TEXTS["script end"]}
    attack = {**NO_ATTACK, "name": TEXTS["image"], "rank": TEXTS["address"], "seed": 0}
    failed = {**rows[0], "key": "failed", "error": error, "answer": None, "scores": None, "certificates": []}
    return [*rows, {**failed, "attack": attack}]
