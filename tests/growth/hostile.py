"""Hostile texts, and what reads them: doors by name, and each function whose annotations say what it takes."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.prompts import PromptTemplate
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.schema import NodeWithScore, TextNode

from robustrag_integrations import CallableModel, Passage
from robustrag_integrations._util.json_values import parsed
from robustrag_integrations.answers.answer import RobustAnswer, as_answer
from robustrag_integrations.audit.audit import Audit
from robustrag_integrations.audit.check import Canaries
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.corpus.limits import FileLimits
from robustrag_integrations.corpus.retrieval import BM25Index
from robustrag_integrations.counting import Rule
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.consensus.defense import ConsensusAggregation
from robustrag_integrations.defenses.consensus.lists import CountedList
from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
from robustrag_integrations.defenses.keyword.threshold import Tally, Threshold
from robustrag_integrations.defenses.vanilla.defense import VanillaRAG
from robustrag_integrations.defenses.voting.defense import MajorityVoting
from robustrag_integrations.evaluation.data.questions import EvalQuestion, question_of
from robustrag_integrations.grouping.origins import Origin
from robustrag_integrations.grouping.passages import isolate
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import Blocks
from robustrag_integrations.models.server.connection import response_of
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.replies.keys import items_of
from robustrag_integrations.replies.streams import Shown
from robustrag_integrations.serve.chat import chat_request
from robustrag_integrations.serve.endpoint import Limits
from robustrag_integrations.text.keywords import WordExtractor
from robustrag_integrations.text.prompts import Prompt, prompts_for

QUESTION = "Who runs the mill?"
DEFENSES: tuple[type[Defense], ...] = (ConsensusAggregation, KeywordAggregation, MajorityVoting, VanillaRAG)
_NAMES = ("text", "source", "url", "title", "id", "content")  # of entries that somebody reads


@dataclass(frozen=True)
class Matter:
    """A hostile text of about this many characters; with `many`, as many short texts as come to that.

    It begins with the number, so that no call finds kept what another one has found of its text.
    """

    unit: str
    size: int
    many: bool = False
    number: int = 0

    @property
    def text(self) -> str:
        """All of it in one text."""
        if self.many:
            return "\n".join(self.texts)
        return (f"{self.number} " * (self.number > 0) + self.unit * (self.size // len(self.unit) + 1))[: self.size]

    @cached_property
    def texts(self) -> list[str]:
        """One long text, or many short ones that differ."""
        if not self.many:
            return [self.text]
        first = self.number * 100_000
        return [f"{self.unit} {first + n}" for n in range(max(1, self.size // (len(self.unit) + 6)))]


SMALL = Matter("Anna Lind runs mill 12. ", 24)


def passages_of(matter: Matter) -> list[Passage]:
    return [Passage(text, origin=text) for text in matter.texts]


def _answer(matter: Matter) -> RobustAnswer:
    return ConsensusAggregation(CallableModel(lambda prompt: matter.texts[0])).answer(QUESTION, passages_of(matter))


def _mapping(matter: Matter) -> dict[str, Any]:
    named = {} if matter.many else dict.fromkeys(_NAMES, matter.text)
    return {**named, **{text: text for text in matter.texts}}


def _value(matter: Matter) -> Any:
    rows = [dict.fromkeys(_NAMES, text) for text in matter.texts]
    return rows if matter.many else rows[0]


def _nodes(matter: Matter) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text, metadata={"source": text})) for text in matter.texts]


def _chat(matter: Matter) -> ChatMessage:
    return ChatMessage(content=matter.text)


# By the annotations of parameters, as they are written.
HOSTILE: dict[str, Callable[[Matter], Any]] = {
    **dict.fromkeys(("str", "str | None"), lambda m: m.text),
    "bytes": lambda m: m.text.encode(errors="replace"),
    **dict.fromkeys(
        ("Sequence[str]", "Collection[str]", "Iterable[str]", "Sequence[str] | None", "str | Sequence[str]"),
        lambda m: m.texts,
    ),
    **dict.fromkeys(("Any", "object"), _value),
    **dict.fromkeys(("Mapping[str, Any]", "Mapping[str, str]", "dict[str, Any]"), _mapping),
    **dict.fromkeys(("BaseException", "Exception"), lambda m: ValueError(m.text)),
    "RobustAnswer": _answer,
    "Passage": lambda m: passages_of(m)[0],
    **dict.fromkeys(("Sequence[Passage]", "Iterable[str | Passage]"), passages_of),
    "Source": lambda m: isolate(passages_of(m))[0],
    "Sequence[Source]": lambda m: isolate(passages_of(m)),
    "Origin": lambda m: Origin(m.text, m.text, m.text),
    "Response": lambda m: Response(m.text),
    "Sequence[Response]": lambda m: [Response(text) for text in m.texts],
    "PlanInput": lambda m: PlanInput(QUESTION, isolate(passages_of(m))),
    "Prompt": lambda m: Prompt(m.text, (0, 1)),
    "EvalQuestion": lambda m: EvalQuestion("1", m.text, (m.text,), m.text),
    "Sequence[Document]": lambda m: [Document(text, metadata={"source": text}) for text in m.texts],
    "PromptValue": lambda m: StringPromptValue(text=m.text),
    "BaseMessage": lambda m: AIMessage(m.text),
    "Sequence[BaseMessage]": lambda m: [AIMessage(text) for text in m.texts],
    "BaseNode": lambda m: _nodes(m)[0].node,
    "Sequence[NodeWithScore]": _nodes,
    "Sequence[ChatMessage]": lambda m: [ChatMessage(content=text) for text in m.texts],
    "ChatResponse | CompletionResponse": lambda m: ChatResponse(message=_chat(m)),
}
PROMPTS = prompts_for("short_answer")
USERS: dict[str, Any] = {
    "int": 1, "float": 0.5, "bool": False, "Task": "short_answer", "GroupBy": "origin", "GroupBy | None": "origin",
    "FileLimits": FileLimits(60, 1 << 30, 100, 1 << 30), "Rule": Rule(), "VoteRules": VoteRules(), "PromptSet": PROMPTS,
    "PromptTemplate": PROMPTS.isolated, "BasePromptTemplate[Any]": PromptTemplate.from_template("{context} {input}"),
    "metric": "contains", "name": "passages", "fix": "",
}  # fmt: skip
"""What users set, by an annotation or by the name of a parameter."""


@dataclass(frozen=True)
class Function:
    """Something that is called with hostile text in one of these arguments at a time."""

    name: str
    arguments: tuple[str, ...]
    call: Callable[[str, Matter], Callable[[], object]]


def _door(name: str, prepare: Callable[[Matter], Callable[[], object]]) -> Function:
    return Function(name, ("text",), lambda argument, matter: prepare(matter))


def _audited(matter: Matter) -> Callable[[], object]:
    audit = Audit("log", "fix")
    audit.learn(passages_of(matter))
    return lambda: audit.look(matter.texts, "path", "component")


def _streamed(matter: Matter) -> Callable[[], object]:
    shown = Shown()
    return lambda: [*map(shown.take, matter.texts), shown.rest()]


def _requested(matter: Matter) -> Callable[[], object]:
    messages = [{"role": "user", "content": text} for text in matter.texts]
    return lambda: chat_request({"model": "m", "messages": messages}, Limits(), documents_allowed=False)


def _kept(matter: Matter) -> Callable[[], object]:
    report = _answer(matter).to_dict()
    return lambda: as_answer(report)


def _supported(matter: Matter) -> Callable[[], object]:
    return partial(_answer(matter).supporting, passages_of(matter))


def _certified(matter: Matter) -> Any:
    question = Question(QUESTION, tuple(passages_of(matter)[:3]), ("Anna Lind",), "contains", (1,))
    passages = list(question.passages)
    return ConsensusAggregation(CallableModel(lambda prompt: matter.text)).certify(QUESTION, passages, "Anna Lind")


DOORS = [
    _door("parsed", lambda m: lambda: parsed(json.dumps(m.texts))),
    _door("as_answer", _kept),
    _door("Audit", _audited),
    _door("Shown", _streamed),
    _door("chat_request", _requested),
    _door("BM25Index", lambda m: lambda: BM25Index(passages_of(m)).search(m.text, 5)),
    _door("question_of", lambda m: lambda: question_of({"question": m.text, "answer": m.text, "passages": m.texts}, 1)),
    _door("response_of", lambda m: lambda: response_of({"choices": [{"message": {"content": m.text}}]})),
    _door("WordExtractor", lambda m: lambda: WordExtractor()(m.text)),
    _door("render", lambda m: lambda: PROMPTS.isolated.render(context=m.text, query=m.text)),
    _door("Blocks", lambda m: lambda: Blocks().read([{"type": "text", "text": text} for text in m.texts])),
    _door("Canaries", lambda m: lambda: Canaries(m.text).planted_in(m.text)),
    _door("copies", lambda m: lambda: VoteRules(copies="one_vote").with_copies(isolate(passages_of(m)))),
    _door("CountedList", lambda m: lambda: CountedList((items_of(m.text),) * 3, 2).shown),
    _door("supporting", _supported),
    _door("Tally", lambda m: lambda: Tally.of([frozenset(m.texts)] * 3, Threshold.of(0.3, 3)).kept),
]


def _read_again(name: str, make: Callable[[Matter], Any]) -> Iterator[Function]:
    """Yield what is read of an object: its properties, and its methods that take nothing."""
    kind = type(make(SMALL))
    for member in (m for m in dir(kind) if m[:1] != "_" or m == "_repr_html_"):
        thing = inspect.getattr_static(kind, member)
        if isinstance(thing, (property, cached_property)):
            yield _door(f"{name}.{member}", lambda m, member=member: partial(getattr, make(m), member))
        elif inspect.isfunction(thing) and len(_arguments(thing)) == 1:
            yield _door(f"{name}.{member}", lambda m, member=member: getattr(make(m), member))


def _arguments(function: Any) -> dict[str, str]:
    """The annotations of the arguments that must be given, a user's by their names."""
    taken = inspect.signature(function).parameters.values()
    needed = [p for p in taken if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: p.name if p.name in USERS else str(p.annotation) for p in needed}


