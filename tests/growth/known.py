"""Types whose values annotations do not tell how to make, and what is left out of the check, each with the reason."""

from __future__ import annotations

import collections.abc
import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal
from uuid import UUID

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableConfig
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.schema import NodeWithScore, TextNode

from langchain_robustrag import documents
from llamaindex_robustrag.grouping import checked_nodes
from robustrag_integrations import CallableModel, Passage
from robustrag_integrations._util.json_values import parsed
from robustrag_integrations.answers.answer import as_answer
from robustrag_integrations.audit.audit import Audit
from robustrag_integrations.audit.check import Canaries
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.corpus import html_text
from robustrag_integrations.corpus.limits import FileLimits
from robustrag_integrations.corpus.retrieval import BM25Index
from robustrag_integrations.counting import Rule
from robustrag_integrations.defenses.consensus.defense import ConsensusAggregation
from robustrag_integrations.defenses.keyword.defense import KeywordAggregation
from robustrag_integrations.defenses.vanilla.defense import VanillaRAG
from robustrag_integrations.defenses.voting.defense import MajorityVoting
from robustrag_integrations.evaluation.data.questions import EvalQuestion, question_of
from robustrag_integrations.grouping.passages import isolate
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.server.connection import response_of
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.replies.streams import Shown
from robustrag_integrations.serve.chat import chat_request
from robustrag_integrations.serve.endpoint import Limits
from robustrag_integrations.text.keywords import WordExtractor
from robustrag_integrations.text.prompts import Prompt, prompts_for

WITHOUT_TEXT: dict[Any, Any] = {
    int: 1, float: 0.5, bool: False, type(None): None, Fraction: Fraction(1, 2), UUID: UUID(int=0), RunnableConfig: {},
    MessageRole: MessageRole.USER,
}  # fmt: skip

_NUMBERS = "the numbers of a model, whose context bounds what it reads"
_RUNS = "runs what it is given"
_USER = "what the user types or starts"
_MODEL = "asks a model of a framework: what is read of its replies is checked by itself"
TYPES_LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        ("CausalLM", "Tensor", "dtype", "ndarray", "NDArray", "SinglePrompt", "PromptReader", "TokenCodec"), _NUMBERS
    ),
    **dict.fromkeys(
        ("DecodingModel", "DecodingSession", "RemoteDecodingModel", "Distributions", "Embedding"), _NUMBERS
    ),
    **dict.fromkeys(("Generator", "AsyncGenerator", "Awaitable", "Coroutine", "ContextVar", "Semaphore"), _RUNS),
    **dict.fromkeys(("AsyncAnswerStream", "AnswerStream"), _RUNS),
    **dict.fromkeys(("ArgumentParser", "Namespace", "socket", "Route", "Transport", "Config"), _USER),
    **dict.fromkeys(("LLM", "Runnable", "BaseRetriever", "BaseQueryEngine", "BaseChatModel", "PromptHelper"), _MODEL),
    **dict.fromkeys(("BaseCallbackHandler", "BaseCallbackManager"), _MODEL),
    "Path": "a file, which is read in the process with limits, or is the user's own",
    "CallCache": "a cache, which is written and read as rows (CallCache)",
}
NAMES: dict[str, Any] = {"Task": Literal["short_answer"], "Sequence": collections.abc.Sequence, "Passage": Passage}
"""What names stand for that modules import for type checkers alone."""

QUESTION = "Who runs the mill?"


def passages_of(matter: Any) -> list[Passage]:
    """Passages made of the text, each a source of its own."""
    made: list[Passage] = matter.each(lambda one: Passage(one.text, origin=one.text))
    return made


def _sources(matter: Any) -> Any:
    return isolate(passages_of(matter))


def _answer(matter: Any) -> Any:
    return ConsensusAggregation(CallableModel(lambda prompt: matter.text)).answer(QUESTION, passages_of(matter))


def _attacked(matter: Any) -> Any:
    return EvalQuestion("1", matter.text, (matter.text,), matter.text)


DEFENSES: tuple[Any, ...] = (ConsensusAggregation, KeywordAggregation, MajorityVoting, VanillaRAG)
PROMPTS = prompts_for("short_answer")

