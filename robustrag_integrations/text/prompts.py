"""The prompts of the defences (paper, sections III-B, III-C and appendix "Prompt Template").

A template is cut into literal pieces and named fields once, when it is made. Rendering joins pieces and values: nothing
in a passage, a query or a keyword is ever interpreted, whatever braces, percent signs or markup it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

Task = Literal["short_answer", "multiple_choice", "long_form", "list"]
TASKS: tuple[Task, ...] = get_args(Task)
OPEN_TASKS: tuple[Task, ...] = ("short_answer", "long_form", "list")  # without options to choose from
Options = Literal["words", "letters"]

ABSTENTION = "I don't know"
NO_INFORMATION = "No information found"
MOST_EXEMPLARS = 4  # worked examples that there are for every task

_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}|[{}]")


@dataclass(frozen=True)
class Exemplar:
    """One worked example, shown before the real question: values of the template's fields, and the right answer."""

    fields: Mapping[str, str]
    answer: str


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt.

    Attributes:
        text: the text that the model is asked.
        context: the place in `text` (start, end, in characters) of the passages: the one part that a passage controls,
            and the only part that may be cut to fit; None when there is none. What is before it is every source's.
        fixed: the number of characters at its start that come from the template alone, the same for every question.
        blank: True if its passages hold nothing to read: models that are asked prompt by prompt leave it out.
    """

    text: str
    context: tuple[int, int] | None = None
    fixed: int = 0
    blank: bool = field(default=False, compare=False)

    def without_context(self) -> Prompt:
        """Return the prompt of an empty context: what all sources have around their passages."""
        if self.context is None:
            return self
        start, end = self.context
        replaced = getattr(self.text, "replaced", None)  # of a text that consists of messages
        text = replaced(start, end, "") if replaced else self.text[:start] + self.text[end:]
        return Prompt(text, (start, start), self.fixed)


@dataclass(frozen=True)
class PromptTemplate:
    """An instruction, which is literal, optional worked examples, and a body with exactly these `fields` in braces.

    Write `{{` and `}}` for literal braces; a ValueError says what is wrong with a body.
    """

    instruction: str
    body: str
    fields: tuple[str, ...]
    exemplars: tuple[Exemplar, ...] = ()
    _lead: str = field(init=False, repr=False, compare=False)  # all before the first field, the same in every prompt
    _rest: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)  # field, text after it

    def __post_init__(self) -> None:
        first, *others = _split(self.body)
        names = [name for _, name in (first, *others) if name is not None]
        found = set(names)
        if missing := [name for name in self.fields if name not in found]:
            raise ValueError(f"the prompt {self.body!r} lacks {_braced(missing)}; write each where its text should go")
        if self.body.count("{context}") > 1:
            raise ValueError(f"the prompt {self.body!r} names {{context}} twice; passages stand in one place only")
        if unknown := sorted(found - set(self.fields)):
            raise ValueError(
                f"the prompt {self.body!r} has unknown placeholders {_braced(unknown)}; known here: "
                f"{_braced(self.fields)}. Double the braces to write them literally: {{{{ }}}}"
            )
        rest = tuple(zip(names, [literal for literal, _ in others], strict=True))
        object.__setattr__(self, "_rest", rest)
        shown = [
            first[0] + "".join(e.fields[name] + literal for name, literal in rest) + f" {e.answer}\n\n"
            for e in self.exemplars
        ]
        object.__setattr__(self, "_lead", "".join((self.instruction, *shown, first[0])))

    def render(self, **values: str) -> Prompt:
        """Insert the values, one per field, each literally."""
        text, span = self._lead, None
        for name, literal in self._rest:
            value = values[name]
            if name == "context":
                span = (len(text), len(text) + len(value))
            text += value + literal
        return Prompt(text, span, len(self._lead))

    def with_exemplars(self, exemplars: Sequence[Exemplar]) -> PromptTemplate:
        """Return the same template with these worked examples."""
        return replace(self, exemplars=tuple(exemplars))


def _split(body: str) -> Iterable[tuple[str, str | None]]:
    literal, at = "", 0
    for match in _FIELD.finditer(body):
        literal += body[at : match.start()]
        at = match.end()
        token = match.group()
        if token in ("{{", "}}"):
            literal += token[0]
        elif match.group(1):
            yield literal, match.group(1)
            literal = ""
        else:
            raise ValueError(f"unbalanced {token!r} in the prompt {body!r}; double it to write it literally")
    yield literal + body[at:], None


def _braced(names: Iterable[str]) -> str:
    return ", ".join("{" + name + "}" for name in names)


@dataclass(frozen=True)
class PromptSet:
    """All prompts of one task.

    Attributes:
        isolated: asked once per source; fields `context` and `query` (and `choices` for multiple choice).
        no_retrieval: the same question with no passage; fields `query` (and `choices`).
        keyword: the second prompt of keyword aggregation; fields `keywords` and `query`. None: `agreed_prompt` of the
            isolated prompt.
        phrases: long form only: asks one source for a list of short phrases; fields `context` and `query`.
        trusted: asked once about all trusted passages together, for an answer of any form, or the fixed phrase "I don't
            know"; fields as of `isolated`. None: there is none, and trusted passages are refused.
        object: puts the agreed answer, which stands in place of the passages, into an object; fields `agreed` and
            `query`. None: the project's own.
        options: the form in which multiple choice is asked for: an option's words, or, as in the paper, its letter.
    """

    isolated: PromptTemplate
    no_retrieval: PromptTemplate
    keyword: PromptTemplate | None = None
    phrases: PromptTemplate | None = None
    object: PromptTemplate | None = None
    trusted: PromptTemplate | None = None
    options: Options = "words"


_ELSE = f'If the text does not contain the answer, reply "{ABSTENTION}".'
REQUESTS: dict[Task, str] = {
    "short_answer": f"Reply with the answer alone, in a few words. {_ELSE}",
    "list": f"Reply with the items of the answer alone, one per line. {_ELSE}",
    "long_form": _ELSE,
}
"""What is added to a prompt of the user's that is asked about one source, where whole answers or items are counted."""

