"""Questions made from the rows of a data file: the fields that a row must hold, and what each task makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.certification.metrics import normalised
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.text.prompts import Task

LONGEST_TEXT = 1_000_000  # characters of a passage
LONGEST_ANSWER = 20_000  # characters of a question, an answer or an option
MOST_SWAPS = 100  # in one text that is made to lie about another option
MOST_PASSAGES = 10_000  # of one question
FALSE_BIRTHDAY = "January 11"  # what the paper's poisoned biographies claim, each with another year


@dataclass(frozen=True)
class EvalQuestion:
    """A question with its clean retrieval (best first), its right answers, and what the attacker wants to be answered.

    Attributes:
        answers: the right answers, each of which is right; for `multiple_choice` the right option, for `long_form` a
            reference.
            An abstention ("I don't know") for a short question that has no answer.
        incorrect: the answer that the attacker wants; None when it is not known. For `multiple_choice` it is an option.
        poisoned: false texts about this question, ready to be planted, and their claim, where that is not `incorrect`.
        several: the right answers differ, and all of them are wanted; else each is a way to write the same one.
        trusted: passages that are read together and that no attack touches; none: the question is asked without.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    incorrect: str | None = None
    passages: tuple[Passage, ...] = ()
    choices: tuple[str, ...] = ()
    correct_choice: int | None = None
    incorrect_choice: int | None = None
    poisoned: tuple[str, ...] = ()
    poison_target: str | None = None
    several: bool = False
    trusted: tuple[Passage, ...] = ()


def question_of(row: Any, number: int) -> tuple[EvalQuestion, bool]:
    """A row as a question, and whether it asks for a long answer; `number` is its `id` when it has none.

    Two layouts are read, by their keys: the paper's and the project's (docs/guide/evaluation.md).

    Raises:
        ValueError: it is not a question; the message says what is wrong.
    """
    if not isinstance(row, dict):
        raise ValueError('expected an object such as {"question": ..., "answer": ..., "passages": [...]}')
    own = _of_paper(row) if "correct answer" in row or "context" in row else row
    question = _with_choice_numbers(_question(own))
    right, at = _plain(question.answers), question.correct_choice
    if at is not None and not _plain([question.choices[at]]) & right:
        option = f"{question.choices[at]!r:.60} (number {at}, from 0)"
        raise ValueError(f"the answer {question.answers[0]!r:.60} is not the right option, {option}")
    if question.incorrect is not None and _plain([question.incorrect]) & right:
        raise ValueError(f"the incorrect answer {question.incorrect!r:.60} is a right one as well")
    given = row.get("id")
    given = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    name = valid_text(given[:100]) if isinstance(given, str) and given.strip() else f"{number:04d}"
    return replace(question, id=name), own.get("long") is True


def for_task(question: EvalQuestion, task: Task) -> EvalQuestion:
    """The question as a task asks it; a list wants all answers, or the first way to write a single one.

    In multiple choice the right answer is the right option, and the attacker wants an option as well: `incorrect` if it
    is one, else the wrong option that follows the right one. Texts that lie about `incorrect` are made to lie about
    that option.
    """
    if task == "list" and not question.several:
        return replace(question, answers=question.answers[:1])
    if task != "multiple_choice":
        return question
    try:
        choices = check_choices(question.choices or None)
    except TypeError as error:
        raise ValueError(str(error)) from error
    right = question.correct_choice
    if right is None:
        raise ValueError("none of the choices is the answer; say which with correct_choice, an index from 0")
    wrong = question.incorrect_choice
    if wrong is None or wrong == right:
        wrong = (right + 1) % len(choices)
    named, option = question.incorrect, choices[wrong]
    lies = question.poisoned
    if named is not None and named != option:
        lies = tuple(text.replace(named, option, MOST_SWAPS) for text in lies if named in text)
    return replace(
        question,
        answers=(choices[right],),
        incorrect=option,
        incorrect_choice=wrong,
        poisoned=lies if named is not None else (),
        poison_target=None,
    )


def _question(row: Mapping[str, Any]) -> EvalQuestion:
    if missing := [key for key in ("answer", "passages", "question") if key not in row]:
        raise ValueError(f"there is no {missing[0]!r}")
    passages, choices = row["passages"], _texts(row, "choices")
    if not isinstance(passages, list):
        raise ValueError("passages must be a list of texts or of objects with a text")
    if len(passages) > MOST_PASSAGES:
        raise ValueError(f"{len(passages):,} passages; at most {MOST_PASSAGES:,} are read")
    if not (answers := _texts(row, "answer")):
        raise ValueError("answer must be a text or a list of texts")
    return EvalQuestion(
        "",
        _text(row["question"], "question"),
        answers,
        _optional(row, "incorrect"),
        tuple(map(_passage, passages)),
        choices,
        _index(row.get("correct_choice"), choices),
        poisoned=_texts(row, "poisoned", most=LONGEST_TEXT),
        poison_target=_optional(row, "poison_target"),
        several=row.get("several") is True,
        trusted=tuple(map(_passage, _trusted(row))),
    )


