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
from robustrag_integrations.audit.canaries import Canaries
from robustrag_integrations.audit.prompts import Audit
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.corpus import html_text
from robustrag_integrations.corpus.limits import FileLimits
from robustrag_integrations.corpus.retrieval import BM25Index
from robustrag_integrations.counting.plurality import Rule
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
    "AttackedQuestion": _attacked,
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
    "robustrag_integrations.audit.prompts.Audit.look": _looked,
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

_FRAMEWORK = "classes of a framework: what they read is read by the functions of their modules, which are checked"
_OURS = "settings, names of tasks, models and methods, or a run's own records: what the user writes"
_NUMBERS_OF = "works on numbers, prompts or connections of a model, whose context or bounds limit what it reads"
_PROCESS = "reads a file: in the process with limits, or one that the user names (tests/corpus, tests/evaluation)"
_PLAN = "a step of a method, or what is drawn of an answer: `answer` and `explain` are checked with all of it"
_MACHINERY = "calls or wraps what it is given, whatever that reads"
_CASES = "n passages have n cases of n sources each: certificates are asked for, and count them"
LEFT_OUT: dict[str, str] = {
    _MACHINERY: """
        robustrag_integrations._util.checks.unchecked robustrag_integrations._util.plugins.load_object
        robustrag_integrations._util.steps.closed_after robustrag_integrations.audit.checking.replace_methods
        robustrag_integrations.certification.metrics.LLMJudge
        robustrag_integrations.certification.metrics.metric_of
        robustrag_integrations.certification.metrics.GuardedMetric
        robustrag_integrations.counting.plurality.Rule.verdict
        robustrag_integrations.defenses.trust.Others.is_failure
        robustrag_integrations.evaluation.attacks.scene.Attack.target
        robustrag_integrations.evaluation.run.cache.CallCache
        robustrag_integrations.evaluation.run.cache.MeteredModel
        robustrag_integrations.evaluation.run.cache.MeteredLocalModel robustrag_integrations.models.base.Model
        robustrag_integrations.models.base.FinalAnswers robustrag_integrations.models.base.Distributions
        robustrag_integrations.models.base.Distributions.moved robustrag_integrations.models.base.Opening
        robustrag_integrations.models.base.TwoModels robustrag_integrations.models.callable.CalledModel
        robustrag_integrations.models.callable.CallableModel robustrag_integrations.models.caller.CallLimits
        robustrag_integrations.models.local.cancellation.in_cancellable_thread
        robustrag_integrations.models.threads.Task robustrag_integrations.models.threads.Threads
        robustrag_integrations.models.threads.started robustrag_integrations.models.threads.in_thread
        robustrag_integrations.models.threads.called robustrag_integrations.models.threads.LoopThread
        robustrag_integrations.models.threads.PerLoop robustrag_integrations.plans.drivers.DecodingPerformer
        robustrag_integrations.plans.drivers.AnswerStream robustrag_integrations.plans.drivers.AsyncAnswerStream
        robustrag_integrations.serve.app.AccessMiddleware robustrag_integrations.serve.app.Service
        robustrag_integrations.serve.app.create_app robustrag_integrations.serve.endpoint.Admission
        robustrag_integrations.serve.endpoint.JSONReply robustrag_integrations.serve.endpoint.Reply
        robustrag_integrations.serve.endpoint.Endpoint robustrag_integrations.serve.server.bound
        robustrag_integrations.serve.server.ImpatientProtocol
    """,
    _OURS: """
        robustrag_integrations.cli.demo.plantings_on robustrag_integrations.cli.options.model_name
        robustrag_integrations.cli.options.named_model
        robustrag_integrations.models.providers.NamedModel
        robustrag_integrations._util.display.table robustrag_integrations._util.json_values.restored
        robustrag_integrations._util.settings.Setting.check robustrag_integrations._util.settings.settings_in
        robustrag_integrations._util.settings.check_settings
        robustrag_integrations.audit.canaries.Canaries.check_names
        robustrag_integrations.audit.canaries.Canaries.checked
        robustrag_integrations.certification.cases.check_size robustrag_integrations.cli.demo.demonstrate
        robustrag_integrations.cli.eval.add_shown robustrag_integrations.cli.eval.run_evaluation
        robustrag_integrations.cli.eval.report robustrag_integrations.cli.eval.exit_code
        robustrag_integrations.cli.mcp.server_of robustrag_integrations.cli.options.Parser
        robustrag_integrations.cli.options.setting robustrag_integrations.cli.options.add_set
        robustrag_integrations.cli.options.add_model robustrag_integrations.cli.options.add_base_url
        robustrag_integrations.cli.options.indexes_of robustrag_integrations.cli.options.Answering
        robustrag_integrations.cli.serve.limits_of robustrag_integrations.cli.serve.listening_on
        robustrag_integrations.cli.serve.serve_until_stopped robustrag_integrations.defenses.options.VoteOptions
        robustrag_integrations.defenses.options.MethodOptions
        robustrag_integrations.defenses.registry.Method.settings
        robustrag_integrations.defenses.registry.Method.thresholds
        robustrag_integrations.defenses.registry.Method.check_names
        robustrag_integrations.defenses.registry.Method.load
        robustrag_integrations.defenses.registry.Method.build
        robustrag_integrations.defenses.registry.Method.settings_of
        robustrag_integrations.defenses.registry.method_for robustrag_integrations.defenses.registry.method_of
        robustrag_integrations.defenses.settings.MethodSettings
        robustrag_integrations.defenses.settings.MethodSettings.request
        robustrag_integrations.defenses.settings.MethodSettings.as_dict
        robustrag_integrations.defenses.settings.MethodSettings.phrases
        robustrag_integrations.defenses.settings.MethodSettings.final_abstains
        robustrag_integrations.defenses.settings.ReplySettings
        robustrag_integrations.defenses.settings.ChoiceSettings
        robustrag_integrations.defenses.settings.SourceSettings
        robustrag_integrations.defenses.settings.SourceSettings.quorum_rule
        robustrag_integrations.defenses.settings.AbstainingSettings
        robustrag_integrations.drawing.elements.Element robustrag_integrations.drawing.elements.h
        robustrag_integrations.drawing.elements.table robustrag_integrations.drawing.elements.to_html
        robustrag_integrations.drawing.elements.to_data
        robustrag_integrations.evaluation.attacks.families.attack_of
        robustrag_integrations.evaluation.attacks.planning.plan_attack
        robustrag_integrations.evaluation.attacks.planning.planted_texts
        robustrag_integrations.evaluation.attacks.search.adaptive
        robustrag_integrations.evaluation.attacks.search.adaptive_substitution
        robustrag_integrations.evaluation.run.bench.LocalEngine
        robustrag_integrations.evaluation.run.config.EvalConfig
        robustrag_integrations.evaluation.run.config.EvalConfig.most_passages
        robustrag_integrations.evaluation.run.config.load_config
        robustrag_integrations.evaluation.run.config.read_config
        robustrag_integrations.evaluation.run.journal.Journal
        robustrag_integrations.evaluation.run.planning.Setup robustrag_integrations.evaluation.run.planning.Job
        robustrag_integrations.evaluation.run.planning.RunPlan
        robustrag_integrations.evaluation.run.planning.make_plan
        robustrag_integrations.evaluation.run.runner.evaluate
        robustrag_integrations.evaluation.run.runner.known_rows
        robustrag_integrations.evaluation.score.rows.latest_rows
        robustrag_integrations.evaluation.score.rows.attack_of_row
        robustrag_integrations.evaluation.score.summary.summarise
        robustrag_integrations.evaluation.score.summary.expected_accuracy
        robustrag_integrations.evaluation.show.report.write_report
        robustrag_integrations.evaluation.show.report.report_page
        robustrag_integrations.evaluation.show.report.outcome
        robustrag_integrations.evaluation.show.tables.main_tables
        robustrag_integrations.evaluation.show.tables.summary_table robustrag_integrations.grouping.quotas.Shortage
        robustrag_integrations.grouping.votes.VoteRules.isolate
        robustrag_integrations.playground.answering.Models robustrag_integrations.playground.answering.Buttons
        robustrag_integrations.playground.app.create_app robustrag_integrations.playground.app.controls_of
        robustrag_integrations.playground.state.state_of robustrag_integrations.playground.state.settable
        robustrag_integrations.serve.chat.ChatRequest robustrag_integrations.serve.chat.ChatResponse.whole
        robustrag_integrations.serve.chat.ChatResponse.chunk robustrag_integrations.text.prompts.PromptTemplate
        robustrag_integrations.text.prompts.PromptTemplate.with_exemplars
        robustrag_integrations.text.prompts.check_exemplars
    """,
    _PROCESS: """
        robustrag_integrations.evaluation.run.journal.private
        robustrag_integrations._util.yaml_files.read_yaml robustrag_integrations.corpus.documents.needed
        robustrag_integrations.corpus.docx_text.text_of robustrag_integrations.corpus.extract.reply
        robustrag_integrations.corpus.pdf_text.text_of robustrag_integrations.corpus.reading.read_documents
        robustrag_integrations.corpus.reading.text_in_process robustrag_integrations.corpus.retrieval.HybridIndex
        robustrag_integrations.corpus.retrieval.Library robustrag_integrations.corpus.retrieval.Library.search
        robustrag_integrations.corpus.retrieval.Found robustrag_integrations.defenses.base.from_settings
        robustrag_integrations.defenses.settings_file.load_settings
        robustrag_integrations.evaluation.attacks.families.payload_attack
        robustrag_integrations.evaluation.data.datasets.read_rows
        robustrag_integrations.evaluation.data.datasets.load_dataset
        robustrag_integrations.evaluation.score.rows.read_run
    """,
    _PLAN: """
        robustrag_integrations.text.shared_words.SharedWords
        robustrag_integrations.answers.abstained.Abstained
        robustrag_integrations.answers.answer.RobustAnswer.from_dict
        robustrag_integrations.audit.prompts.Audit.release
        robustrag_integrations.defenses.consensus.lists.list_plan
        robustrag_integrations.defenses.consensus.lists.possible_items
        robustrag_integrations.defenses.consensus.defense.consensus_plan
        robustrag_integrations.defenses.consensus.defense.possible_texts
        robustrag_integrations.defenses.consensus.defense.ConsensusAggregation.plan_of
        robustrag_integrations.defenses.keyword.defense.keyword_plan
        robustrag_integrations.defenses.keyword.defense.KeywordAggregation.plan_of
        robustrag_integrations.defenses.trust.trust_first
        robustrag_integrations.defenses.vanilla.defense.vanilla_plan
        robustrag_integrations.defenses.vanilla.defense.ask_once
        robustrag_integrations.defenses.vanilla.defense.VanillaRAG.plan_of
        robustrag_integrations.defenses.voting.defense.voting_plan
        robustrag_integrations.defenses.voting.defense.MajorityVoting.plan_of
        robustrag_integrations.defenses.voting.options.check_choices
        robustrag_integrations.drawing.answer.answer_parts
        robustrag_integrations.drawing.answer.certificate_parts
        robustrag_integrations.drawing.answer.account_parts robustrag_integrations.drawing.answer.passages_of
        robustrag_integrations.drawing.notebook.answer_html
        robustrag_integrations.drawing.notebook.certificate_html robustrag_integrations.plans.asking.Heard
        robustrag_integrations.plans.asking.ask_sources robustrag_integrations.plans.asking.ask_final
        robustrag_integrations.plans.finish.finish
    """,
    _NUMBERS_OF: """
        robustrag_integrations.certification.certify.refuse_sampling
        robustrag_integrations.defenses.decoding.certifier.DecodingCertifier
        robustrag_integrations.defenses.decoding.defense.DecodingAggregation
        robustrag_integrations.defenses.decoding.plan.who_answers
        robustrag_integrations.defenses.decoding.plan.unsettled
        robustrag_integrations.models.embedding.embedding_of
        robustrag_integrations.models.embedding.SentenceEmbedding
        robustrag_integrations.models.local.batches.Opened
        robustrag_integrations.models.local.batches.SinglePrompt
        robustrag_integrations.models.local.batches.PlainPrompt
        robustrag_integrations.models.local.batches.PromptRows
        robustrag_integrations.models.local.batches.RowsBehind
        robustrag_integrations.models.local.batches.SeparateBatches
        robustrag_integrations.models.local.cache.BatchKVCache
        robustrag_integrations.models.local.chat_frames.chat_frame
        robustrag_integrations.models.local.decoding.LocalSession
        robustrag_integrations.models.local.encoding.PromptEncoder
        robustrag_integrations.models.local.final_answers.BatchedFinals
        robustrag_integrations.models.local.isolation.ModelMemo
        robustrag_integrations.models.local.isolation.IsolationProbe
        robustrag_integrations.models.local.language_model.CausalLM
        robustrag_integrations.models.local.model.LocalModel
        robustrag_integrations.models.local.reading.PrefixStore
        robustrag_integrations.models.local.reading.PromptReader
        robustrag_integrations.models.local.token_trees.LocalTree
        robustrag_integrations.models.local.token_trees.TokenTrie
        robustrag_integrations.models.local.token_trees.as_numpy
        robustrag_integrations.models.providers.NamedModel.label
        robustrag_integrations.models.providers.NamedModel.gives_probabilities
        robustrag_integrations.models.providers.NamedModel.local
        robustrag_integrations.models.providers.NamedModel.load
        robustrag_integrations.models.providers.NamedModel.fingerprint
        robustrag_integrations.models.server.connection.Connection
        robustrag_integrations.models.server.connection.parsed
        robustrag_integrations.models.server.connection.Events
        robustrag_integrations.models.server.connection.choice_of
        robustrag_integrations.models.server.connection.Said
        robustrag_integrations.models.server.decoding.RemoteDecodingModel
        robustrag_integrations.models.server.decoding.RemoteSession
        robustrag_integrations.models.server.decoding.token_list
        robustrag_integrations.models.server.embedding.ServedEmbedding
        robustrag_integrations.models.server.model.OpenAIModel
        robustrag_integrations.models.tokenizer_codec.load_tokenizer
        robustrag_integrations.models.tokenizer_codec.TokenizerCodec
        robustrag_integrations.plans.finish.SpendingBook.note
        robustrag_integrations.plans.finish.SpendingBook.entered
        robustrag_integrations.text.spacy_keywords.SpacyKeywordExtractor
    """,
    _FRAMEWORK: """
        langchain_robustrag.retrieval.check_trusted llamaindex_robustrag.query_engine.check_trusted
        llamaindex_robustrag.grouping.Later
        langchain_robustrag.audit.IsolationAudit langchain_robustrag.audit.listening
        langchain_robustrag.callbacks.Heard langchain_robustrag.callbacks.ShownMessage
        langchain_robustrag.callbacks.is_shown langchain_robustrag.callbacks.AsyncAnswerRun
        langchain_robustrag.calls.LangChainModel langchain_robustrag.chain.RobustOptions
        langchain_robustrag.chain.create_robust_documents_chain langchain_robustrag.check.assert_defended
        langchain_robustrag.check.aassert_defended langchain_robustrag.diverse.DiverseRetriever
        langchain_robustrag.documents.Later langchain_robustrag.documents.supporting_documents
        langchain_robustrag.language_models.as_runnable langchain_robustrag.language_models.decoding_model
        langchain_robustrag.middleware.RobustRetrievalMiddleware langchain_robustrag.prompts.FilledTemplate
        langchain_robustrag.prompts.FilledTemplate.render langchain_robustrag.prompts.check_prompt
        langchain_robustrag.prompts.check_inputs langchain_robustrag.prompts.located
        langchain_robustrag.questions.find_question langchain_robustrag.questions.standing_alone
        langchain_robustrag.replies.Seen langchain_robustrag.replies.Streamed
        langchain_robustrag.replies.Streamed.pieces_of langchain_robustrag.replies.Streamed.end
         langchain_robustrag.retrieval.RobustRetrievalChain
        langchain_robustrag.retrieval.create_robust_retrieval_chain langchain_robustrag.retrieval.check_retriever
        langchain_robustrag.runnable.OneRun langchain_robustrag.runnable.child_config
        langchain_robustrag.runnable.RobustDocuments langchain_robustrag.structured.Structured.loaded
        langchain_robustrag.tool.create_robust_node langchain_robustrag.tool.RobustRetrieverTool
        langchain_robustrag.tool.create_robust_retriever_tool langchain_robustrag.tool.content_and_artifact
        langchain_robustrag.tool.told llamaindex_robustrag.audit.IsolationAudit
        llamaindex_robustrag.chat.ChatOptions llamaindex_robustrag.chat.RobustContextChatEngine
        llamaindex_robustrag.chat.RobustCondensePlusContextChatEngine llamaindex_robustrag.check.assert_defended
        llamaindex_robustrag.check.aassert_defended llamaindex_robustrag.diverse.DiverseRetriever
        llamaindex_robustrag.grouping.supporting_nodes llamaindex_robustrag.llm.LLMModel
        llamaindex_robustrag.local.TextModelLLM llamaindex_robustrag.prompts.MessageText
        llamaindex_robustrag.prompts.UserTemplate llamaindex_robustrag.prompts.UserTemplate.literal
        llamaindex_robustrag.prompts.UserTemplate.asking llamaindex_robustrag.prompts.UserTemplate.render
        llamaindex_robustrag.query_engine.RobustRAGQueryEngine llamaindex_robustrag.query_engine.check_parts
        llamaindex_robustrag.query_engine.check_names llamaindex_robustrag.query_engine.synthesizer_of
        llamaindex_robustrag.query_engine.RobustQueryEngineTool llamaindex_robustrag.reports.ResponseMetadata
        llamaindex_robustrag.reports.ReportedNode llamaindex_robustrag.reports.RobustAnswerEvent
        llamaindex_robustrag.reports.structured llamaindex_robustrag.reports.robust_answer
        llamaindex_robustrag.synthesizer.SettingOptions llamaindex_robustrag.synthesizer.SynthesizerOptions
        llamaindex_robustrag.synthesizer.RobustRAGSynthesizer
    """,
    _CASES: """
        robustrag_integrations.certification.cases.benign_source_cases
        robustrag_integrations.certification.findings.Question.cases
        robustrag_integrations.certification.isolated.certify_sizes
    """,
}
"""Reasons, and the functions and classes that are left out for them: nothing else is."""
