"""A response synthesizer that a few planted documents cannot take over.

1. `synthesize` and its like put the nodes into groups (`grouping.py`) and make the method's plan
   (`Defense.whole_plan`), with the user's prompts in it (`user_prompts.py`).
2. The plan is run by `plans/drivers.py`; `LLMModel` makes a model of the core of an LLM.
3. The report goes into the response's metadata, to each source node, and out as an event (`reports.py`).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from typing import Any, TypeVar, cast

from llama_index.core import instrumentation
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.types import RESPONSE_TEXT_TYPE

from llamaindex_robustrag.aggregations import method_and_settings
from llamaindex_robustrag.conversation import conversation_caveats, from_conversation, with_aside
from llamaindex_robustrag.grouping import GroupNodesBy, checked_nodes, group_nodes
from llamaindex_robustrag.llm_calls import CallOptions, LLMModel
from llamaindex_robustrag.llm_traits import hosted_tools, plain_llm
from llamaindex_robustrag.local import TextModelLLM, local_model_of
from llamaindex_robustrag.reports import (
    Report,
    ReportedNode,
    ResponseMetadata,
    StructuredResponse,
    answer_sent,
    astarted,
    failures_sent,
    started,
    structured,
)
from llamaindex_robustrag.user_prompts import USER_KEYS, UserPrompts, UserTemplate, check_template, shown_as_template
from robustrag_integrations._util.checks import check_flag, refuse_unknown
from robustrag_integrations.answers.answer import Reader, RobustAnswer, checked_reader
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.settings_file import Arguments, SettingsLike
from robustrag_integrations.grouping.passages import PassageGroup, isolate
from robustrag_integrations.grouping.quotas import few_sources_warning
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.base import TextModel, repeats_of
from robustrag_integrations.models.wrappers import TwoModels
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.drivers import (
    AnswerStream,
    AsyncAnswerStream,
    DecodingPerformer,
    Performer,
    TextPerformer,
    arun,
    astream,
    run,
    stream,
)
from robustrag_integrations.plans.records import with_spending
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import Prompt, PromptSet, Task

_log = logging.getLogger(__name__)
_OF_STOCK = frozenset({"prev_response", "separator"})  # taken by LlamaIndex's own synthesizers, of no use here
_dispatcher = instrumentation.get_dispatcher(__name__)  # type: ignore[attr-defined]
_Self = TypeVar("_Self", bound="RobustRAGSynthesizer")


class RobustRAGSynthesizer(BaseSynthesizer):
    """Answers from retrieved nodes so that a few corrupted source documents cannot decide the answer.

    Every source document is asked alone, and the answers are aggregated securely. `response.metadata["robustrag"]` is
    the whole `RobustAnswer` as a JSON-safe dictionary, `response.metadata.robust_answer` as an object; loops over the
    metadata see nodes alone. Its `radius` says how many groups could have lied without changing the answer. A streamed
    response has it when the last piece is out. `robust_answers(response)` finds the reports behind routers,
    sub-questions and agents; every answer and failure is sent as a `RobustAnswerEvent`, too.

    Args:
        llm: asked once per group and once at the end; a `StructuredLLM` gives structure to the final answer alone. A
            `LocalModel` of the core is accepted, too. None: `Settings.llm`.
        settings: a settings file, or what `load_settings` gives: method, settings and
            vote rules, for what is not given here.
        aggregation: `"consensus"`, `"keyword"`, `"decoding"`, or `"voting"`. None: the first of these that does the
            task and takes what is given here.
        streaming: True if `query` gives a `StreamingResponse`. Aggregated text alone is streamed.
        text_qa_template: your own prompt, of any kind that LlamaIndex has (text, messages, selector,
            `RichPromptTemplate`), with `{context_str}` and `{query_str}`. It is asked about every group, and once more
            at the end, with what was agreed on in the place of the documents. For consensus every group is asked for a
            short answer, in one sentence more at the end, and what the prompt makes of the agreed answer is shown if it
            says that and nothing else (`wording="source"`: the answer as a source writes it). Passages and answers are
            never read as a template. Its output parser's format goes with the final prompt alone.
        keyword_prompt: another final prompt of keyword aggregation, with `{keywords_str}`; never the documents.
        final_llm: asked the final prompt in place of `llm`; the guarantee needs both to be deterministic.
        output_cls: the pydantic class of the final answer; an abstention is an `Abstained` in its place, and so is, for
            consensus, an object of which no value holds the agreed answer.
        reader: `"people"`, or `"model"` if another model reads the responses: an agent, a chat engine, an engine of
            sub-questions, a workflow. What people read where sources disagree or one alone says something may be an
            attacker's words, and is an abstention there (`RobustAnswer.for_prompt`).
        callback_manager: gets the synthesis events. The LLM keeps its own.
        prompt_helper: knows what fits into the window; passages are cut within a group, never repacked across groups.
        group_by: the unit of one vote: `"origin"` (a file, page or source document), `"site"`, `"passage"` (each node),
            the name of a metadata entry, or a function from a `NodeWithScore` to a key.
        votes: the rules of voting, of which `weights` and `min_radius` may also be given by
            themselves: `VoteRules(copies=..., weights=..., tiers=..., min_groups=..., min_radius=...,
            below=..., stop_when_decided=..., wave_size=..., allow_sole_source=...)`.
        calls: limits and retries of calls: `CallOptions(num_workers=..., timeout=..., attempts=..., retry_on=...,
            llm_kwargs=..., accept_sampling=...)`.
        citation_markers: the response has `[1]` where the nodes that the report cites as number 1 support it; none
            is the model's. It is then streamed in one piece, and the report's `text` has no markers.
        supporting_only: `response.source_nodes` has those nodes alone that support the answer (`supporting_nodes`), so
            that nobody is shown what was outvoted; of a streamed response when the last piece is out. `positions` in
            the report are places among these.
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
        settings: SettingsLike | None = None,
        aggregation: str | None = None,
        streaming: bool = False,
        text_qa_template: BasePromptTemplate | None = None,
        keyword_prompt: BasePromptTemplate | None = None,
        final_llm: LLM | TextModel | None = None,
        output_cls: type[BaseModel] | None = None,
        reader: Reader = "people",
        callback_manager: CallbackManager | None = None,
        prompt_helper: PromptHelper | None = None,
        group_by: GroupNodesBy | None = None,
        votes: VoteRules | None = None,
        calls: CallOptions | None = None,
        citation_markers: bool = False,
        supporting_only: bool = False,
        choices: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        check_flag(streaming=streaming, citation_markers=citation_markers, supporting_only=supporting_only)
        _check_kinds(output_cls, calls, callback_manager)
        self._settings: Any  # a dataclass, one type per method
        others = {
            "keyword_prompt": keyword_prompt,
            "final_llm": final_llm,
            "output_cls": output_cls,
            "choices": choices,
        }
        structured = isinstance(llm, StructuredLLM) and output_cls is None
        besides = [name for name, value in others.items() if value is not None] + ["output_cls"] * structured
        taken = signature(RobustRAGSynthesizer.__init__).parameters
        chosen = Arguments.of(
            {**options, "group_by": group_by}, aggregation=aggregation, votes=votes, settings=settings
        )
        self._method, self._settings = method_and_settings(
            chosen.aggregation, chosen.options, besides, [*taken, *RULES]
        )
        given = _llm_of(llm)
        # Without callback_manager: the base class would put it into the LLM, which others share.
        super().__init__(llm=given, prompt_helper=prompt_helper, streaming=streaming, output_cls=output_cls)
        self._callback_manager = callback_manager or Settings.callback_manager
        self._rules = chosen.rules
        if self._rules.group_size != 1:
            raise ValueError(
                f"group_size={self._rules.group_size}: nodes have groups by group_by; leave group_size out"
            )
        self._group_by = cast("GroupNodesBy", self._rules.by)
        self._method.load().check_rules(self._rules)
        self._markers = citation_markers
        self._supporting_only = supporting_only
        self._choices = choices
        self._policy = replace(calls or CallOptions())  # its counts are this synthesizer's own
        self._plain = plain_llm(given)
        writer = _llm_of(final_llm) if final_llm is not None else given
        self._writer = plain_llm(writer) if final_llm is not None else None
        self._structure = writer.output_cls if isinstance(writer, StructuredLLM) else output_cls
        self._reader = checked_reader(reader)
        ends = self._ends_with_keywords or self._counts_whole_answers  # with a final call
        if self._structure is not None and ends:
            final: dict[str, Any] = {"objects": True} if self._counts_whole_answers else {"final": "always"}
            self._settings = replace(self._settings, **final)
        self._user = UserPrompts()
        self._aside: Prompt | None = None
        self._condensed: tuple[ChatMessage, ...] = ()
        self._use(text_qa_template=text_qa_template, keyword_prompt=keyword_prompt)
        self._local: Any = None
        if final_llm is not None and self._counts_whole_answers and self._structure is None and not self._user.given:
            raise ValueError(
                "final_llm words what was agreed on in a prompt of yours; pass text_qa_template as well, or use "
                "aggregation='keyword'"
            )
        if citation_markers and self._structure is not None:
            raise ValueError("citation_markers puts markers into text; leave it out, or leave out output_cls")
        if not ends:
            for name, of_final in (("output_cls", self._structure), ("final_llm", final_llm)):
                if of_final is not None:
                    raise ValueError(
                        f"{self._method.name} aggregation has no final call, and gives text; leave out {name}, or use "
                        "aggregation='keyword'"
                    )
        if self._method.needs_probabilities:
            self._local = local_model_of(self._plain)
        self._converse(())
        doubt = "" if self._policy.accept_sampling else self._repeats().caveat
        for warning in (*self._caveats(), *([doubt] if doubt else [])):
            _log.warning("%s", warning)

    def __repr__(self) -> str:
        shown = {"aggregation": self._method.name, "group_by": self._group_by, "output_cls": self._structure}
        flags = {"streaming": self.streams, "supporting_only": self._supporting_only}
        given = [f"{name}={value!r}" for name, value in {**shown, **flags}.items() if value not in (None, False)]
        return f"RobustRAGSynthesizer({self._plain.metadata.model_name}, {', '.join(given)})"

    @property
    def callback_manager(self) -> CallbackManager:
        """The receiver of the synthesis events."""
        return self._callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        self._callback_manager = callback_manager

    @property
    def plain_llm(self) -> LLM:
        """The LLM without the structured wrapper."""
        return self._plain

    @property
    def group_by(self) -> GroupNodesBy:
        """The rule that puts nodes into groups."""
        return self._group_by

    @property
    def output_cls(self) -> type[BaseModel] | None:
        """The pydantic class of the final answer; None for text."""
        return self._structure

    @property
    def supporting_only(self) -> bool:
        """True if only the nodes that support the answer are shown."""
        return self._supporting_only

    @property
    def takes_asides(self) -> bool:
        """True if it answers without documents, too: it gives text, and asks a model for it."""
        return self._structure is None and self._local is None

    @property
    def streams(self) -> bool:
        """True if responses are streamed."""
        return bool(self._streaming)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._converse(self._conversation)  # threads and locks are not copied

    def with_changes(
        self: _Self,
        *,
        streaming: bool | None = None,
        conversation: Sequence[ChatMessage] | None = None,
        aside: Prompt | None = None,
        condensed: Sequence[ChatMessage] = (),
        reader: Reader | None = None,
    ) -> _Self:
        """Return a copy that streams or does not, for another reader, or with a conversation in front of every prompt.

        Args:
            streaming: True if it streams; None for what this one does.
            conversation: these messages; None for what this one has.
            aside: asked where no document answers, and so without documents; None: an abstention.
            condensed: earlier messages that are no part of prompts, but that the question was made from.
            reader: who reads the responses; None for whoever reads this one's.
        """
        changed = copy.copy(self)
        changed._streaming = self.streams if streaming is None else streaming
        changed._aside, changed._condensed = aside, tuple(condensed)
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
            nodes: the retrieved passages, best first; not trusted. None at all gives an abstention.
            additional_source_nodes: listed among the sources, not read.
            response_kwargs: `choices`, for voting.

        Raises:
            TypeError: what is no question, no node, or another argument than `choices`.
            QuorumError: too many groups failed.
            ModelError: the final call failed.
        """
        with self._synthesis(query, nodes, additional_source_nodes, response_kwargs) as made:
            if made.streams:
                made.response = StreamingResponse(self._pieces(made.plan, made.done), made.sources, made.metadata)
            else:
                made.done(run(made.plan, self._performer()))
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
            if made.streams:
                pieces = await self._apieces(made.plan, made.done)
                made.response = AsyncStreamingResponse(pieces, made.sources, made.metadata)
            else:
                made.done(await arun(made.plan, self._performer().aperform))
        return made.response

    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> RESPONSE_TEXT_TYPE:
        """Answer from bare texts, each a group of its own. The report is sent as an event (`RobustAnswerEvent`)."""
        with failures_sent():
            plan = self._plan(query_str, isolate(text_chunks), **response_kwargs)
            return self._pieces(plan, answer_sent) if self.streams else self._text_of(run(plan, self._performer()))

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> RESPONSE_TEXT_TYPE:
        """`get_response` without blocking the event loop."""
        with failures_sent():
            plan = self._plan(query_str, isolate(text_chunks), **response_kwargs)
            if self.streams:
                return await self._apieces(plan, answer_sent)
            return self._text_of(await arun(plan, self._performer().aperform))

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        shipped: PromptSet = self._settings.prompts
        shown = {"text_qa_template": self._user.isolated or shown_as_template(shipped.isolated)}
        if self._user.final is not None:
            shown["keyword_prompt"] = self._user.final
        elif self._ends_with_keywords and shipped.keyword is not None and self._user.isolated is None:
            shown["keyword_prompt"] = shown_as_template(shipped.keyword)
        return shown

    def _update_prompts(self, prompts: dict[str, BasePromptTemplate]) -> None:
        own = {key: template for key, template in prompts.items() if ":" not in key}  # others belong to other modules
        if unknown := sorted(own.keys() - USER_KEYS):
            raise ValueError(f"unknown prompts {', '.join(unknown)}; known here: {', '.join(USER_KEYS)}")
        shown = self._get_prompts()
        self._use(**{key: template for key, template in own.items() if template != shown.get(key)})

    def _use(self, **templates: BasePromptTemplate | None) -> None:
        """Set the user's templates, by the names of `USER_KEYS`."""
        given = {USER_KEYS[key]: check_template(t, key) for key, t in templates.items() if t is not None}
        user = replace(self._user, **given)
        self._prompts(user)  # raises if they cannot be filled in
        self._user = user

    def _prompts(self, user: UserPrompts) -> PromptSet:
        """Return the method's prompts with the user's templates in place, filled in anew for every answer."""
        shipped: PromptSet = self._settings.prompts
        if user.final is not None and not self._ends_with_keywords:
            raise ValueError(f"{self._method.name} aggregation has no final prompt; leave out keyword_prompt")
        task = cast(Task, getattr(self._settings, "task", "short_answer"))
        found = user.applied_to(shipped, task, self._plain, whole_answers=self._counts_whole_answers)
        if (
            self._method.needs_probabilities
            and isinstance(found.isolated, UserTemplate)
            and found.isolated.has_messages
        ):
            raise TypeError(f"{self._method.name} aggregation reads a prompt as one text; pass a PromptTemplate")
        return found

    @property
    def _counts_whole_answers(self) -> bool:
        return isinstance(self._settings, ConsensusSettings)

    @property
    def _ends_with_keywords(self) -> bool:
        return "keyword" in self._method.prompts or isinstance(self._settings, KeywordSettings)

    def _plan(
        self, query: str, groups: tuple[PassageGroup, ...], choices: Sequence[str] | None = None, **others: Any
    ) -> Plan:
        refuse_unknown(others.keys() - _OF_STOCK, ["choices"], "synthesize")
        few = few_sources_warning(groups, DEFAULT_SIMILARITY_TOP_K, "as_retriever(similarity_top_k=10)")
        plan_input = PlanInput(
            query,
            tuple(groups),
            choices if choices is not None else self._choices,
            self._rules,
            (few,) if few else (),
            self._local.codec if self._local is not None else None,
            self._caveats,
            repeats=self._repeats,
            accept_sampling=self._policy.accept_sampling,
            markers=self._markers,
            for_prompt=self._reader == "model",
        )
        plan: Plan = self._method.load().whole_plan(plan_input, self._settings_filled())
        return plan if self._aside is None else with_spending(with_aside(plan, self._aside))

    def _settings_filled(self) -> Any:
        """Return the settings, with the user's templates among the prompts."""
        if not self._user.given:
            return self._settings
        filled = replace(self._settings, prompts=self._prompts(self._user))
        if self._counts_whole_answers and self._user.has_format(self._plain):
            return replace(filled, objects=True)
        return filled

    def _performer(self) -> Performer:
        return (TextPerformer if self._local is None else DecodingPerformer)(self._model)

    def _pieces(self, plan: Plan, done: Callable[[RobustAnswer], object]) -> Generator[str, None, None]:
        """Start the answer; return a generator of its pieces, a single one for an object, that then calls `done`."""
        if self._structure is None:
            return started(AnswerStream(stream(plan, self._performer())), done)
        answer = run(plan, self._performer())
        return started(AnswerStream(piece for piece in (self._written(answer), answer)), done)

    async def _apieces(self, plan: Plan, done: Callable[[RobustAnswer], object]) -> AsyncGenerator[str, None]:
        async def whole() -> AsyncGenerator[str | RobustAnswer, None]:
            answer = await arun(plan, self._performer().aperform)
            yield self._written(answer)
            yield answer

        source = astream(plan, self._performer()) if self._structure is None else whole()
        return await astarted(AsyncAnswerStream(source), done)

    def _converse(self, conversation: Sequence[ChatMessage]) -> None:
        """Put these messages in front of every prompt."""
        self._model: Any = self._local or LLMModel(self._plain, self._policy, self._prompt_helper, conversation)
        if self._local is None and (self._writer is not None or self._structure is not None):
            writer = LLMModel(
                self._writer or self._plain, self._policy, self._prompt_helper, conversation, self._structure
            )
            self._model = TwoModels(self._model, writer)
        self._conversation = tuple(conversation)

    def _caveats(self) -> tuple[str, ...]:
        """Return the known weaknesses of every answer, from the model and the conversation."""
        condensed = conversation_caveats(self._condensed, condensed=True)
        if self._local is not None:
            return (*self._local.warnings, *_decoding_caveats(self._plain, self._conversation), *condensed)
        return (*conversation_caveats(self._conversation), *condensed)

    def _repeats(self) -> Repeats:
        """Return the model's reproducibility, as far as it is known."""
        return repeats_of(self._model)

    @contextmanager
    def _synthesis(
        self, query: QueryType, nodes: Any, others: Sequence[NodeWithScore] | None, kwargs: dict[str, Any]
    ) -> Iterator[_Synthesis]:
        """Send the events of one synthesis around the block, which sets its response."""
        if not isinstance(query, (str, QueryBundle)):
            raise TypeError(f"query must be a str or a QueryBundle, got {query!r:.60}; give the question as text")
        text, nodes = query.query_str if isinstance(query, QueryBundle) else query, checked_nodes(nodes)
        streams, payload = self.streams, dict[str, Any]({EventPayload.QUERY_STR: text})
        _dispatcher.event(SynthesizeStartEvent(query=query))
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=payload) as event, failures_sent():
            plan = self._plan(text, group_nodes(nodes, self._group_by), **kwargs)
            made = _Synthesis(self, plan, streams, nodes, others or ())
            yield made
            event.on_end(payload={EventPayload.RESPONSE: made.response})
        _dispatcher.event(SynthesizeEndEvent(query=query, response=made.response))

    def _text_of(self, answer: RobustAnswer) -> BaseModel | str:
        answer_sent(answer)
        return structured(answer, self._structure) or self._shown(answer)

    def _written(self, answer: RobustAnswer) -> str:
        found = structured(answer, self._structure)
        return answer.text if found is None else found.model_dump_json()

    def _shown(self, answer: RobustAnswer) -> str:
        return answer.marked_text if self._markers else answer.text


