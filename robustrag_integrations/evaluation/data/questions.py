"""Questions made from the rows of a data file: the fields that a row must hold, and what each task makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.grouping.passages import Passage

EvalTask = Literal["qa", "mc", "long"]
TASKS: tuple[EvalTask, ...] = get_args(EvalTask)

LONGEST_TEXT = 1_000_000  # characters of a passage
LONGEST_ANSWER = 20_000  # characters of a question, an answer or an option
MOST_SWAPS = 100  # in one text that is made to lie about another option
MOST_PASSAGES = 10_000  # of one question
FALSE_BIRTHDAY = "January 11"  # what the paper's poisoned biographies claim, each with another year


@dataclass(frozen=True)
class EvalQuestion:
    """A question with its clean retrieval, its right answers, and what the attacker wants to be answered.

    Attributes:
        id: a label, unique in its data set.
        question: its words.
        answers: the right answers, each of which is right; for the task `mc` the right option, for `long` a reference.
            An abstention ("I don't know") for a short question that has no answer.
        incorrect: the answer that the attacker wants; None when it is not known. For `mc` it is an option.
        passages: the clean retrieval, best first.
        choices: the options; empty when there are none.
        correct_choice: the index of the right option, where it is known.
        incorrect_choice: the index of the attacker's option, where `incorrect` is one.
        poisoned: false texts about this question, ready to be planted; may be empty.
        poison_target: the claim of `poisoned`, where that is not `incorrect`.
        wrong: all answers that are known to be wrong, `incorrect` among them.
        several: the right answers differ, and all of them are wanted; else each is a way to write the same one.
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
    wrong: tuple[str, ...] = ()
    several: bool = False


def question_of(row: Any, number: int) -> tuple[EvalQuestion, bool]:
    """A row as a question, and whether it asks for a long answer.

    Three layouts are read, recognised by their keys. The paper's: `question`, `correct answer`, `context` (a list of
    `title`, `text`, `link`), and optionally `expanded answer`, `incorrect answer`, `incorrect_context`, `choices`,
    `choices answer`, `long_gen`. RAMDocs': `question`, `documents`, `gold_answers`, `wrong_answers`. The project's:
    `question`, `answer`, `passages` (a list of texts, or of objects with `text` and `source`), and optionally
    `choices`, `correct_choice`, `incorrect`, `wrong`, `poisoned`, `poison_target`, `long`, `several`. All may have an
    `id`.

    Args:
        row: a JSON value.
        number: its place in the file; its `id` when it has none.

    Raises:
        ValueError: it is not a question; the message says what is wrong.
    """
    if not isinstance(row, dict):
        raise ValueError('expected an object such as {"question": ..., "answer": ..., "passages": [...]}')
    layout = next(layout for layout in LAYOUTS if not layout.keys or layout.keys & row.keys())
    question, long = layout.read(row)
    _check_agreement(question)
    return replace(_with_choice_numbers(question), id=_identity(row.get("id"), number)), long


def for_task(question: EvalQuestion, task: EvalTask) -> EvalQuestion:
    """The question as a task asks it; only multiple choice changes anything.

    There the right answer is the right option, and the attacker wants an option as well: `incorrect` if it is one, else
    the wrong option that follows the right one. Texts that lie about `incorrect` are made to lie about that option.

    Raises:
        ValueError: it has no options, options that cannot be told apart, or no known right one.
    """
    if task != "mc":
        return question
    from robustrag_integrations.defenses.voting.options import check_choices

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


def _check_agreement(question: EvalQuestion) -> None:
    """Raise where a row contradicts itself: whatever is measured with it would be wrong.

    Raises:
        ValueError: the right option is no right answer, or what the attacker wants is one.
    """
    right = _plain(question.answers)
    if question.correct_choice is not None:
        option = question.choices[question.correct_choice]
        if not _plain([option]) & right:
            raise ValueError(
                f"the answer {question.answers[0]!r:.60} is not the right option, {option!r:.60} "
                f"(number {question.correct_choice}, from 0)"
            )
    if question.incorrect is not None and _plain([question.incorrect]) & right:
        raise ValueError(f"the incorrect answer {question.incorrect!r:.60} is a right one as well")