def _trusted(row: Mapping[str, Any]) -> list[Any]:
    given = row.get("trusted_passages", [])
    if not isinstance(given, list) or len(given) > MOST_PASSAGES:
        raise ValueError(f"trusted_passages must be a list of at most {MOST_PASSAGES:,} texts or objects with a text")
    return given


def _of_paper(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the paper's as one of the project's."""
    if missing := [key for key in ("correct answer", "context") if key not in row]:
        raise ValueError(f"there is no {missing[0]!r}")
    lies = _texts({"poisoned": row.get("incorrect_context", row.get("adap_adv_texts"))}, "poisoned", most=LONGEST_TEXT)
    context, choices, long = row["context"], row.get("choices"), bool(row.get("long_gen"))
    while isinstance(choices, list) and choices and choices[-1] == "":  # quizzes of fewer options are filled up
        choices = choices[:-1]
    number = row.get("choices answer")
    digits = isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 4
    return {
        **{key: row[key] for key in ("question",) if key in row},
        "answer": list(dict.fromkeys(_texts(row, "correct answer") + _texts(row, "expanded answer"))),
        "incorrect": row.get("incorrect answer"),
        "passages": [_search_result(item) for item in context] if isinstance(context, list) else context,
        "choices": choices,
        "correct_choice": None if number == "" else int(str(number)) if digits else number,
        "poisoned": list(lies),
        "poison_target": FALSE_BIRTHDAY if long and lies and all(FALSE_BIRTHDAY in t for t in lies) else None,
        "long": long,
    }


def _passage(item: Any) -> Passage:
    if isinstance(item, str):
        return Passage(_bounded(item))
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise ValueError("a passage must be a text or an object with a text")
    source, name = item.get("source"), item.get("id")
    return Passage(
        _bounded(item["text"]),
        id=valid_text(name[:100]) if isinstance(name, str) and name else None,
        origin=None if source is None else _bounded(str(source)),
    )


def _search_result(item: Any) -> dict[str, str | None]:
    """Title and text of a search result; some results have a title only."""
    parts = [item.get(key) or "" for key in ("title", "text", "link")] if isinstance(item, dict) else [None]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("an entry of context must be an object whose title, text and link are texts")
    title, text, link = parts
    return {"text": "\n".join(filter(None, (title, text))), "source": link or None}


def _with_choice_numbers(question: EvalQuestion) -> EvalQuestion:
    """Fill in which options are right and wrong, as far as the answers tell."""
    if not question.choices:
        return question
    right = question.correct_choice
    if right is None:
        right = _position(question.choices, question.answers)
    incorrect = question.incorrect
    if incorrect is None and right is not None and len(question.choices) > 1:
        incorrect = question.choices[(right + 1) % len(question.choices)]
    wrong = None if incorrect is None else _position(question.choices, [incorrect])
    return replace(question, incorrect=incorrect, correct_choice=right, incorrect_choice=wrong)


def _position(choices: Sequence[str], wanted: Iterable[str]) -> int | None:
    known = _plain(wanted)
    return next((i for i, choice in enumerate(choices) if normalised(choice) in known), None)


def _plain(texts: Iterable[str]) -> set[str]:
    return set(map(normalised, texts))


def _optional(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return _text(value, key)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} must be a text")
    return _bounded(value, LONGEST_ANSWER)


def _texts(row: Mapping[str, Any], key: str, *, most: int = LONGEST_ANSWER) -> tuple[str, ...]:
    value = row.get(key)
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(text, str) and text.strip() for text in listed):
        raise ValueError(f"{key} must be a text or a list of texts")
    return tuple(_bounded(text, most) for text in listed)


def _bounded(text: str, most: int = LONGEST_TEXT) -> str:
    if len(text) > most:
        raise ValueError(f"a text of {len(text):,} characters; at most {most:,} are read here")
    return valid_text(text)


def _index(value: Any, choices: Sequence[str]) -> int | None:
    if value is not None and not is_whole_number(value, 0, len(choices) - 1):
        raise ValueError(f"correct_choice={value!r:.40} must be an index into the {len(choices)} choices, from 0")
    return value
