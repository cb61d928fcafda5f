r"""Extracts the answer from a raw reply: without reasoning, out of JSON, out of LaTeX's `\boxed{}`.

Every function here is a function of one reply, linear in its length, and returns the reply as it is where it does not
recognise a form.
"""

from __future__ import annotations

import json
import re
from typing import Any

from robustrag_integrations.text.languages import WORDS
from robustrag_integrations.text.reasoning import parts_of

LEAD = re.compile(
    r"\A[*_]{0,2}(?:(?:so,? |therefore,? )?(?:the |my )?(?:correct |final |best |short |right )?answer(?: is\b| ?:)"
    r"|(?:antwort|réponse|respuesta|risposta|resposta|odpowiedź|antwoord|svar|ответ|відповідь|cevap|답|정답|답변|תשובה|الجواب|الإجابة|उत्तर"
    r"|答案|答え|回答|答) ?[:：])[*_]{0,2}[:： ]*",
    re.I,
)
"""The words before an answer: "The answer is", "**Final answer:**", "Antwort:"; "Answer island" is one."""

_FENCED = re.compile(r"\s*```[\w+-]{0,20}[ \t]*\n(.*?)\n?[ \t]*```\s*", re.S)
_LONGEST_JSON = 20_000  # characters
_ANSWER_KEYS = (
    "answer", "final_answer", "finalanswer", "final", "short_answer", "response", "result", "output", "value",
    "antwort", "réponse", "reponse", "respuesta", "risposta", "resposta", "odpowiedź", "ответ", "答案", "答え", "回答",
)  # fmt: skip
_ASIDE, _OF_ASIDE = frozenset(WORDS["asides"]), frozenset(WORDS["asides hold"])
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TAGGED = re.compile(r"\s*<(answer|final_answer)>((?:(?!</?\1>).)*)</\1>\s*", re.I | re.S)
_BOXED = re.compile(r"\${0,2}\\(?:boxed|fbox)\s*\{")
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox)\s*\{([^{}]{0,500})\}")
_CITATION = re.compile(
    r"\[(?:(?:doc|document|passage|source|ref|context) ?)?#?\d{1,3}(?:[,;–-] ?\d{1,3}){0,9}\]|【[^【】\n]{1,40}】", re.I
)
_LATEX_SPACE = re.compile(r"\\[,;:! ()\[\]]|\$\$|\$(?!\d)|~")


def answer_text(reply: str) -> str:
    """Return the answer in a reply.

    Reasoning goes; reasoning that was never closed leaves what stands before it. Of a reply that is one `<answer>` its
    content is left, of a JSON object the answer's value, of null nothing.
    """
    text = parts_of(reply).answer
    if "<" in text and (tagged := _TAGGED.fullmatch(text)):
        text = tagged[2]
    if "{" not in text:
        return text
    found = _json_answer(text)
    return text if found is None else parts_of(found).answer  # JSON's escapes may hide a mark


def unboxed(text: str) -> str:
    r"""Take an answer out of LaTeX's box: `$\boxed{4608\ \text{pallets}}$` becomes "4608 pallets"."""
    if "\\" not in text or _BOXED.search(text) is None:
        return text
    pieces: list[str] = []
    done = 0
    for match in _BOXED.finditer(text):
        if match.start() >= done:
            end = _closing_brace(text, match.end())
            pieces += [text[done : match.start()], text[match.end() : end]]
            done = end + 1
    plain = _TEXT_COMMAND.sub(r"\1", "".join([*pieces, text[done:]]))
    return _LATEX_SPACE.sub(" ", plain.replace("\\%", "%").replace("{,}", ","))


def without_citations(text: str) -> str:
    """Remove numeric citations from a text: "[1]", "[Doc 2]", "【3†source】"."""
    left = _CITATION.sub("", text) if "[" in text or "【" in text else text
    return left if left.strip() else text  # "[1, 2, 3]" is a list


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, min(len(text), start + 500)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _json_answer(text: str) -> str | None:
    """Return the answer of a text that is a JSON object of one answer and asides; None where the object itself is it.

    What else stands beside it may be a unit, a currency, a condition.
    """
    fenced = _FENCED.fullmatch(text) if "```" in text else None
    inner = (fenced[1] if fenced else text).strip()
    if not (inner.startswith("{") and inner.endswith("}")) or len(inner) > _LONGEST_JSON:
        return None
    try:
        value = json.loads(inner, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    names = {re.sub(r"[\W_]+", "_", _CAMEL.sub("_", name.strip())).casefold(): name for name in value}
    answers = [name for name in names if name in _ANSWER_KEYS]
    if len(answers) != 1 or len(names) != len(value) or not all(map(_is_aside, names.keys() - answers)):
        return None
    return _plain(value[names[answers[0]]])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _is_aside(name: str) -> bool:
    """True for what may stand beside an answer: "reasoning", "sourceId"; not for "source_currency"."""
    words = set(name.split("_"))
    return bool(words & _ASIDE) and words <= _ASIDE | _OF_ASIDE


def _plain(value: Any) -> str | None:
    if isinstance(value, list):
        lines = [_plain(each) for each in value]
        return None if None in lines else "\n".join(filter(None, lines))
    if isinstance(value, dict):
        return None
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else "" if value is None else str(value)
