"""A response synthesizer that a few planted documents cannot take over.

1. `synthesize` and its like put the nodes into sources (`grouping.py`) and make the method's plan
   (`Defense.whole_plan`), with the user's prompt in it (`text/prompts.py`).
2. The plan is run by `plans/drivers.py`; `LLMModel` makes a model of the core of an LLM.
3. The report goes into the response's metadata, to each source node, and out as an event (`reports.py`).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import chain
from typing import Any, TypeVar, cast

from llama_index.core import instrumentation
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.instrumentation.events.llm import LLMPredictEndEvent, LLMPredictStartEvent
from llama_index.core.instrumentation.events.synthesis import (
    GetResponseEndEvent,
    GetResponseStartEvent,
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType, TextNode
from llama_index.core.settings import Settings
from llama_index.core.types import RESPONSE_TEXT_TYPE
from typing_extensions import Unpack

from llamaindex_robustrag.audit import hosted_tools_of
from llamaindex_robustrag.conversation import from_conversation, with_aside
from llamaindex_robustrag.grouping import checked_nodes, group_nodes, shelf_of_nodes, text_of
from llamaindex_robustrag.llm import CallOptions, LLMModel
from llamaindex_robustrag.local import TextModelLLM, decoding_model
from llamaindex_robustrag.prompts import UserTemplate, chosen, stock_template, with_user_prompt
from llamaindex_robustrag.reports import (
    PENDING,
    REPORT,
    ReportedNode,
    StructuredResponse,
    answer_sent,
    failures_sent,
    structured,
)
from robustrag_integrations._util.checks import check_flag, nearest_of, refuse_unknown
from robustrag_integrations._util.words import conversation_warnings
from robustrag_integrations.answers.answer import Reader, RobustAnswer, checked_reader
from robustrag_integrations.defenses.options import MethodName, MethodOptions
from robustrag_integrations.defenses.registry import method_for, rules_and_settings
from robustrag_integrations.defenses.trust import Later
from robustrag_integrations.grouping.passages import GroupBy
from robustrag_integrations.grouping.quotas import few_sources_warning
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.base import TextModel, TwoModels
from robustrag_integrations.models.caller import CallLimits
from robustrag_integrations.plans.asking import PlanInput, check_query
from robustrag_integrations.plans.drivers import DecodingPerformer, Performer, TextPerformer, arun, astream, run, stream
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.text.prompts import JSON_CAVEAT, Prompt, PromptSet, shows_json

_log = logging.getLogger(__name__)
_QA = "text_qa_template"
_PROMPTS_OF_STOCK = (  # of LlamaIndex's synthesizers, which ask several documents at once, one after another, or none
    *("refine_template", "summary_template", "simple_template", "chat_content_qa_template"),
    *("chat_content_refine_template", "chat_summary_template"),
)
_ONE_PROMPT = "every source is asked text_qa_template by itself, and there is no further prompt"
INSTEAD = {  # of arguments of LlamaIndex's own engines
    "response_mode": "there is one mode: each source is asked by itself, since in a prompt with two one can speak for "
    "the other; for full answers use task='long_form', and what is trusted is read together (trusted_retriever)",
    **dict.fromkeys(("refine_template", "summary_template", "simple_template"), _ONE_PROMPT),
    **dict.fromkeys(("context_template", "context_prompt"), "pass text_qa_template, which each source is asked"),
    **dict.fromkeys(("temperature", "max_tokens"), "set it on the LLM"),
    "chat_mode": "choose the class: RobustContextChatEngine or RobustCondensePlusContextChatEngine",
    "skip_condense": "use a RobustContextChatEngine, which condenses nothing",
    "similarity_top_k": "pass it to the retriever: index.as_retriever(similarity_top_k=10)",
    "use_async": "sources are asked at the same time: calls=CallOptions(num_workers=8)",
}
_OF_STOCK = frozenset({"prev_response", "separator"})  # taken by LlamaIndex's own synthesizers, of no use here
_dispatcher = instrumentation.get_dispatcher(__name__)  # type: ignore[attr-defined]
_Self = TypeVar("_Self", bound="RobustRAGSynthesizer")


class SettingOptions(MethodOptions, total=False):
    """Settings of the method and rules of voting, as keyword arguments."""

    prompts: PromptSet | None


class SynthesizerOptions(SettingOptions, total=False):
    """The arguments of `RobustRAGSynthesizer` that engines pass on."""

    method: MethodName | None
    text_qa_template: BasePromptTemplate | None
    final_llm: LLM | TextModel | None
    output_cls: type[BaseModel] | None
    reader: Reader
    prompt_helper: PromptHelper | None
    group_by: GroupBy | None
    votes: VoteRules | None
    calls: CallOptions | None
    citation_markers: bool
    choices: Sequence[str] | None


class RobustRAGSynthesizer(BaseSynthesizer):
    """Answers from retrieved nodes so that a few corrupted source documents cannot decide the answer.

    Every source document is asked alone, and the answers are aggregated securely. `response.metadata["robustrag"]` is
    the whole `RobustAnswer` as a JSON-safe dictionary beside the nodes' metadata, `robust_answer(response)` as an
    object. A streamed response has it when the last piece is out. Every answer and failure is sent as a
    `RobustAnswerEvent`, too.

    Args:
        llm: asked once per source and once at the end; a `LocalModel` of the core will do. None: `Settings.llm`.
        method: `"consensus"`, `"keyword"`, `"decoding"`, or `"voting"`. None: consensus, and voting where there are
            `choices`; no setting chooses another one.
        streaming: True if `query` gives a `StreamingResponse`. Aggregated text alone is streamed.
        text_qa_template: your own prompt, of any kind that LlamaIndex has (text, messages, selector,
            `RichPromptTemplate`), with `{context_str}` and `{query_str}`. It is asked about every source; for consensus
            with one sentence more, which asks for a short answer. Keyword aggregation asks it once more, with what was
            agreed on in the place of the documents, and so does consensus where it has an output parser, for the agreed
            answer in that format.
        final_llm: asked the final prompt in place of `llm`; the guarantee needs both to be deterministic.
        output_cls: the pydantic class of the final answer; an abstention is an `Abstained` in its place. For consensus
            it is the model's reading of the agreed answer. A stream has its JSON, or the abstention.
        reader: `"people"`, or `"model"` if another model reads the responses. What people read where sources disagree
            or one alone says something may be an attacker's words, and is an abstention there.
        prompt_helper: knows what fits into the window; passages are cut within a source, never repacked across sources.
        group_by: the unit of one vote: `"origin"` (a file, page or source document), `"site"`, `"passage"` (each node),
            the name of a metadata entry, or a function from a `Passage` to a key (its `metadata` is the node's).
        votes: the rules of voting, of which single ones, such as `min_radius`, may also be given by themselves.
        calls: limits and retries of calls.
        citation_markers: the response has `[1]` where the nodes that the report cites as number 1 support it; it is
            then streamed in one piece, and the report's `text` has no markers.
        choices: the options that `"voting"` votes on, unless `synthesize(choices=...)` names others.
        options: the settings of the method, such as `min_support` of consensus or `alpha` of keyword aggregation,
            `task` and `prompts`; `help(robustrag_integrations.ConsensusAggregation)` and the like describe them.

    Raises:
        ValueError, TypeError: an invalid argument; the message names it and the fix.

    Examples:
        >>> synthesizer = RobustRAGSynthesizer(llm=llm)
        >>> engine = index.as_query_engine(llm=llm, response_synthesizer=synthesizer, similarity_top_k=10)
        >>> response = engine.query("Who won?")
        >>> str(response), response.metadata["robustrag"]["radius"]
    """

    def __init__(
        self,
        llm: LLM | TextModel | None = None,
        *,
        method: MethodName | None = None,
        streaming: bool = False,
        text_qa_template: BasePromptTemplate | None = None,
        final_llm: LLM | TextModel | None = None,
        output_cls: type[BaseModel] | None = None,
        reader: Reader = "people",
        prompt_helper: PromptHelper | None = None,
        group_by: GroupBy | None = None,
        votes: VoteRules | None = None,
        calls: CallOptions | None = None,
        citation_markers: bool = False,
        choices: Sequence[str] | None = None,
        **options: Unpack[SettingOptions],
    ) -> None:
        check_flag(streaming=streaming, citation_markers=citation_markers)
        if calls is not None and not isinstance(calls, CallOptions):
            raise TypeError(f"calls must be CallOptions(...), got {type(calls).__name__}")
        super().__init__(
            llm=_llm_of(llm), prompt_helper=prompt_helper, streaming=streaming, output_cls=_checked_class(output_cls)
        )
        self._rules, settings = rules_and_settings({**options, "group_by": group_by}, votes)
        self._method = method_for(method, settings.get("task"), choices)
        taken = [*signature(RobustRAGSynthesizer.__init__).parameters, *RULES]
        self._method.check_names(settings, ("task", "prompts"), near=taken, instead=INSTEAD)
        self._settings: Any = self._method.load().settings_of(**settings)
        self._method.load().check_rules(self._rules)
        if self._rules.passages_per_source != 1:
            raise ValueError("nodes have sources by group_by; leave passages_per_source out")
        self._group_by = self._rules.by
        self._markers, self._choices, self._reader = citation_markers, choices, checked_reader(reader)
        self._calls = calls or CallOptions()
        self._limits = CallLimits(self._calls.num_workers, self._calls.timeout)
        self._final_llm = None if final_llm is None else _llm_of(final_llm)
        self._counts_whole_answers = self._method.name == "consensus" and self._settings.task != "list"
        self._template: BasePromptTemplate | None = None
        self._aside: Prompt | None = None
        self._condensed: Sequence[ChatMessage] = ()
        self._is_tainted = False
        if text_qa_template is not None:
            self._update_prompts({_QA: text_qa_template})
        self._check_end()
        self._local = decoding_model(self._llm) if self._method.needs_probabilities else None
        self._converse(())
        doubt = "" if self._calls.accept_sampling else self._model.repeats.caveat
        for warning in filter(None, (*self._model.warnings, *self._caveats(), doubt)):
            _log.warning("%s", warning)

    def __repr__(self) -> str:
        return f"RobustRAGSynthesizer({self._llm.metadata.model_name}, method={self._method.name!r})"

    @property
    def llm(self) -> LLM:
        """The LLM that is asked about every source."""
        return self._llm

    @property
    def streams(self) -> bool:
        """True if responses are streamed."""
        return bool(self._streaming)

    def with_changes(
        self: _Self,
        *,
        streaming: bool | None = None,
        conversation: Sequence[ChatMessage] | None = None,
        condensed: Sequence[ChatMessage] = (),
        reader: Reader | None = None,
        aside: Prompt | None = None,
        tainted: bool = False,
    ) -> _Self:
        """Return a copy that streams or does not, for another reader, or with a conversation in front of every prompt.

        `condensed` are earlier messages that are no part of prompts, but that the question was made from; `aside` is
        asked where no document answers, and so without documents; `tainted`: words in them no trusted source decided.
        """
        changed = copy.copy(self)
        changed._streaming = self.streams if streaming is None else streaming
        changed._aside, changed._condensed, changed._is_tainted = aside, condensed, tainted
        changed._reader = self._reader if reader is None else checked_reader(reader)
        if conversation is not None:
            changed._converse(conversation)
        return changed

    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """Answer from nodes.

        Args:
            query: the question; trusted.
            nodes: the retrieved passages that anybody may have written, best first. None at all gives an abstention.
            additional_source_nodes: listed among the sources, not read.
            response_kwargs: `choices`, for voting; `trusted_nodes`, which are read together, and decide where they hold
                the answer: an engine with a `trusted_retriever` asks for the others only where they do not.

        Raises:
            QuorumError: too many sources failed.
            ModelError: the final call failed.
        """
        with self._synthesis(query, nodes, additional_source_nodes, response_kwargs) as made:
            if self.streams:
                made.response = StreamingResponse(self._pieces(made), made.sources, made.metadata)
            else:
                made.begin()
                made.response = self._response(run(made.plan, self._performer()), made)
        return made.response

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """`synthesize` without blocking the event loop; cancelling it cancels the calls."""
        with self._synthesis(query, nodes, additional_source_nodes, response_kwargs) as made:
            if self.streams:
                pieces = await self._apieces(made)
                made.response = AsyncStreamingResponse(pieces, made.sources, made.metadata)
            else:
                made.begin()
                made.response = self._response(await arun(made.plan, self._performer().aperform), made)
        return made.response

    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> RESPONSE_TEXT_TYPE:
        """Answer from bare texts, each a source of its own. The report is sent as an event (`RobustAnswerEvent`)."""
        response = self.synthesize(query_str, _nodes_of(text_chunks), **response_kwargs)
        return response.response_gen if self.streams else response.response  # type: ignore[return-value,union-attr]

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> RESPONSE_TEXT_TYPE:
        """`get_response` without blocking the event loop."""
        response = await self.asynthesize(query_str, _nodes_of(text_chunks), **response_kwargs)
        return response.response_gen if self.streams else response.response  # type: ignore[return-value,union-attr]

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return {_QA: self._template or stock_template(self._settings.prompts.isolated)}

    def _update_prompts(self, prompts: dict[str, BasePromptTemplate]) -> None:
        own = {key for key in prompts if ":" not in key}  # others belong to other modules
        if unknown := sorted(own - {_QA, *_PROMPTS_OF_STOCK}):
            near = nearest_of(unknown[0], [_QA, *_PROMPTS_OF_STOCK])
            hint = f"did you mean {near}?" if near else f"known here: {_QA}"
            raise ValueError(f"unknown prompts {', '.join(unknown)}; {hint}")
        if _QA in own:
            template = prompts[_QA]
            if not isinstance(template, BasePromptTemplate):
                raise TypeError(f"{_QA} must be a template of LlamaIndex, got {type(template).__name__}")
            if template != self._get_prompts()[_QA]:
                self._filled_settings(template)  # raises if it cannot be filled in
                self._template = template
        if unused := sorted(own - {_QA}):
            _log.warning("not used: %s; every document is asked %s, whatever its length", ", ".join(unused), _QA)

    def _check_end(self) -> None:
        """Refuse what is for a final call that this method does not make; have one made where the answer needs it."""
        keywords = self._method.final_prompt == "keyword"
        to_object = self._output_cls is not None
        makes_object = self._counts_whole_answers and (to_object or self._has_format())
        if (to_object or self._final_llm is not None) and not (keywords or makes_object):
            raise ValueError(
                "output_cls and final_llm are for a final call, which this does not make; leave them out, or use "
                "method='keyword', or pass output_cls for an object of what consensus agrees on"
            )
        if to_object and self._markers:
            raise ValueError("citation_markers puts markers into text; leave it out, or leave out output_cls")
        if to_object:
            final: dict[str, Any] = {"objects": True} if self._counts_whole_answers else {"final": "always"}
            self._settings = replace(self._settings, **final)

    def _filled_settings(self, template: BasePromptTemplate | None) -> Any:
        """Return the settings, with the user's template among the prompts, filled in anew for every answer."""
        if template is None:
            return self._settings
        prompts = with_user_prompt(
            self._settings.prompts,
            template,
            self._llm,
            getattr(self._settings, "task", "short_answer"),
            self._settings.request,
            self._settings.silence_request,
        )
        if self._method.needs_probabilities and not cast(UserTemplate, prompts.isolated).is_text:
            raise TypeError(f"{self._method.name} aggregation reads a prompt as one text; pass a PromptTemplate")
        return replace(self._settings, prompts=prompts, **({"objects": True} if self._has_format() else {}))

    def _has_format(self) -> bool:
        """True if the user's template has an output parser, whose format an agreed answer is put into."""
        if self._template is None or not self._counts_whole_answers:
            return False
        return chosen(self._template, self._llm).output_parser is not None

    def _plan(
        self,
        query: str,
        nodes: Any,
        trusted: list[NodeWithScore] | None,
        choices: Sequence[str] | None = None,
        **others: Any,
    ) -> Plan:
        refuse_unknown(others.keys() - _OF_STOCK, ["choices", "trusted_nodes"], "synthesize")
        check_query(query)
        settings = self._filled_settings(self._template)
        asked = settings.prompts.isolated
        reads = settings.request and self._output_cls is None and not self._has_format()
        wants_json = bool(reads) and isinstance(asked, UserTemplate) and shows_json(asked.literal)
        known = PlanInput(
            query,
            model=self._model,
            rules=self._rules,
            choices=choices if choices is not None else self._choices,
            caveats=(*([JSON_CAVEAT.format("output_cls=")] if wants_json else []), *self._caveats()),
            accept_sampling=self._calls.accept_sampling,
            markers=self._markers,
            for_prompt=self._reader == "model",
            conversation=self._is_tainted,
            objects=self._output_cls is not None or self._has_format(),
        )

        def beside(found: Sequence[NodeWithScore]) -> PlanInput:
            sources = group_nodes(found, self._group_by)
            few = few_sources_warning(sources, DEFAULT_SIMILARITY_TOP_K, "as_retriever(similarity_top_k=10)")
            return replace(known, sources=sources, caveats=(*([few] if few else []), *known.caveats))

        method: Any = self._method.load()
        if trusted is None:
            plan: Plan = method.whole_plan(beside(nodes), settings)
        else:
            shelf = replace(known, sources=shelf_of_nodes(trusted))
            plan = method.trusted_plan(shelf, settings, nodes.request(beside))
        return plan if self._aside is None else with_aside(plan, self._aside, tainted=self._is_tainted)

    def _performer(self) -> Performer:
        return (TextPerformer if self._local is None else DecodingPerformer)(self._model)

    def _pieces(self, made: _Synthesis) -> Generator[str, None, None]:
        """Start the answer; return a generator of its pieces, a single one for an object, that completes the report.

        Everything before the first piece is done on return, so that failures are raised here.
        """
        source = stream(made.plan, self._performer())
        first = next(source)

        def pieces() -> Generator[str, None, None]:
            made.begin()
            with failures_sent(), closing(source):
                for piece in chain([first], source):
                    if isinstance(piece, RobustAnswer):
                        made.done(piece)
                    else:
                        yield piece

        return pieces()

    async def _apieces(self, made: _Synthesis) -> AsyncGenerator[str, None]:
        source = astream(made.plan, self._performer())
        piece: Any = await anext(source)

        async def pieces() -> AsyncGenerator[str, None]:
            nonlocal piece
            made.begin()
            async with aclosing(source):
                with failures_sent():
                    while not isinstance(piece, RobustAnswer):
                        yield piece
                        piece = await anext(source)
                    made.done(piece)

        return pieces()

    def _converse(self, conversation: Sequence[ChatMessage]) -> None:
        parts = (self._calls, self._limits, self._prompt_helper, conversation)
        self._model: Any = self._local
        if self._local is None:
            self._model = reader = LLMModel(self._llm, *parts)
            if self._final_llm is not None or self._output_cls is not None:
                self._model = TwoModels(reader, LLMModel(self._final_llm or self._llm, *parts, self._output_cls))
        self._conversation = tuple(conversation)

    @property
    def takes_asides(self) -> bool:
        """True if it answers without documents, too: it gives text, and asks a model for it."""
        return self._output_cls is None and self._local is None

    def _caveats(self) -> tuple[str, ...]:
        """Return the known weaknesses of every answer, from the model and the conversation."""
        read = self._conversation if self._local is None else ()
        roles = [message.role for message in (*read, *self._condensed)]
        tools = sum(map(roles.count, (MessageRole.TOOL, MessageRole.FUNCTION)))
        found = conversation_warnings(roles.count(MessageRole.ASSISTANT), tools)
        if self._local is None:
            return found
        unread = {"system_prompt": self._llm.system_prompt, "conversation so far": self._conversation}
        left_out = (f"decoding aggregation does not read the {name}" for name, given in unread.items() if given)
        return (*left_out, *found)

    @contextmanager
    def _synthesis(
        self, query: QueryType, nodes: Any, others: Sequence[NodeWithScore] | None, kwargs: dict[str, Any]
    ) -> Iterator[_Synthesis]:
        """Send the events of one synthesis around the block, which sets its response."""
        text = query.query_str if isinstance(query, QueryBundle) else query
        trusted = kwargs.pop("trusted_nodes", None)
        if isinstance(nodes, Later) or trusted is not None:
            trusted, given = checked_nodes(trusted, "trusted_nodes"), nodes
            nodes = nodes if isinstance(nodes, Later) else Later(lambda: given)
        plan = self._plan(text, nodes if isinstance(nodes, Later) else list(nodes), trusted, **kwargs)
        found = list(nodes) if trusted is None else trusted
        read = [text_of(each.node, trusted=trusted is not None) for each in found]
        _dispatcher.event(SynthesizeStartEvent(query=query))
        payload: dict[str, Any] = {EventPayload.QUERY_STR: text}
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=payload) as event, failures_sent():
            shown = [*found, *(others or ())]
            metadata = {**(self._get_metadata_for_response([each.node for each in shown]) or {}), REPORT: dict(PENDING)}
            sources = [ReportedNode.of(node, metadata[REPORT]) for node in found] + shown[len(found) :]
            made = _Synthesis(plan, sources, metadata, nodes if isinstance(nodes, Later) else None)
            if found and self._output_cls is None:
                template = self._get_prompts()[_QA].partial_format(query_str=text)
                made.predicts = LLMPredictStartEvent(
                    template=template, template_args={"context_str": "\n\n".join(read)}
                )
            if found:
                _dispatcher.event(GetResponseStartEvent(query_str=text, text_chunks=read))
            yield made
            if found:
                _dispatcher.event(GetResponseEndEvent())
            event.on_end(payload={EventPayload.RESPONSE: made.response})
        _dispatcher.event(SynthesizeEndEvent(query=query, response=made.response))

    def _response(self, answer: RobustAnswer, made: _Synthesis) -> RESPONSE_TYPE:
        made.done(answer)
        if (found := structured(answer, self._output_cls)) is not None:
            return StructuredResponse(found, made.sources, made.metadata)
        text = self._shown(answer)
        if made.predicts is not None:
            _dispatcher.event(LLMPredictEndEvent(output=text))
        return Response(text, made.sources, made.metadata)

    def _shown(self, answer: RobustAnswer) -> str:
        return answer.shown(markers=self._markers, to=self._reader)