MADE: dict[str, Callable[[Any], Any]] = {
    "TextModel": lambda matter: CallableModel(lambda prompt: matter.text),
    "BaseException": lambda matter: ValueError(matter.text),
    "Exception": lambda matter: ValueError(matter.text),
    "Hashable": lambda matter: matter.text,
    "Source": lambda matter: _sources(matter)[0],
    "Canaries": lambda matter: Canaries(matter.text),
    "Audit": lambda matter: Audit("log", "fix"),
    "Response": lambda matter: Response(matter.text),
    "langchain_core.Document": lambda matter: LangChainDocument(
        matter.text, metadata={"source": matter.text, "title": matter.text}
    ),
    "BaseMessage": lambda matter: AIMessage(matter.text),
    "HumanMessage": lambda matter: HumanMessage(matter.text),
    "ToolMessage": lambda matter: ToolMessage(matter.text, tool_call_id="0"),
    "PromptValue": lambda matter: StringPromptValue(text=matter.text),
    "BasePromptTemplate": lambda matter: PromptTemplate.from_template("{context} {input}"),
    "ChatMessage": lambda matter: ChatMessage(content=matter.text),
    "ChatResponse": lambda matter: ChatResponse(message=ChatMessage(content=matter.text)),
    "BaseNode": lambda matter: TextNode(text=matter.text, metadata={"source": matter.text}),
    "PromptTemplate": lambda matter: PROMPTS.isolated,
    "PromptSet": lambda matter: PROMPTS,
    "Prompt": lambda matter: Prompt(matter.text, (0, 1)),
    "PlanInput": lambda matter: PlanInput(QUESTION, _sources(matter)),
    "EvalQuestion": _attacked,
    "Question": lambda matter: Question(QUESTION, tuple(passages_of(matter)), ("Anna Lind",), "contains", (1,)),
    **{one.__name__: (lambda matter, one=one: one(CallableModel(lambda prompt: matter.text))) for one in DEFENSES},
    **{one.settings_type.__name__: (lambda matter, one=one: one.settings_type()) for one in DEFENSES},
    "NodeWithScore": lambda matter: NodeWithScore(node=TextNode(text=matter.text, metadata={"source": matter.text})),
}

GIVEN: dict[str, Any] = {
    "by": "origin", "group_by": "origin", "task": "short_answer", "limits": FileLimits(60, 1 << 30, 100, 1 << 30),
    "rule": Rule(), "on": "log", "fix": "", "metric": "contains", "secrets": ("sk-1234567890",),
}  # fmt: skip
"""Parameters of these names that users set, not authors."""


def _request(matter: Any) -> Callable[[], Any]:
    """A chat completion whose messages are hostile."""
    messages = [{"role": "user", "content": one.text} for one in matter.each(lambda one: one)]
    return lambda: chat_request({"model": "m", "messages": messages}, Limits(), documents_allowed=False)


def _shown(matter: Any) -> Callable[[], Any]:
    """A stream in pieces."""
    shown = Shown()
    pieces = [one.text for one in matter.each(lambda one: one)]
    return lambda: [shown.take(piece) for piece in pieces] and shown.rest()


def _looked(matter: Any) -> Callable[[], Any]:
    """An audit that knows the texts, and sees them in a prompt."""
    audit = Audit("log", "fix")
    texts = [one.text for one in matter.each(lambda one: one)]
    audit.learn(passages_of(matter))
    return lambda: audit.look(texts, "path", "component")


def _joined(matter: Any) -> str:
    return "\n".join(matter.each(lambda one: one.text))


def _langchain(matter: Any) -> list[LangChainDocument]:
    made: list[LangChainDocument] = matter.each(lambda one: LangChainDocument(one.text, metadata={"source": one.text}))
    return made


CALLS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "robustrag_integrations._util.json_values.parsed": lambda m: lambda: parsed(json.dumps([m.text])),
    "robustrag_integrations.answers.answer.as_answer": lambda m: partial(as_answer, _answer(m).to_dict()),
    "robustrag_integrations.audit.audit.Audit.look": _looked,
    "robustrag_integrations.corpus.html_text.text_of": lambda m: (
        lambda: html_text.text_of(_joined(m).encode(errors="replace"), GIVEN["limits"])
    ),
    "robustrag_integrations.corpus.retrieval.BM25Index": lambda m: (
        lambda: BM25Index(passages_of(m)).search(_joined(m), 5)
    ),
    "robustrag_integrations.evaluation.data.questions.question_of": lambda m: (
        lambda: question_of({"question": m.text, "answer": m.text, "passages": [m.text]}, 1)
    ),
    "robustrag_integrations.models.server.connection.response_of": lambda m: (
        lambda: response_of({"choices": [{"message": {"content": m.text}}]})
    ),
    "robustrag_integrations.replies.streams.Shown": _shown,
    "robustrag_integrations.serve.chat.chat_request": _request,
    "robustrag_integrations.text.keywords.WordExtractor": lambda m: lambda: WordExtractor()(_joined(m)),
    "robustrag_integrations.text.prompts.PromptTemplate.render": lambda m: (
        lambda: PROMPTS.isolated.render(context=m.text, query=m.text)
    ),
    "langchain_robustrag.documents.grouped": lambda m: lambda: documents.grouped(_langchain(m), VoteRules()),
    "langchain_robustrag.documents.checked_documents": lambda m: lambda: documents.checked_documents(_langchain(m)),
    "llamaindex_robustrag.grouping.checked_nodes": lambda m: (
        lambda: checked_nodes(m.each(MADE["NodeWithScore"]), "nodes")
    ),
}
"""Calls of functions whose arguments annotations do not tell how to make."""