class _Synthesis:
    """One synthesis: its plan, and what its response shows, completed when the answer is there.

    Attributes:
        sources: the source nodes.
        metadata: their metadata, with the report.
        response: the response; of a streamed one the parts that come before the answer.
    """

    response: RESPONSE_TYPE

    def __init__(
        self,
        of: RobustRAGSynthesizer,
        plan: Plan,
        streams: bool,
        nodes: Sequence[NodeWithScore],
        others: Sequence[NodeWithScore],
    ) -> None:
        self.plan, self.streams, self._of, self._report = plan, streams, of, Report()
        self._found = [*(ReportedNode.of(node, self._report) for node in nodes), *others]
        self.sources = [] if of.supporting_only else self._found
        self.metadata = self._metadata()

    def done(self, answer: RobustAnswer) -> None:
        """Complete sources, metadata and report, and make the response, unless it is streamed already."""
        of = self._of
        if from_conversation(answer):
            self.sources.clear()
            self.metadata.clear()
        elif of.supporting_only:
            self.sources[:], answer = answer.supporting(self._found), answer.over_supporting()
            self.metadata.update(self._metadata())
        self._report.answer = answer
        answer_sent(answer)
        if self.streams:
            return
        if (found := structured(answer, of.output_cls)) is not None:
            self.response = StructuredResponse(found, self.sources, self.metadata)
        else:
            self.response = Response(of._shown(answer), self.sources, self.metadata)

    def _metadata(self) -> ResponseMetadata:
        nodes = [found.node for found in self.sources]
        return ResponseMetadata.of(self._of._get_metadata_for_response(nodes) or {}, self._report)