@dataclass
class _Synthesis:
    """One synthesis: its plan, and what its response shows, completed when the answer is there."""

    plan: Plan
    sources: list[NodeWithScore]
    metadata: dict[str, Any]  # of the nodes, and the report, which is filled in
    later: Later | None = None
    predicts: LLMPredictStartEvent | None = None  # as of one prediction of the whole answer
    response: RESPONSE_TYPE = field(init=False)

    def begin(self) -> None:
        """Send the event that a prediction begins; of a stream, LlamaIndex sends none that it ended."""
        if self.predicts is not None:
            _dispatcher.event(self.predicts)

    def done(self, answer: RobustAnswer) -> None:
        """Complete the report; no document is behind an answer from the conversation.

        Trusted nodes come first; the others follow where they were asked.
        """
        report = self.metadata[REPORT]
        if self.later is not None:
            for node in self.later.found:  # whose ids may be those of trusted ones
                self.metadata.setdefault(node.node_id, node.node.metadata)
            self.sources += [ReportedNode.of(node, report) for node in self.later.found]
        if from_conversation(answer):
            self.sources.clear()
            self.metadata.clear()
        report.clear()
        report.update(answer.to_dict())
        self.metadata[REPORT] = report
        answer_sent(answer)


def _llm_of(llm: LLM | TextModel | None) -> LLM:
    if llm is None:
        llm = Settings.llm
    if isinstance(llm, TextModel):
        return TextModelLLM(llm)
    if not isinstance(llm, LLM) or isinstance(llm, StructuredLLM):
        raise TypeError(
            f"llm must be a LlamaIndex LLM or a TextModel of the core, got {llm!r:.60}; give an LLM, such as "
            "OpenAI(model='...'), or a function as CallableModel(function), and the class of a structured one as "
            "output_cls="
        )
    if hosted := hosted_tools_of(llm):
        raise TypeError(
            f"the provider of {type(llm).__name__} runs {', '.join(hosted)}, and what that finds is not isolated; "
            "give an LLM without"
        )
    return llm


def _nodes_of(texts: Sequence[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text)) for text in texts]


def _checked_class(output_cls: Any) -> type[BaseModel] | None:
    if output_cls is not None and not (isinstance(output_cls, type) and issubclass(output_cls, BaseModel)):
        raise TypeError(f"output_cls must be a pydantic class, got {output_cls!r:.60}")
    return output_cls