READERS: dict[str, str] = {
    "robustrag_integrations": """
        _util answers audit certification.findings certification.metrics certification.result core corpus
        counting defenses.consensus.lists defenses.keyword.threshold
        defenses.voting.options evaluation.data.questions evaluation.score.scoring grouping
        models.reply models.server.connection plans.asking plans.finish replies serve.chat text
    """,
    "langchain_robustrag": """
        documents language_models messages prompts questions replies retrieved
    """,
    "llamaindex_robustrag": """
        conversation grouping prompts replies reports
    """,
}
"""The rooms and modules that read what authors and models write: every public function of theirs is measured, or is in
`LEFT_OUT`. All others are given settings, numbers, prompts and objects of a framework by these or by users, or are
steps of a method, whose answers are measured whole."""

LEFT_OUT: dict[str, str] = {
    "robustrag_integrations": """
        _util.checks.unchecked _util.display.table _util.json_values.restored _util.plugins.load_object
        _util.settings.Setting.check _util.settings.settings_in _util.settings.check_settings
        _util.steps.closed_after _util.yaml_files.read_yaml answers.abstained.Abstained
        answers.answer.RobustAnswer.from_dict audit.check.Canaries.check_names
        audit.audit.Runs audit.hosted.tool_names audit.check.Canaries.checked audit.check.replace_methods
        audit.audit.Audit.release
        certification.findings.Question.cases certification.metrics.LLMJudge certification.metrics.metric_of
        certification.metrics.GuardedMetric corpus.documents.needed
        corpus.docx_text.check_package corpus.docx_text.text_of corpus.table_text.xlsx_of
        corpus.extract.reply corpus.pdf_text.text_of corpus.reading.read_documents
        corpus.reading.text_in_process corpus.retrieval.HybridIndex corpus.retrieval.Library
        corpus.retrieval.Library.search corpus.retrieval.Found counting.Rule.verdict
        defenses.consensus.lists.list_plan defenses.consensus.lists.list_certification_plan
        defenses.consensus.lists.possible_items
        defenses.voting.options.check_choices grouping.quotas.Shortage grouping.votes.VoteRules.isolate
        models.server.connection.Connection models.server.connection.parsed models.server.connection.Events
        models.server.connection.choice_of models.server.connection.Said plans.asking.Heard
        plans.asking.ask_sources plans.asking.ask_final plans.finish.finish plans.finish.SpendingBook.note
        plans.finish.SpendingBook.entered serve.chat.ChatRequest serve.chat.ChatResponse.whole
        serve.chat.ChatResponse.chunk text.prompts.PromptTemplate text.prompts.PromptTemplate.with_exemplars
        text.prompts.check_exemplars text.spacy_keywords.SpacyKeywordExtractor
    """,
    "langchain_robustrag": """
        language_models.as_runnable
        language_models.decoding_model prompts.FilledTemplate prompts.FilledTemplate.render prompts.check_prompt
        prompts.check_inputs prompts.located questions.find_question questions.standing_alone replies.Seen
        replies.Streamed replies.Streamed.pieces_of replies.Streamed.end
    """,
    "llamaindex_robustrag": """
        prompts.MessageText prompts.UserTemplate
        prompts.UserTemplate.literal prompts.UserTemplate.asking prompts.UserTemplate.render
        reports.ReportedNode reports.RobustAnswerEvent reports.structured
        reports.robust_answer
    """,
}
"""What these modules have besides: classes of a framework and of connections, and what takes those; what calls what it
is given; settings and files of the user's; files of others, which are read in a process with limits; steps of a
method; and certificates, which have n cases of n sources."""