def _plain(texts: Iterable[str]) -> set[str]:
    from robustrag_integrations.metrics import normalised

    return {normalised(text) for text in texts}


def doubts(questions: Iterable[EvalQuestion]) -> dict[str, list[str]]:
    """Return the reasons, in words, to doubt questions that are not wrong, each with the questions' ids."""
    from robustrag_integrations.metrics import holds_answer

    found: dict[str, list[str]] = {}
    for question in questions:
        wrong = question.incorrect
        if not question.passages:
            found.setdefault("without a single passage: nothing is retrieved for them", []).append(question.id)
        if wrong is not None and any(holds_answer(right, [wrong]) for right in question.answers):
            odd = "whose right answer holds the incorrect one: right answers count as hijacked too"
            found.setdefault(odd, []).append(question.id)
        elif wrong is not None and holds_answer(wrong, question.answers):
            odd = "whose incorrect answer holds a right one: hijacked answers count as right too"
            found.setdefault(odd, []).append(question.id)
    return found


def _own_row(row: Mapping[str, Any]) -> tuple[EvalQuestion, bool]:
    answers = _texts(_needed(row, "answer"), "answer must be a text or a list of texts", least=1)
    choices = _choices(row)
    passages = _listed(_needed(row, "passages"), "passages must be a list of texts or of objects with a text")
    question = EvalQuestion(
        "",
        _text(_needed(row, "question"), "the question must be text"),
        answers,
        _optional(row, "incorrect"),
        tuple(_own_passage(p) for p in passages),
        choices,
        _index(row.get("correct_choice"), choices, "correct_choice"),
        poisoned=_texts(row.get("poisoned"), "poisoned must be a text or a list of texts", most=LONGEST_TEXT),
        poison_target=_optional(row, "poison_target"),
        wrong=_texts(row.get("wrong"), "wrong must be a text or a list of texts"),
        several=row.get("several") is True,
    )
    return question, row.get("long") is True


def _paper_row(row: Mapping[str, Any]) -> tuple[EvalQuestion, bool]:
    """A row of the paper's as one of the project's."""
    right = _texts(_needed(row, "correct answer"), "correct answer must be a text or a list of texts", least=1)
    more = _texts(row.get("expanded answer"), "expanded answer must be a list of texts")
    complaint = "incorrect_context and adap_adv_texts must be a text or a list of texts"
    lies = _texts(row.get("incorrect_context", row.get("adap_adv_texts")), complaint, most=LONGEST_TEXT)
    context = _listed(_needed(row, "context"), "context must be a list of objects with a title and a text")
    long = bool(row.get("long_gen"))
    question, _ = _own_row(
        {
            "question": _needed(row, "question"),
            "answer": list(dict.fromkeys(right + more)),
            "incorrect": row.get("incorrect answer"),
            "passages": [_search_result(item) for item in context],
            "choices": row.get("choices"),
            "correct_choice": _index(row.get("choices answer"), _choices(row), "choices answer"),
            "poisoned": list(lies),
            "poison_target": FALSE_BIRTHDAY if long and lies and all(FALSE_BIRTHDAY in t for t in lies) else None,
        }
    )
    return question, long


def _ramdocs_row(row: Mapping[str, Any]) -> tuple[EvalQuestion, bool]:
    """RAMDocs' row as one of the project's; misinformation and noise stay among the passages of the clean run."""
    documents = row.get("documents")
    if not isinstance(documents, list) or not all(isinstance(d, dict) for d in documents):
        raise ValueError("documents must be a list of objects with a text")
    right, wrong = (
        [text for text in listed if str(text).strip()] if isinstance(listed, list) else listed
        for listed in (row["gold_answers"], row.get("wrong_answers") or [])
    )
    return _own_row(
        {
            "question": row.get("question"),
            "answer": right,
            "incorrect": wrong[0] if isinstance(wrong, list) and wrong else None,
            "wrong": wrong,
            "several": True,
            "passages": [{"text": d.get("text"), "source": d.get("source")} for d in documents],
        }
    )