SILENCE_REQUEST = f'If the context does not hold the answer, reply "{ABSTENTION}" and nothing else.'
"""What is put before a prompt of the user's about trusted passages: silence is the phrase, and nothing else is."""

_JSON = re.compile(r'\{\s*"[^"\n]{1,60}"\s*:')


def shows_json(prompt: str) -> bool:
    """True if a prompt holds an object, as one that asks for JSON does."""
    return _JSON.search(prompt) is not None


JSON_CAVEAT = (
    "the prompt asks every source for JSON, in which few say the same alike: ask for the answer in it, and pass {} for "
    "an object of the agreed one"
)
"""The weakness of such a prompt; in braces the argument."""

AGREED_CONTEXT = "Several sources were asked, and they agree on this answer: {agreed}"
"""What stands in place of the passages where the agreed answer is put into an object."""

OBJECT_PROMPT = PromptTemplate("", AGREED_CONTEXT + "\n\nQuestion: {query}\nAnswer:", ("agreed", "query"))
"""Asks for an object of an agreed answer, where no prompt of the user's does."""

_AGREED = {
    "short_answer": "Several sources were asked. These are the keywords on which their answers agree.\n"
    "Keywords: {keywords}",
    "long_form": "Several sources agree on these phrases.\nPhrases: {keywords}",
}


def agreed_context(task: Task) -> str:
    """Return the text that replaces the passages in a final prompt: a template's body with the field `keywords`."""
    if task not in _AGREED:
        raise ValueError(f"task={task!r} has no final prompt; use one of {', '.join(map(repr, _AGREED))}")
    return _AGREED[task]


def agreed_prompt(isolated: PromptTemplate, task: Task) -> PromptTemplate:
    """Return an isolated prompt's final prompt: the same words, with the agreed keywords in place of the passages.

    It holds the query and the keywords, and nothing else that a passage can reach. Worked examples show passages, so
    they are left out.
    """
    if "context" not in isolated.fields:
        raise ValueError(f"the prompt {isolated.body!r} has no {{context}} for the keywords to stand in")
    pieces = ((literal.replace("{", "{{").replace("}", "}}"), name) for literal, name in _split(isolated.body))
    shown = {None: "", "context": agreed_context(task)}
    body = "".join(literal + shown.get(name, f"{{{name}}}") for literal, name in pieces)
    fields = tuple("keywords" if name == "context" else name for name in isolated.fields)
    return PromptTemplate(isolated.instruction, body, fields)


def _template(instruction: str, body: str) -> PromptTemplate:
    return PromptTemplate(instruction, body, tuple(name for _, name in _split(body) if name is not None))


def _sets() -> dict[str, PromptSet]:
    found: dict[str, dict[str, Any]] = {}
    for part in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n== ")[1:]:
        heading, _, prompt = part.partition("\n")
        task, name = heading.split()
        instruction, _, body = prompt.partition("\n\n")
        found.setdefault(task, {})[name] = _template(f"{instruction}\n\n", body.rstrip("\n"))
    return {task: PromptSet(**{"trusted": prompts["isolated"], **prompts}) for task, prompts in found.items()}


