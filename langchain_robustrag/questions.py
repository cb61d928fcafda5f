"""Finds the question among a chain's inputs, and the conversation around it, as a history-aware retriever uses both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.prompts import BasePromptTemplate

from langchain_robustrag.callbacks import Heard
from langchain_robustrag.messages import for_prompts, is_trusted, mark_of
from langchain_robustrag.prompts import as_text, shown_names
from robustrag_integrations._util.words import conversation_warnings

QUESTION_KEYS = ("input", "question", "query")
STANDALONE = "standalone_question"
_HISTORIES = ("chat_history", "history")  # names of conversations as one text, as LangChain's memories give them
Question = str | Callable[[Mapping[str, Any]], str]


def question_inputs(question: str) -> dict[str, Any]:
    """Return a question under every name by which a prompt may ask for it."""
    return dict.fromkeys(QUESTION_KEYS, question)


def under_every_name(inputs: Mapping[str, Any], chosen: Question | None = None) -> dict[str, Any]:
    """Return inputs with the question under every name by which a prompt may ask for it, unless it is `chosen`."""
    known = usual_question(inputs) if chosen is None else None
    return dict(inputs) if known is None else {**question_inputs(known), **inputs}


def asking_alone(inputs: dict[str, Any], prompt: BasePromptTemplate[Any]) -> dict[str, Any]:
    """Return inputs that ask the question as it stands alone, if they have it and the prompt shows no conversation."""
    alone, shown = inputs.get(STANDALONE), shown_names(prompt) - {"query"}  # which is a text anyway
    if not isinstance(alone, str) or not alone.strip() or shown & history_names(inputs):
        return inputs
    return {**inputs, **question_inputs(alone)}


def find_question(
    inputs: Mapping[str, Any],
    chosen: Question | None = None,
    prompt: BasePromptTemplate[Any] | None = None,
    context: str = "",
) -> str:
    """Find the question of one call.

    In this order: `chosen` (an input key, or a function from the inputs); the input `input`, `question` or `query`; the
    last human message among the inputs; the prompt's only other variable than `context`. A prompt with no other
    variable is a task in itself, and its own words are the question.
    """
    others = [] if prompt is None else [name for name in prompt.input_variables if name != context]
    if chosen is not None:
        found: str | None = _chosen(inputs, chosen)
    else:
        found = usual_question(inputs, others if len(others) == 1 else ())
        if found is None and prompt is not None and not others:
            found = as_text(prompt.format_prompt(**{context: ""})).strip()
    if found is None:
        raise ValueError(
            f"cannot tell which input is the question among {sorted(map(str, inputs))}; name it: question='...'"
        )
    if not found.strip():
        raise ValueError("the question is empty; ask something")
    return found


def usual_question(inputs: Mapping[str, Any], others: Sequence[str] = ()) -> str | None:
    """Return the question from its usual input, or from another one; None where there is none."""
    values = map(inputs.get, (*QUESTION_KEYS, "messages", *others))
    texts = (value if isinstance(value, str) else last_human_text(value) for value in values if value is not None)
    return next((text for text in texts if text is not None), None)


def last_human_text(messages: Any) -> str | None:
    """Return the text of the last human message of a list, of objects, pairs or dicts; None where there is none."""
    humans = (str(message.text) for message in reversed(_messages_of(messages)) if isinstance(message, HumanMessage))
    return next(humans, None)


def _messages_of(value: Any) -> list[BaseMessage]:
    """Return the messages of a list of objects, pairs or dicts, or a single message; none where there are none."""
    if isinstance(value, BaseMessage):
        return [value]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    try:
        return convert_to_messages(value)
    except (NotImplementedError, ValueError):  # such as pairs of texts that are no messages
        return []


def _chosen(inputs: Mapping[str, Any], chosen: Question) -> str:
    if isinstance(chosen, str) and chosen not in inputs:
        raise KeyError(f"the question was to be the input {chosen!r}; got {sorted(map(str, inputs))}")
    value = inputs[chosen] if isinstance(chosen, str) else chosen(inputs)
    text = value if isinstance(value, str) else last_human_text(value)
    if text is None:
        raise TypeError(f"the question must be a str or messages, got {type(value).__name__} from question={chosen!r}")
    return text


def history_names(inputs: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the inputs that hold a conversation."""
    return frozenset(name for name, value in inputs.items() if _is_conversation(value))


