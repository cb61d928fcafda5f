"""The factory: one changed line in a program that used `create_stuff_documents_chain`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser, StrOutputParser
from langchain_core.prompts import BasePromptTemplate

from langchain_robustrag.aggregations import Aggregation, default_prompt, default_prompts, settings_of
from langchain_robustrag.documents import DEFAULT_DOCUMENT_PROMPT, Isolation
from langchain_robustrag.language_models import as_runnable, decoding_model
from langchain_robustrag.prompts import as_langchain, check_prompt
from langchain_robustrag.questions import Question
from langchain_robustrag.runnable import RobustDocuments
from robustrag_integrations.checks import check_at_least_one
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.keywords import KeywordExtractor
from robustrag_integrations.models.base import DecodingModel
from robustrag_integrations.models.time_limits import checked_timeout
from robustrag_integrations.passages import GroupBy, check_grouping
from robustrag_integrations.prompts import Task


def create_robust_documents_chain(
    llm: LanguageModelLike | DecodingModel,
    prompt: BasePromptTemplate[Any] | None = None,
    *,
    aggregation: Aggregation = "keyword",
    group_by: GroupBy | None = None,
    group_size: int = 1,
    task: Task | None = None,
    alpha: float | Fraction | None = None,
    beta: int | None = None,
    extractor: KeywordExtractor | None = None,
    min_words: int | None = None,
    quorum: float | None = None,
    gamma: float | None = None,
    eta: float | None = None,
    max_new_tokens: int | None = None,
    stop: Sequence[str] | None = None,
    choices: Sequence[str] | None = None,
    question: Question | None = None,
    keyword_prompt: BasePromptTemplate[Any] | None = None,
    no_retrieval_prompt: BasePromptTemplate[Any] | None = None,
    max_concurrency: int = 10,
    timeout: float | None = None,
    return_robustness: bool = False,
    output_parser: BaseOutputParser[Any] | None = None,
    document_prompt: BasePromptTemplate[Any] | None = None,
    document_separator: str = "\n\n",
    document_variable_name: str = "context",
) -> RobustDocuments:
    r"""Create a chain that asks about each document alone and aggregates what it is told.

    A drop-in for `create_stuff_documents_chain`: same prompt, same input, same output. Instead of one model call with
    all documents there is one per group of documents, and one more on what the groups agree on.

    Args:
        llm: any language model Runnable, with whatever is wrapped around it (`.bind`, `.with_retry`,
            `.with_fallbacks`, ...). For decoding aggregation a `HuggingFacePipeline`, a `ChatHuggingFace` around one,
            or a `LocalModel`.
        prompt: asked about every group alone; must name `context`. It is trusted, passages are only values in it. None
            for the project's own.
        aggregation: `keyword` (any model), `decoding` (needs next-token probabilities) or `voting` (multiple choice).
        group_by: `"source"`, so that all documents with one `metadata["source"]` have one vote, or a function from a
            `Passage` (`text`, `source`, `metadata`) to a key. Documents without a key share one group.
        group_size: how many adjacent documents share a group, in place of `group_by`.
        task: `short_answer` or `long_form`.
        alpha: keyword: share of the answering groups that must say a keyword (0.3).
        beta: keyword: number of groups that is enough in any case (3).
        extractor: keyword: a function from one response to its set of keywords; None for the shipped one.
        min_words: keyword: keywords of fewer words do not count.
        quorum: keyword, voting: share of the groups that must have been asked with success (0.5).
        gamma: decoding: a group as sure as this that it does not know is left out (0.99).
        eta: decoding: a lead up to this lets the model speak from its own knowledge (0).
        max_new_tokens: decoding: the longest answer.
        stop: decoding: strings that end the answer.
        choices: voting: the options, unless each call brings its own as the input `choices`. The prompt may show them
            as `{choices}`.
        question: which input is the question: a key, or a function from the inputs. None: `input`, `question` or
            `query`, else the last human message, else the prompt's only other variable.
        keyword_prompt: the second prompt of keyword aggregation, with `keywords`, and if you like `query` and other
            inputs; never the documents.
        no_retrieval_prompt: decoding: the question without documents, with `query`.
        max_concurrency: how many model calls of this chain may be under way at a time, over all its callers; a
            `max_concurrency` in the config lowers it. A `HuggingFacePipeline` is always asked one by one.
        timeout: seconds for one call from beginning to end, None for no limit. A group that takes longer has failed.
            The model's own time-out usually is for one read: a server that trickles keeps to it for ever. A synchronous
            call cannot be stopped from outside; it is given up, and its thread ends when the model returns.
        return_robustness: give a dict of `answer` and `robustness`, the `RobustAnswer`, instead of the answer.
        output_parser: applied to the answer; default `StrOutputParser`.
        document_prompt: how a document is shown; metadata that a document lacks is left blank.
        document_separator: between two documents of one group.
        document_variable_name: under which name documents come in, and the prompt wants them.

    Returns:
        A Runnable from a dict to the answer.

    Raises:
        ValueError: the prompt lacks `context`, or a setting makes no sense; the message names it and the fix.
        TypeError: not a model, or for decoding aggregation one without next-token probabilities.

    Example:
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
    given = {
        "task": task,
        "alpha": alpha,
        "beta": beta,
        "extractor": extractor,
        "min_words": min_words,
        "quorum": quorum,
        "gamma": gamma,
        "eta": eta,
        "max_new_tokens": max_new_tokens,
        "stop": stop,
        "choices": choices,
        "keyword_prompt": keyword_prompt,
        "no_retrieval_prompt": no_retrieval_prompt,
    }
    settings = settings_of(aggregation, {name: value for name, value in given.items() if value is not None})
    check_grouping(group_size, group_by)
    check_at_least_one(max_concurrency=max_concurrency)
    if prompt is not None:
        check_prompt(prompt, document_variable_name)
    if keyword_prompt is not None:
        check_prompt(keyword_prompt, "keywords", "keyword_prompt")
        if document_variable_name in keyword_prompt.input_variables:
            raise ValueError(
                f"keyword_prompt names {document_variable_name}: it must not show documents, only the keywords that "
                "enough of them agree on"
            )
    if no_retrieval_prompt is not None and document_variable_name in no_retrieval_prompt.input_variables:
        raise ValueError(f"no_retrieval_prompt names {document_variable_name}: it is the question without documents")
    shipped = default_prompts(settings)
    if aggregation == "keyword" and keyword_prompt is None and shipped.keyword is not None:
        keyword_prompt = as_langchain(shipped.keyword)
    if aggregation == "decoding" and no_retrieval_prompt is None:
        no_retrieval_prompt = as_langchain(shipped.no_retrieval)
    return RobustDocuments(
        llm=decoding_model(llm) if aggregation == "decoding" else as_runnable(llm),
        prompt=prompt or default_prompt(settings, document_variable_name),
        aggregation=aggregation,
        settings=settings,
        isolation=Isolation(group_size, group_by, document_prompt or DEFAULT_DOCUMENT_PROMPT, document_separator),
        keyword_prompt=keyword_prompt,
        no_retrieval_prompt=no_retrieval_prompt,
        choices=check_choices(choices) if choices is not None else None,
        question=question,
        output_parser=output_parser or StrOutputParser(),
        document_variable_name=document_variable_name,
        max_concurrency=max_concurrency,
        timeout=checked_timeout(timeout),
        return_robustness=return_robustness,
    )
