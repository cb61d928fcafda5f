"""The Runnable that answers from documents, robustly.

1. `_call` finds the question, isolates the documents into sources, and sets up the method's plan (`Defense.whole_plan`)
   with the chain's prompts, and what performs it: a model of the core, which `LangChainModel` makes of LangChain's.
2. `_answer`, `_aanswer`, `_pieces` and `_apieces` run the plan (`plans/drivers.py`); only the final call is streamed.
3. Each sends the report to callbacks, and gives the answer to the output parser.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import (
    AddableDict,
    ConfigurableFieldSpec,
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
    RunnableSerializable,
)
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.utils.pydantic import create_model
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation

from langchain_robustrag.callbacks import (
    REPORT_EVENT,
    AsyncAnswerRun,
    as_run,
    asend_report,
    attach,
    has_handlers,
    is_shown,
    send_report,
)
from langchain_robustrag.calls import CallOptions, LangChainModel, RunManager
from langchain_robustrag.documents import (
    DEFAULT_DOCUMENT_PROMPT,
    grouped,
    holds_documents,
    shelf,
    unisolated_documents,
)
from langchain_robustrag.language_models import Traits, configured, has_pipeline, is_configurable, traits_of
from langchain_robustrag.messages import history_message
from langchain_robustrag.prompts import FilledTemplate, asks_for_json, check_inputs, shown_names
from langchain_robustrag.questions import (
    Question,
    conversation_caveats,
    find_question,
    is_tainted,
    with_history_for_prompts,
)
from langchain_robustrag.structured import Structured
from robustrag_integrations._util.checks import unchecked
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError, QuorumError
from robustrag_integrations._util.words import count_of
from robustrag_integrations.answers.answer import Reader, RobustAnswer
from robustrag_integrations.defenses.base import Defense, TextDefense
from robustrag_integrations.defenses.registry import method_of
from robustrag_integrations.defenses.trust import Later
from robustrag_integrations.grouping.quotas import few_sources_warning
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import DecodingModel, TextModel, TwoModels
from robustrag_integrations.models.caller import CallLimits
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
from robustrag_integrations.plans.requests import Plan, Retrieve
from robustrag_integrations.text.prompts import (
    AGREED_CONTEXT,
    JSON_CAVEAT,
    PromptSet,
    PromptTemplate,
    agreed_context,
)

_LOG = logging.getLogger(__name__)
_DEFAULT_K = 4  # documents that LangChain's vector stores and BM25 find
_MOST_SHOWN = 1_000  # texts for people, which are known again in a history


Output = TypeVar("Output")


class OneRun(RunnableSerializable[dict[str, Any], Output]):
    """A Runnable that is one run in a trace, and takes a dict and no other arguments. Subclasses implement `_answer`,
    `_aanswer`, `_pieces` and `_apieces`, and say of which parts they are. Behind another Runnable it begins when its
    input is complete."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def _parts(self) -> list[Runnable[Any, Any]]:
        raise NotImplementedError

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """Return the graph of its parts, from which `get_prompts` reads the prompts."""
        graph = RunnableSequence(*self._parts()).get_graph(config)
        ends = (graph.first_node(), self.get_input_schema(config)), (graph.last_node(), self.get_output_schema(config))
        for node, schema in ends:
            if node is not None:
                graph.nodes[node.id] = node._replace(name=schema.__name__, data=schema)
        return graph

    def __str__(self) -> str:
        return repr(self)

    def invoke(self, input: Any, config: RunnableConfig | None = None) -> Output:  # type: ignore[override]
        """Answer once."""
        return self._call_with_config(self._answer, input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None) -> Output:  # type: ignore[override]
        """Answer once without blocking the event loop; cancelling it cancels the model calls."""
        return await self._acall_with_config(self._aanswer, input, config)

    def stream(self, input: Any, config: RunnableConfig | None = None) -> Iterator[Output]:  # type: ignore[override]
        """The aggregated answer in pieces; no isolated response is ever among them."""

        def streamed(inputs: Iterator[Any], run_manager: Any, config: RunnableConfig) -> Iterator[Output]:
            return self._pieces(next(inputs), run_manager, config)

        yield from self._transform_stream_with_config(iter([input]), streamed, config)

    async def astream(  # type: ignore[override]
        self, input: Any, config: RunnableConfig | None = None
    ) -> AsyncGenerator[Output, None]:
        """`stream` without blocking the event loop."""

        async def once() -> AsyncIterator[Any]:
            yield input

        async def streamed(inputs: Any, run_manager: Any, config: RunnableConfig) -> AsyncIterator[Output]:
            async with aclosing(self._apieces(await anext(inputs), run_manager, config)) as pieces:
                async for piece in pieces:
                    yield piece

        async for piece in self._atransform_stream_with_config(once(), streamed, config):
            yield piece

    def _answer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Output:
        raise NotImplementedError

    async def _aanswer(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Output:
        raise NotImplementedError

    def _pieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Iterator[Output]:
        raise NotImplementedError

    def _apieces(self, inputs: Any, run_manager: Any, config: RunnableConfig) -> Any:
        raise NotImplementedError


def child_config(config: RunnableConfig, run_manager: Any, tag: str) -> RunnableConfig:
    """Return the config of a child run: the chain's own, without its run name and run id."""
    return patch_config(config, callbacks=run_manager.get_child(tag))


class RobustDocuments(OneRun[Any]):
    """A Runnable that answers a question from documents; a few planted documents cannot take it over.

    Made by `create_robust_documents_chain`, which describes the settings. The input is a dict with the documents under
    `document_variable_name` and whatever the prompt names besides. Trusted documents, which are read together and
    decide (`defenses/trust.py`), come in under `trusted_context` (`trusted_` before that name); an empty list says that
    none was found. The output is the answer (a `str`, or what the output parser makes of it), with `return_robustness`
    a dict of `answer` and `robustness`.

    Every call dispatches the custom event `robustrag_report`, whose data is `RobustAnswer.to_dict()`; also when too few
    calls succeeded, or the output parser fails. Their exceptions carry the `RobustAnswer` as `robustness`.
    """

    name: str | None = "robust_documents_chain"
    llm: Any
    prompt: SkipValidation[BasePromptTemplate[Any]]
    method: str = "consensus"
    settings: Any
    document_prompt: SkipValidation[BasePromptTemplate[Any]] = DEFAULT_DOCUMENT_PROMPT
    document_separator: str = "\n\n"
    rules: SkipValidation[VoteRules] = Field(default_factory=VoteRules)
    calls: SkipValidation[CallOptions] = Field(default_factory=CallOptions, frozen=True)
    citation_markers: bool = False
    reader: Reader = "people"
    request: str = ""
    trusted_prompt: SkipValidation[BasePromptTemplate[Any] | None] = None
    keyword_prompt: SkipValidation[BasePromptTemplate[Any] | None] = None
    choices: tuple[str, ...] | None = None
    question: Question | None = None
    final_llm: Any = None
    structured: SkipValidation[Structured | None] = None
    output_parser: Runnable[Any, Any] = Field(default_factory=StrOutputParser)
    document_variable_name: str = "context"
    return_robustness: bool = False

    _limits: CallLimits = PrivateAttr()
    _shown_texts: OrderedDict[str, BaseMessage] = PrivateAttr(
        default_factory=OrderedDict
    )  # of what prompts may not hold
    _logged: bool = PrivateAttr(default=False)
    _defense: type[Defense] = PrivateAttr()
    _of_core: bool = PrivateAttr()  # the model is asked past LangChain
    _traits: Traits | None = PrivateAttr(default=None)  # None where a call's config chooses the model
    _prompts: PromptSet = PrivateAttr()
    _asked: list[tuple[BasePromptTemplate[Any], dict[str, str]]] = PrivateAttr()  # prompts, and what plans fill in
    _held: dict[str, Any] = PrivateAttr()  # values that prompts hold already
    _shown_names: frozenset[str] = PrivateAttr()
    _format_caveats: tuple[str, ...] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Set up what lives as long as the chain: the cap on calls, and all that no input changes."""
        models = [llm for llm in (self.llm, self.final_llm) if llm is not None]
        one_by_one = any(map(has_pipeline, models))  # transformers' tokenizers are not thread-safe
        self._limits = CallLimits(1 if one_by_one else self.calls.max_concurrency, self.calls.timeout)
        method = method_of(self.method)
        self._defense = method.load()
        self._of_core = isinstance(self.llm, (TextModel, DecodingModel))
        if not self._of_core and not is_configurable(self.llm):
            self._traits = traits_of(self.llm)
        self._prompts = self._unfilled_prompts()
        given = dict.fromkeys(("query", "choices") if method.takes_choices else ("query",), "")
        self._asked = [(self.prompt, {**given, self.document_variable_name: ""})]
        if self.keyword_prompt is not None:
            self._asked.append((self.keyword_prompt, {**given, "keywords": ""}))
        prompts = [prompt for prompt, _ in self._asked]
        self._held = {name: value for prompt in prompts for name, value in prompt.partial_variables.items()}
        self._shown_names = shown_names(*prompts) | self._held.keys()
        wants_json = bool(self.request) and self.structured is None and asks_for_json(self.prompt)
        self._format_caveats = (JSON_CAVEAT.format("output_schema="),) if wants_json else ()

    def __repr__(self) -> str:
        report = ", return_robustness=True" if self.return_robustness else ""
        return f"RobustDocuments({self._model_name}, method={self.method!r}, prompt={self.prompt.get_name()}{report})"

    @property
    def _model_name(self) -> str:
        return self.llm.description if isinstance(self.llm, TextModel) else type(self.llm).__name__

    def _parts(self) -> list[Runnable[Any, Any]]:
        prompt: Runnable[Any, Any] = self.prompt
        if self.trusted_prompt is not None:
            prompt = RunnableParallel({"isolated": prompt, "trusted": self.trusted_prompt})
        llm = RunnableLambda(lambda asked: asked, name=self._model_name) if self._of_core else self.llm
        parts = [RunnablePassthrough.assign(**{self.document_variable_name: self.document_prompt}), prompt, llm]
        if self.structured is not None or self.method == "keyword":
            parts += [self.keyword_prompt or self.prompt, self.final_llm or llm]
        return parts if self.structured is not None else [*parts, self.output_parser]

    @property
    def _trusted_name(self) -> str:
        """The input under which trusted documents come in."""
        return f"trusted_{self.document_variable_name}"

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of prompts, models and output parser."""
        parts = [self.prompt, self.keyword_prompt, self.llm, self.final_llm, self.output_parser]
        return get_unique_config_specs(s for p in parts if isinstance(p, Runnable) for s in p.config_specs)

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the input: the documents, and the prompt's other inputs."""
        asked = {"query": "input" if self.question is None else self.question}
        named = [asked.get(n, n) for n in self.prompt.input_variables if n != self.document_variable_name]
        fields: dict[str, Any] = {self.document_variable_name: (list[Document], ...)}
        fields |= {name: (self.prompt.input_types.get(name, str), ...) for name in named if isinstance(name, str)}
        return create_model("RobustDocumentsInput", **fields)

    @property
    def OutputType(self) -> Any:
        """The type of the answer; of a dict with the report, `get_output_schema` has the types."""
        return dict[str, Any] if self.return_robustness else self._answer_type

    @property
    def _answer_type(self) -> Any:
        if self.structured is not None:
            return self.structured.type
        with suppress(TypeError):  # a function, whose type nobody knows
            return self.output_parser.OutputType
        return Any

    def get_output_schema(self, config: RunnableConfig | None = None) -> Any:
        """Return the schema of the output: the answer, or a dict of it and the report."""
        if not self.return_robustness:
            return super().get_output_schema(config)
        return create_model("RobustDocumentsOutput", answer=(self._answer_type, ...), robustness=(RobustAnswer, ...))

    def _answer(self, inputs: Any, run_manager: RunManager, config: RunnableConfig) -> Any:
        plan, performer, question = self._call(inputs, run_manager, config)
        try:
            if is_shown(run_manager, config):
                pieces = AnswerStream(stream(plan, performer))
                for _ in as_run(pieces, run_manager, question):
                    pass
                answer = pieces.answer
            else:
                answer = run(plan, performer)
        except ModelError as error:
            send_report(error.robustness, config)
            _raise_own_failure(error)
        send_report(answer, config)
        self._told(answer, config)
        with _attached(answer):
            if self.structured is not None:
                return self._given(self.structured.loaded(answer), answer)
            parser_config = child_config(config, run_manager, "parse")
            return self._given(self.output_parser.invoke(self._shown(answer), parser_config), answer)

    async def _aanswer(self, inputs: Any, run_manager: RunManager, config: RunnableConfig) -> Any:
        plan, performer, question = self._call(inputs, run_manager, config)
        try:
            if is_shown(run_manager, config):
                pieces = AsyncAnswerStream(astream(plan, performer))
                async for _ in AsyncAnswerRun(pieces, run_manager, question):
                    pass
                answer = pieces.answer
            else:
                answer = await arun(plan, performer.aperform)
        except ModelError as error:
            await asend_report(error.robustness, config)
            _raise_own_failure(error)
        await asend_report(answer, config)
        self._told(answer, config)
        with _attached(answer):
            if self.structured is not None:
                return self._given(self.structured.loaded(answer), answer)
            if type(self.output_parser) is StrOutputParser and not has_handlers(config):
                return self._given(self._shown(answer), answer)  # `ainvoke` takes a thread
            parser_config = child_config(config, run_manager, "parse")
            return self._given(await self.output_parser.ainvoke(self._shown(answer), parser_config), answer)

    def _pieces(self, inputs: Any, run_manager: RunManager, config: RunnableConfig) -> Iterator[Any]:
        plan, performer, question = self._call(inputs, run_manager, config)
        pieces = AnswerStream(stream(plan, performer))
        texts = as_run(pieces, run_manager, question) if is_shown(run_manager, config) else pieces
        try:
            parser_config = child_config(config, run_manager, "parse")
            for piece in texts if self.structured else self.output_parser.transform(texts, parser_config):
                if self.structured is None:
                    yield AddableDict(answer=piece) if self.return_robustness else piece
            if self.structured is not None:  # in one piece
                parsed = self.structured.loaded(pieces.answer)
                yield AddableDict(answer=parsed) if self.return_robustness else parsed
            answer = pieces.answer
        except ModelError as error:
            send_report(error.robustness, config)
            _raise_own_failure(error)
        except Exception as error:
            for _ in texts:  # the parser has failed, or the stream, which then has no answer
                pass
            with suppress(RuntimeError):
                attach(error, pieces.answer)
                send_report(pieces.answer, config)
            raise
        send_report(answer, config)
        self._told(answer, config)
        if self.return_robustness:
            yield AddableDict(robustness=answer)

    async def _apieces(self, inputs: Any, run_manager: RunManager, config: RunnableConfig) -> AsyncIterator[Any]:
        plan, performer, question = self._call(inputs, run_manager, config)
        pieces = AsyncAnswerStream(astream(plan, performer))
        texts = AsyncAnswerRun(pieces, run_manager, question) if is_shown(run_manager, config) else pieces
        try:
            parser_config = child_config(config, run_manager, "parse")
            async for piece in texts if self.structured else self.output_parser.atransform(texts, parser_config):
                if self.structured is None:
                    yield AddableDict(answer=piece) if self.return_robustness else piece
            if self.structured is not None:
                parsed = self.structured.loaded(pieces.answer)
                yield AddableDict(answer=parsed) if self.return_robustness else parsed
            answer = pieces.answer
        except ModelError as error:
            await asend_report(error.robustness, config)
            _raise_own_failure(error)
        except Exception as error:
            async for _ in texts:
                pass
            with suppress(RuntimeError):
                attach(error, pieces.answer)
                await asend_report(pieces.answer, config)
            raise
        finally:
            await texts.aclose()
            await pieces.aclose()
        await asend_report(answer, config)
        self._told(answer, config)
        if self.return_robustness:
            yield AddableDict(robustness=answer)

    def _call(self, inputs: Any, run_manager: RunManager, config: RunnableConfig) -> tuple[Plan, Performer, str]:
        """Check the input, isolate the documents, and set up the plan, with what performs it and the question."""
        name = self.document_variable_name
        if not isinstance(inputs, Mapping) or name not in inputs:
            got = sorted(map(str, inputs)) if isinstance(inputs, Mapping) else type(inputs).__name__
            raise KeyError(f"the input must be a dict with the documents under {name!r}; got {got}")
        documents, shelf_name = inputs[name], self._trusted_name
        for other in inputs.keys() - {name, shelf_name}:
            if str(other).startswith("trusted") and holds_documents(inputs[other]):
                raise KeyError(f"trusted documents come in as {shelf_name!r}; got {printable(str(other), 60)!r}")
        given = self.with_history({k: v for k, v in inputs.items() if k not in (name, self._trusted_name)})
        question = find_question(inputs, self.question, self.prompt, name)
        for prompt, of_plan in self._asked:
            check_inputs(prompt, {**given, **of_plan})
        shown = {key: value for key, value in {**self._held, **given}.items() if key in self._shown_names}
        model = self.llm if self._of_core else self._bound(self.llm, self._traits, config, run_manager)
        if self.final_llm is not None or self.structured is not None:
            writer = self.llm if self.final_llm is None else self.final_llm
            model = TwoModels(model, self._bound(writer, None, config, run_manager, self.structured))
        known = PlanInput(
            question,
            model=model,
            rules=self.rules,
            choices=inputs.get("choices", self.choices) if "choices" in self._asked[0][1] else None,
            caveats=(
                *self._format_caveats,
                *conversation_caveats(given, shown, self.prompt),
                *unisolated_documents(shown, name),
            ),
            accept_sampling=self.calls.accept_sampling,
            markers=self.citation_markers,
            for_prompt=self.reader == "model",
            conversation=is_tainted(
                {key: value for key, value in inputs.items() if key != name},
                shown,
                condensed=isinstance(documents, Later) and documents.condensed,
            ),
            objects=self.structured is not None,
        )

        def beside(documents: Any) -> PlanInput:
            """Return what the plan is told of the documents that are asked one by one."""
            sources = grouped(documents, self.rules, self.document_prompt, self.document_separator)
            few = few_sources_warning(sources, _DEFAULT_K, 'as_retriever(search_kwargs={"k": 10})')
            return replace(known, sources=sources, caveats=(*([few] if few else []), *known.caveats))

        named = vars(self._prompts).items()
        filled = {key: unchecked(t, inputs=given) for key, t in named if isinstance(t, FilledTemplate)}
        settings = unchecked(self.settings, prompts=unchecked(self._prompts, **filled))
        if self._trusted_name not in inputs:
            plan = self._defense.whole_plan(beside(documents), settings)
        else:
            trusted = replace(
                known, sources=shelf(inputs[self._trusted_name], self.document_prompt, self.document_separator)
            )
            others = documents.request(beside) if isinstance(documents, Later) else Retrieve(lambda: beside(documents))
            plan = self._defense.trusted_plan(trusted, settings, others)
        if isinstance(model, DecodingModel) and not issubclass(self._defense, TextDefense):
            return plan, DecodingPerformer(model), question
        return plan, TextPerformer(model), question

    def _bound(
        self,
        llm: Any,
        traits: Traits | None,
        config: RunnableConfig,
        run_manager: RunManager,
        structured: Structured | None = None,
    ) -> LangChainModel:
        """Return a model as this config chooses it; its calls belong to this run."""
        if traits is None:
            llm = configured(llm, config)
            traits = traits_of(llm)
        return LangChainModel(llm, traits, self._limits, self.calls.attempts, config, run_manager, structured)

    def with_history(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs with the conversations among them as prompts may hold them, however they were stored."""
        return with_history_for_prompts(inputs, self._shown_texts)

    def _given(self, parsed: Any, answer: RobustAnswer) -> Any:
        return {"answer": parsed, "robustness": answer} if self.return_robustness else parsed

    def _told(self, answer: RobustAnswer, config: RunnableConfig) -> None:
        """Note what was shown that no prompt may hold: programs store it in histories as it is.

        Log once that nothing receives the report of an answer with warnings, whose text a log must not hold.
        """
        if (text := self._shown(answer)) != (held := history_message(answer)).text:
            self._shown_texts[text] = held
            if len(self._shown_texts) > _MOST_SHOWN:
                self._shown_texts.popitem(last=False)
        if self._logged or self.return_robustness or not answer.warnings or has_handlers(config):
            return
        self._logged = True
        _LOG.warning(
            "answer has radius %d and %s, but nothing receives the report. Set return_robustness=True or add a "
            "callback for %s. Logged once per chain",
            answer.radius,
            count_of(len(answer.warnings), "warning"),
            REPORT_EVENT,
        )

    def _shown(self, answer: RobustAnswer) -> str:
        return answer.shown(markers=self.citation_markers, to=self.reader)

    def _unfilled_prompts(self) -> PromptSet:
        """Return the chain's prompts in the core's form, without inputs."""
        name, settings = self.document_variable_name, self.settings

        def filled(
            template: BasePromptTemplate[Any] | None, slot: str, body: str, request: str = "", *, leads: bool = False
        ) -> PromptTemplate:
            field = body.partition("{")[2].partition("}")[0]
            return FilledTemplate(
                "",
                body,
                (field,),
                template=template or self.prompt,
                inputs={},
                slot=slot,
                request=request,
                leads=leads,
                as_text=self._of_core,
            )

        asks = "" if self.trusted_prompt is not None or settings.silence_request == "none" else settings.silence_request
        trusted = filled(self.trusted_prompt, name, "{context}", asks, leads=True)
        changes: dict[str, Any] = {"isolated": filled(self.prompt, name, "{context}", self.request), "trusted": trusted}
        if getattr(settings, "objects", False):
            changes["object"] = filled(self.prompt, name, AGREED_CONTEXT)
        if self.keyword_prompt is not None:
            changes["keyword"] = filled(self.keyword_prompt, "keywords", "{keywords}")
        elif self.method == "keyword":
            changes["keyword"] = filled(self.prompt, name, agreed_context(settings.task))
        shipped: PromptSet = settings.prompts
        return replace(shipped, phrases=None, **changes)


@contextmanager
def _attached(answer: RobustAnswer) -> Iterator[None]:
    """Attach the answer to what a parser raises in the block."""
    try:
        yield
    except Exception as error:
        attach(error, answer)
        raise


def _raise_own_failure(error: ModelError) -> NoReturn:
    """Raise the model's own exception for a final call, and where every source failed alike: retries and fallbacks
    choose by its class. A note says what failed."""
    cause = error.__cause__
    if not isinstance(cause, Exception) or (isinstance(error, QuorumError) and not error.failed_alike):
        raise error from cause
    attach(cause, error.robustness)
    note = printable(str(error), 300)
    if isinstance(error, QuorumError) and sys.version_info >= (3, 11) and note not in getattr(cause, "__notes__", ()):
        cause.add_note(note)
    raise cause from cause.__cause__