def with_history_for_prompts(inputs: Mapping[str, Any], shown: Mapping[str, BaseMessage]) -> dict[str, Any]:
    """Return the inputs with every conversation among them as prompts may hold it (`for_prompts`)."""

    def held(item: Any) -> Any:
        said = _messages_of([item])
        masked = for_prompts(said, shown)
        return item if masked == said else masked[0]

    return {**inputs, **{name: list(map(held, inputs[name])) for name in history_names(inputs)}}


def conversation_caveats(
    inputs: Mapping[str, Any], shown: Mapping[str, Any], prompt: BasePromptTemplate[Any]
) -> list[str]:
    """Return warnings for conversations: one that the prompt does not show, forgotten or condensed into the question;
    and earlier answers and tool results among the inputs that prompts show."""
    found = []
    if unseen := sorted(history_names(inputs) - {"messages", *prompt.input_variables, *prompt.optional_variables}):
        found.append(
            f"the question was condensed from the conversation in {unseen[0]!r}: the radius is about the passages of "
            "this question, given what was said before"
            if STANDALONE in inputs
            else f"the prompt does not show the conversation in {unseen[0]!r}, so a question that refers to it cannot "
            "be understood: show it in the prompt, or have create_history_aware_retriever condense the question and "
            "pass its retriever to create_robust_retrieval_chain"
        )
    held = [v for v in shown.values() if isinstance(v, BaseMessage) or _is_conversation(v)]
    if said := [message for value in held for message in _messages_of(value)]:
        answers = sum(isinstance(message, AIMessage) and bool(message.text) for message in said)
        results = sum(isinstance(message, (ToolMessage, FunctionMessage)) for message in said)
        found += conversation_warnings(answers, results)
    return found


def is_tainted(inputs: Mapping[str, Any], shown: Mapping[str, Any], *, condensed: bool) -> bool:
    """True if prompts show, or the question was condensed from, words of assistants or tools that no trusted source
    decided. What an assistant says before the first human message is the program's, unless it is an answer of ours. A
    system message is the program's among its `messages`, and in a history what a memory made of answers.
    """
    named = {*shown, *(history_names(inputs).union(_HISTORIES) if condensed or STANDALONE in inputs else ())}
    held = {name: inputs[name] for name in named if name in inputs}
    if any(isinstance(held.get(name), str) and held[name].strip() for name in _HISTORIES):
        return True
    said = {name: value for name, value in held.items() if isinstance(value, BaseMessage) or _is_conversation(value)}
    return any(_holds_untrusted_words(_messages_of(value), name == "messages") for name, value in said.items())


def _holds_untrusted_words(messages: Sequence[BaseMessage], of_program: bool) -> bool:
    asked = False
    for message in messages:
        asked |= isinstance(message, HumanMessage)
        summarised = message.additional_kwargs.get("lc_source") == "summarization"  # by LangChain's middleware
        if isinstance(message, (ToolMessage, FunctionMessage)) or summarised:
            return True
        if isinstance(message, SystemMessage) and not of_program:
            return True
        if isinstance(message, AIMessage) and message.text and (asked or mark_of(message)) and not is_trusted(message):
            return True
    return False


def standing_alone(inputs: Mapping[str, Any], heard: Heard) -> str | None:
    """Return the standalone question, condensed from the user's and the conversation; None if there was none."""
    if not history_names(inputs) or len(heard.queries) != 1:
        return None
    [query] = heard.queries
    return query if query.strip() and query != usual_question(inputs) else None


def _is_conversation(value: Any) -> bool:
    """True for a sequence of messages: objects, pairs of role and text, or dicts of them."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(
        isinstance(item, BaseMessage)
        or (isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item))
        or (isinstance(item, Mapping) and "role" in item and "content" in item)
        for item in value
    )