def read_by(module: ModuleType) -> Iterator[Function]:
    """Yield the public functions of a module whose arguments are known, and of which one may hold text."""
    for name, thing in vars(module).items():
        if name[:1] == "_" or not inspect.isfunction(thing):
            continue
        taken = _arguments(thing)
        here = thing.__module__ == module.__name__ and not inspect.iscoroutinefunction(thing)
        if not here or not set(taken.values()) <= {*HOSTILE, *USERS}:
            continue

        def call(argument: str, matter: Matter, thing: Any = thing, taken: Any = taken) -> Callable[[], object]:
            given = {
                one: USERS[kind] if kind in USERS else HOSTILE[kind](matter if one == argument else SMALL)
                for one, kind in taken.items()
            }
            alone = [p.name for p in inspect.signature(thing).parameters.values() if p.kind is p.POSITIONAL_ONLY]
            return lambda: thing(*map(given.get, alone), **{n: v for n, v in given.items() if n not in alone})

        if hostile := tuple(one for one, kind in taken.items() if kind not in USERS):
            yield Function(f"{module.__name__}.{name}", hostile, call)


_READ = {
    "robustrag_integrations": """
        _util answers audit certification.metrics corpus.html_text corpus.markup
        corpus.plain_text corpus.table_text defenses.voting.options
        evaluation.data.questions evaluation.score.scoring grouping models.reply
        models.server.connection plans.asking plans.finish replies serve.chat text
    """,
    "langchain_robustrag": """
        documents messages prompts questions replies retrieved
    """,
    "llamaindex_robustrag": """
        conversation grouping prompts replies reports
    """,
}
READERS = [f"{package}.{name}" for package, names in _READ.items() for name in names.split()]
"""The rooms and modules that read what authors and models write; files that are no text are read under limits."""
OBJECTS = {"RobustAnswer": _answer, "Certification": _certified} | {
    name: HOSTILE[name] for name in ("Passage", "Source", "Origin")
}


def functions_of(reader: str) -> list[Function]:
    """All functions of a room or module, or all that is read of an object."""
    if reader in OBJECTS:
        return [*_read_again(reader, OBJECTS[reader])]
    if reader == "doors":
        return DOORS
    first = importlib.import_module(reader)
    below = pkgutil.walk_packages(getattr(first, "__path__", []), f"{reader}.")
    return [found for module in (first, *(importlib.import_module(b.name) for b in below)) for found in read_by(module)]