def _decoding_caveats(llm: LLM, conversation: Sequence[ChatMessage]) -> tuple[str, ...]:
    """Return warnings for what decoding aggregation leaves out: it asks the model itself, not the LLM around it."""
    found = []
    if llm.system_prompt:
        found.append("decoding aggregation does not read the LLM's system_prompt; put it into prompts=")
    if conversation:
        found.append("decoding aggregation does not read the conversation so far; condense it into the question")
    return tuple(found)


def _llm_of(llm: LLM | TextModel | None) -> LLM:
    if isinstance(llm, TextModel):
        return TextModelLLM(llm)
    if isinstance(llm, LLM):
        if hosted := hosted_tools(plain_llm(llm)):
            raise TypeError(
                f"the provider of {type(llm).__name__} runs {', '.join(hosted)}, and what that finds is not isolated; "
                "give an LLM without"
            )
        return llm
    if llm is not None:
        raise TypeError(
            f"llm must be a LlamaIndex LLM or a TextModel of the core, got {llm!r:.60}; give an LLM, such as "
            "OpenAI(model='...'), or a function as CallableModel(function)"
        )
    try:
        return Settings.llm
    except (ImportError, ValueError) as error:
        raise ValueError("no language model: pass llm=, or set Settings.llm") from error


def _check_kinds(output_cls: object, calls: object, callback_manager: object) -> None:
    """Raise TypeError for arguments that would otherwise fail only with the first answer."""
    if output_cls is not None and not (isinstance(output_cls, type) and issubclass(output_cls, BaseModel)):
        raise TypeError(f"output_cls must be a pydantic class, got {output_cls!r:.60}")
    if calls is not None and not isinstance(calls, CallOptions):
        raise TypeError(f"calls must be CallOptions(...), got {type(calls).__name__}")
    if callback_manager is not None and not isinstance(callback_manager, CallbackManager):
        raise TypeError(f"callback_manager must be a CallbackManager, got {callback_manager!r:.60}")