@dataclass(frozen=True)
class Layout:
    """One way of writing a question as a row.

    Attributes:
        keys: a row with any of these has this layout; empty for the layout of all other rows.
        read: the question of such a row, and whether it asks for a long answer; raises ValueError saying what is wrong.
    """

    keys: frozenset[str]
    read: Callable[[Mapping[str, Any]], tuple[EvalQuestion, bool]]


LAYOUTS: tuple[Layout, ...] = (
    Layout(frozenset({"gold_answers"}), _ramdocs_row),
    Layout(frozenset({"correct answer", "context"}), _paper_row),
    Layout(frozenset(), _own_row),
)
"""The layouts that are read; the first that fits a row is taken."""


def _own_passage(item: Any) -> Passage:
    if isinstance(item, str):
        return Passage(_bounded(item))
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise ValueError("a passage must be a text or an object with a text")
    source, name = item.get("source"), item.get("id")
    return Passage(
        _bounded(item["text"]),
        id=valid_text(name[:100]) if isinstance(name, str) and name else None,
        source=None if source is None else _bounded(str(source)),
    )


def _search_result(item: Any) -> dict[str, str | None]:
    """Title and text of a search result; some results have a title only."""
    if not isinstance(item, dict):
        raise ValueError("an entry of context must be an object with a title and a text")
    parts = [item.get(key) or "" for key in ("title", "text", "link")]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("title, text and link in context must be texts")
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
    from robustrag_integrations.metrics import normalised

    known = {normalised(text) for text in wanted}
    return next((i for i, choice in enumerate(choices) if normalised(choice) in known), None)


def _identity(given: Any, number: int) -> str:
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)[:100]
    if isinstance(given, str) and given.strip():
        return valid_text(given[:100])
    return f"{number:04d}"


def _needed(row: Mapping[str, Any], key: str) -> Any:
    if key not in row:
        raise ValueError(f"there is no {key!r}")
    return row[key]


def _optional(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return _text(value, f"{key} must be a text")


def _text(value: Any, complaint: str, most: int = LONGEST_ANSWER) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(complaint)
    return _bounded(value, most)


def _texts(value: Any, complaint: str, *, least: int = 0, most: int = LONGEST_ANSWER) -> tuple[str, ...]:
    """One text or a list of them; None is an empty list."""
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or len(listed) < least:
        raise ValueError(complaint)
    return tuple(_text(text, complaint, most) for text in listed)


def _choices(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The options; blank ones at the end, which quizzes of fewer options are filled up with, are left out."""
    listed = row.get("choices")
    while isinstance(listed, list) and listed and listed[-1] == "":
        listed = listed[:-1]
    return _texts(listed, "choices must be a list of texts")


def _listed(value: Any, complaint: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(complaint)
    if len(value) > MOST_PASSAGES:
        raise ValueError(f"{len(value):,} passages; at most {MOST_PASSAGES:,} are read")
    return value


def _bounded(text: str, most: int = LONGEST_TEXT) -> str:
    if len(text) > most:
        raise ValueError(f"a text of {len(text):,} characters; at most {most:,} are read here")
    return valid_text(text)


def _index(value: Any, choices: Sequence[str], name: str) -> int | None:
    """An index into the choices, which the paper's files write as text."""
    if value is None or value == "":
        return None
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 4
    index = int(value) if digits else value
    if not is_whole_number(index, 0, len(choices) - 1):
        raise ValueError(f"{name}={value!r:.40} must be an index into the {len(choices)} choices, from 0")
    return index
