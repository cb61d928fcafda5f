"""The factory: one changed line in a program that used `create_stuff_documents_chain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser, StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig

from langchain_robustrag.calls import CallOptions
from langchain_robustrag.documents import DEFAULT_DOCUMENT_PROMPT
from langchain_robustrag.language_models import AnyModel, as_runnable, decoding_model
from langchain_robustrag.prompts import as_langchain, check_prompt
from langchain_robustrag.questions import Question
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.structured import Structured, refuse_structured
from robustrag_integrations._util.checks import check_flag, refuse_misspelt
from robustrag_integrations.answers.answer import Reader, checked_reader
from robustrag_integrations.defenses.options import MethodName, MethodOptions
from robustrag_integrations.defenses.registry import method_for, rules_and_settings
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.grouping.passages import GroupBy
from robustrag_integrations.grouping.votes import RULES, VoteRules
from robustrag_integrations.models.base import TextModel

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RobustOptions(MethodOptions, total=False):
    """The keyword arguments that every factory takes; `create_robust_documents_chain` describes and checks them."""

    method: MethodName | None
    group_by: GroupBy | None
    votes: VoteRules | None
    calls: CallOptions | None
    citation_markers: bool
    reader: Reader
    choices: Sequence[str] | None
    question: Question | None
    final_llm: LanguageModelLike | None
    output_schema: Any
    output_parser: BaseOutputParser[Any] | None
    document_prompt: BasePromptTemplate[Any] | None
    document_separator: str
    document_variable_name: str


def create_robust_documents_chain(
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    method: MethodName | None = None,
    group_by: GroupBy | None = None,
    votes: VoteRules | None = None,
    calls: CallOptions | None = None,
    citation_markers: bool = False,
    reader: Reader = "people",
    choices: Sequence[str] | None = None,
    question: Question | None = None,
    final_llm: LanguageModelLike | None = None,
    output_schema: Any = None,
    return_robustness: bool = False,
    output_parser: BaseOutputParser[Any] | None = None,
    document_prompt: BasePromptTemplate[Any] | None = None,
    document_separator: str = "\n\n",
    document_variable_name: str = "context",
    **options: Unpack[MethodOptions],
) -> RobustDocuments:
    r"""Create a chain that asks about each document alone and aggregates the replies.

    A drop-in for `create_stuff_documents_chain`: same prompt, same input, same output. Instead of one model call with
    all documents there is one per source of documents.

    Args:
        llm: any language model Runnable, with whatever is wrapped around it (`.bind`, `.with_retry`,
            `.with_fallbacks`, ...). A model of the core, such as a `LocalModel`, is asked past LangChain: all sources
            in one batch, with limits of its own. Decoding aggregation needs one with next-token probabilities.
        prompt: asked about every source alone; must name `context`. For consensus a sentence at its end asks each for a
            short answer; keyword aggregation asks it once more, with what was agreed on in the place of the
            documents. About trusted documents it is asked as it is, behind one sentence (`silence_request`). None for
            the project's own.
        method: `consensus` (any model, short answers from one round of calls), `keyword` (any model,
            long answers, too), `decoding` (needs next-token probabilities) or `voting` (multiple choice). None:
            consensus, and voting where there are `choices`; no setting chooses another one.
        group_by: the unit of one vote: `"origin"` (default: one file or page, as `metadata` says under `file_path`,
            `source`, `url`, ...), `"site"` (one registrable domain), `"passage"` (each document), any other name of a
            metadata entry (`"author"`), or a function from a `Passage` (`text`, `source`, `metadata`) to a key.
            Documents without one share a vote; where none has an origin, each has its own, and a warning says so.
        votes: the rules of voting; single ones may also be given by themselves.
        calls: limits and retries of the model's calls.
        citation_markers: the answer has `[1]` where the documents that the report's `citations` number 1
            support it; none is the model's. It is then streamed in one piece, and the report's `text` has no markers.
        reader: who reads the answer. `"people"` are also shown what sources say where they agree on nothing, and what a
            sole source says; for `"model"`, whose next prompt the answer goes into, these are abstentions.
        choices: voting: the options, unless each call brings its own as the input `choices`. The prompt may show them
            as `{choices}`.
        question: the input that is the question: a key, or a function from the inputs. None: `input`, `question` or
            `query`, else the last human message, else the prompt's only other variable.
        final_llm: another model for the final prompt, which shows no documents; the radius needs both to be
            deterministic.
        output_schema: a pydantic class, a `TypedDict` or a JSON schema for the final answer alone, by the model's own
            structured output where it has one. For consensus it is the model's reading of the agreed answer. An
            abstention is an `Abstained`: false as a truth value, and a dict with
            `abstained` for schemas that give dicts. The report's text is the answer's JSON.
        return_robustness: give a dict of `answer` and `robustness`, the `RobustAnswer`, instead of the answer.
        output_parser: applied to the answer; default `StrOutputParser`.
        document_prompt: the template of one document; metadata that a document lacks is left blank.
        document_separator: between two documents of one source.
        document_variable_name: under which name documents come in, and the prompt wants them; trusted ones come in as
            `trusted_context` (`trusted_` before this name), and stand in the same place of the prompt.
        options: `task`, and the settings of the method, such as `min_support` of consensus;
            `help(robustrag_integrations.ConsensusAggregation)` and the like describe them.

    Raises:
        ValueError: the prompt lacks `context`, or a setting is invalid; the message names it and the fix.
        TypeError: not a model, or for decoding aggregation one without next-token probabilities.

    Examples:
        ```python
        from langchain_core.documents import Document
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_robustrag import create_robust_documents_chain

        prompt = ChatPromptTemplate.from_template("Answer from {context}. Question: {input}")
        chain = create_robust_documents_chain(FakeListChatModel(responses=["Paris"]), prompt)
        documents = [Document("Paris is the capital of France.")] * 5
        chain.invoke({"input": "Capital of France?", "context": documents})
        # 'Paris'
        ```
    """
    rules, settings = rules_and_settings({**options, "group_by": group_by}, votes)
    entry = method_for(method, settings.get("task"), choices)
    besides = {"choices": choices, "output_schema": output_schema}
    given = [name for name, value in besides.items() if value is not None]
    names = [*settings, *(name for name in options if name not in RULES), *given]
    entry.check_names(names, ["task", *sorted(entry.further & besides.keys())], near=_ARGUMENTS, instead=_ELSEWHERE)
    checked: Any = entry.load().settings_of(**settings)
    if output_schema is not None:
        if checked.task == "list" or output_parser is not None:
            raise ValueError(
                "output_schema takes no output_parser, and no task='list': the items are the report's claims"
            )
        always = {"objects": True} if entry.name == "consensus" else {"final": "always"}
        checked = replace(checked, **always)
    elif final_llm is not None and entry.name != "keyword":
        raise ValueError(f"final_llm is unused: {entry.name} makes no final call without output_schema")
    checked_reader(reader)
    entry.load().check_rules(rules)
    if not isinstance(calls := calls or CallOptions(), CallOptions):
        raise TypeError(f"calls must be CallOptions(...), got {type(calls).__name__}")
    check_flag(citation_markers=citation_markers, return_robustness=return_robustness)
    name, shipped = document_variable_name, checked.prompts
    if prompt is not None:
        check_prompt(prompt, name, never=f"trusted_{name}")
    request = "" if prompt is None else checked.request
    trusted_prompt = as_langchain(shipped.trusted, name) if prompt is None and shipped.trusted else None
    keyword_prompt = None
    if prompt is None:
        is_keyword = entry.name == "keyword"
        prompt = as_langchain((shipped.phrases if is_keyword else None) or shipped.isolated, name)
        if is_keyword and shipped.keyword is not None:
            keyword_prompt = as_langchain(shipped.keyword)
    refuse_structured(llm)
    refuse_structured(final_llm, "final_llm")
    writer = None if final_llm is None else as_runnable(final_llm, "final_llm")
    of_core = isinstance(llm, TextModel) and final_llm is None and output_schema is None
    return RobustDocuments(
        llm=decoding_model(llm) if entry.needs_probabilities else llm if of_core else as_runnable(llm),
        final_llm=writer,
        structured=None if output_schema is None else Structured.of(output_schema, writer or as_runnable(llm)),
        prompt=prompt,
        method=entry.name,
        settings=checked,
        document_prompt=document_prompt or DEFAULT_DOCUMENT_PROMPT,
        document_separator=document_separator,
        rules=rules,
        calls=calls,
        citation_markers=citation_markers,
        reader=reader,
        request=request,
        trusted_prompt=trusted_prompt,
        keyword_prompt=keyword_prompt,
        choices=check_choices(choices) if choices is not None else None,
        question=question,
        output_parser=output_parser or StrOutputParser(),
        document_variable_name=name,
        return_robustness=return_robustness,
    )


_ARGUMENTS = tuple(
    name for name in signature(create_robust_documents_chain).parameters if name not in ("llm", "options")
)


_OF_RETRIEVERS = "set it on the retriever: as_retriever(search_kwargs={'k': 10})"
_OF_MODELS = "it belongs to the model: set it there"
_ELSEWHERE = {  # what to write for arguments that are others' of LangChain
    **dict.fromkeys(("k", "search_kwargs"), _OF_RETRIEVERS),
    **dict.fromkeys(("temperature", "model"), _OF_MODELS),
    "chain_type": "there is one way: each source is asked by itself",
    "return_source_documents": "leave it out, a retrieval chain gives them as 'context'",
    **dict.fromkeys(RunnableConfig.__annotations__, "it goes into the config: chain.invoke(inputs, config={...})"),
    **{field.name: f"write calls=CallOptions({field.name}=...)" for field in fields(CallOptions)},
}


def create_reporting_chain(
    llm: AnyModel,
    prompt: BasePromptTemplate[Any] | None,
    options: RobustOptions,
    own: Sequence[str] = (),
    *,
    read_by_model: bool = False,
) -> RobustDocuments:
    """Create the chain inside retrieval chain, tool, middleware and node, which always give the report.

    `own` are the keyword arguments of these, one of which may have been meant.
    """
    refuse_misspelt(options, own, RobustOptions.__annotations__)
    if read_by_model:
        if options.get("reader", "model") == "people":
            raise ValueError("reader='people': a model reads these answers; leave reader out")
        options = {**options, "reader": "model"}
    if "return_robustness" in options:
        raise TypeError("unknown argument 'return_robustness': leave it out, the report is always given here")
    return create_robust_documents_chain(llm, prompt, return_robustness=True, **options)