_SETS = _sets()
_LETTERED = replace(_SETS.pop("lettered"), options="letters")


def _query_first(template: PromptTemplate) -> PromptTemplate:
    about, rest = template.body.split("\n\n", 1)
    asked, last = rest.rsplit("\n", 1)
    return replace(template, body=f"{asked}\n\n{about}\n\n{last}")


def check_exemplars(exemplars: object) -> int:
    """Return the number of worked examples: False is none, True two."""
    if not isinstance(exemplars, int) or not 0 <= exemplars <= MOST_EXEMPLARS:
        raise ValueError(f"exemplars={exemplars!r} must be true, false or a number from 0 to {MOST_EXEMPLARS}")
    return 2 if exemplars is True else int(exemplars)


def prompts_for(
    task: Task, *, exemplars: bool | int = False, query_first: bool = False, options: Options = "words"
) -> PromptSet:
    """Return the prompts of a task.

    Args:
        task: the kind of answer.
        exemplars: show worked examples in the isolated prompt: so many, at most four, of which every second abstains;
            True for two. Base models without instruction tuning need them, chat models do not.
        query_first: put the question before the passages and keywords, so that local models read it once for all
            sources; most models were trained on the other order.
        options: multiple choice asks for an option's `"words"`, or for its letter as the paper does (`"letters"`).
    """
    count = check_exemplars(exemplars)
    if task not in _SETS:
        raise ValueError(f"task={task!r} is unknown; use one of {', '.join(map(repr, TASKS))}")
    lettered = _check_options(options) == "letters" and task == "multiple_choice"
    chosen = _LETTERED if lettered else _SETS[task]
    if query_first:
        names = ("isolated", "keyword", "phrases", "trusted")
        moved: dict[str, Any] = {name: _query_first(t) for name in names if (t := getattr(chosen, name))}
        chosen = replace(chosen, **moved)
    if not count:
        return chosen
    shown = (_LETTERED_EXEMPLARS if lettered else _EXEMPLARS[task])[:count]
    phrases = chosen.phrases.with_exemplars(_EXEMPLARS["phrases"][:count]) if chosen.phrases else None
    return replace(chosen, isolated=chosen.isolated.with_exemplars(shown), phrases=phrases)


def _check_options(options: object) -> Options:
    if options not in get_args(Options):
        raise ValueError(f"options={options!r} must be {' or '.join(map(repr, get_args(Options)))}")
    return options  # type: ignore[return-value]


def chosen_prompts(given: PromptSet | None, task: Task, options: Options | None = None) -> PromptSet:
    """Return the prompts that a user gave, else the task's; `options` as the prompts say, if None."""
    if given is None:
        return prompts_for(task, options=options or "words")
    if not isinstance(given, PromptSet):
        raise TypeError(f"prompts must be a PromptSet, got {type(given).__name__}")
    return given if options is None else replace(given, options=_check_options(options))


def format_choices(choices: Sequence[str], options: Options = "letters") -> str:
    """Return the options of a multiple-choice question, one line each, after a letter or a dash."""
    marks = ("-" if options == "words" else f"{option_label(i)}." for i in range(len(choices)))
    return "\n".join(f"{mark} {choice}" for mark, choice in zip(marks, choices, strict=True))


def option_label(index: int) -> str:
    """Return the letter of an option: A to Z, and 0 for the one after Z ("no information" after 26 options)."""
    return chr(65 + index) if index < 26 else "0"


def _exemplars(data: Mapping[str, Any], task: str, options: Options = "words") -> tuple[Exemplar, ...]:
    """Return two questions with their answers, each asked of the text that answers it and of one that does not."""
    travel, cooking, music, weather = data["texts"]
    found = []
    for (query, right, *choices), own, other in zip(data[task], (travel, music), (cooking, weather), strict=True):
        choices += [NO_INFORMATION] if choices else []
        for text, answer in ((own, right), (other, NO_INFORMATION if choices else ABSTENTION)):
            shown = {"choices": format_choices(choices, options)} if choices else {}
            said = option_label(choices.index(answer)) if options == "letters" else answer
            found.append(Exemplar({"context": text, "query": query, **shown}, said))
    return tuple(found)


_EXEMPLAR_DATA = json.loads(Path(__file__).with_name("exemplars.json").read_text(encoding="utf-8"))
_EXEMPLARS = {task: _exemplars(_EXEMPLAR_DATA, task) for task in (*TASKS, "phrases")}
_LETTERED_EXEMPLARS = _exemplars(_EXEMPLAR_DATA, "multiple_choice", "letters")
