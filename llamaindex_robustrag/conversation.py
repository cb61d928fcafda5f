"""Answers to greetings and to questions about the conversation, which no document answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llamaindex_robustrag.prompts import MessageText
from robustrag_integrations._util.errors import ModelError, TrustedError
from robustrag_integrations.answers.answer import ANSWERING, RobustAnswer
from robustrag_integrations.answers.determinism import Determinism, Repeats
from robustrag_integrations.defenses.trust import MADE_UP
from robustrag_integrations.plans.asking import ask_final
from robustrag_integrations.plans.finish import SpendingBook
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, Steps, relayed
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

_WITHOUT_DOCUMENTS = (
    "no document answers this: the reply comes from the conversation alone, without documents, and has the radius 0"
)
_INSTRUCTIONS = (
    "No document answers the last message of the user. If it is a greeting, thanks, small talk, or a question about "
    "this conversation itself, reply to it briefly, in its language, from the conversation alone. If it asks for "
    f'anything else, reply "{ABSTENTION}" and nothing more.'
)


def aside_prompt(history: Sequence[ChatMessage], message: str) -> Prompt:
    """Return the prompt for a question that no document answers: the conversation and the message alone."""
    said = [(m.role, m.content or "") for m in history if m.role in (MessageRole.USER, MessageRole.ASSISTANT)]
    return Prompt(MessageText.joined([(MessageRole.SYSTEM, _INSTRUCTIONS), *said, (MessageRole.USER, message)]))


def from_conversation(answer: RobustAnswer) -> bool:
    """True if an answer comes from the conversation, without documents."""
    return answer.evidence.get("answered_from") == "conversation"


def with_aside(plan: Plan, prompt: Prompt, *, tainted: bool) -> Plan:
    """Wrap a plan so that a reply from the conversation replaces an abstention, where no document gives any answer.

    Nothing of the documents reaches the prompt, and the reply has the radius 0. Another abstention keeps its radius if
    an attacker within it cannot silence all who answered. `tainted`: no trusted source decided some words of the
    conversation, and so of what is said of it.
    """
    held: list[Emit] = []
    book, is_streamed = SpendingBook(), False

    def relay(request: Request) -> Steps[Reply]:
        nonlocal is_streamed
        if isinstance(request, Emit) and not is_streamed:
            held.append(request)
            return None
        is_streamed |= isinstance(request, Ask) and request.is_streamed and request.role == "final"
        reply = yield request
        book.note(request, reply)
        return reply

    failed: TrustedError | None = None
    try:
        answer: RobustAnswer = yield from relayed(plan, relay)
    except TrustedError as error:
        failed, answer = error, error.robustness
    shelf = answer.trusted  # of a greeting a model makes something up, of which nothing is shown
    if shelf is not None and shelf.status not in ("silent", "empty") and shelf.error != MADE_UP:
        if failed is not None:
            raise failed
        yield from held
        return answer
    answering = sum(source.status in (*ANSWERING, "not_asked") for source in answer.sources)
    if answering or is_streamed or answer.is_withheld or not answer.abstained:
        yield from held
        return _unproved(answer) if answer.abstained and 0 < answering <= answer.radius else answer
    is_shown = answer.text == ABSTENTION  # as it comes: there is nothing else to show
    try:
        response = yield from relayed(ask_final(prompt, shown=is_shown), relay)
    except ModelError as error:
        if failed is not None:
            raise failed from error
        yield from held
        why = f"the conversation could not be asked either: {error}"
        return _unproved(replace(answer, warnings=(*answer.warnings, why)))
    answer = book.entered(replace(answer, model_calls=answer.model_calls + 1))
    text = response.text or ABSTENTION
    is_silent = is_abstention(text)
    if is_silent and failed is not None:
        raise failed
    if is_silent and is_shown:
        return replace(answer, text=text)
    if is_silent:
        yield from held
        return answer
    answer = _unproved(answer)
    if not is_shown:
        yield Emit(text)
    return replace(
        answer,
        text=text,
        abstained=False,
        decided_by="conversation" if tainted else None,
        evidence={"answered_from": "conversation"},
        warnings=(*answer.warnings, _WITHOUT_DOCUMENTS),
    )


def _unproved(answer: RobustAnswer) -> RobustAnswer:
    nothing = Determinism.of(Repeats(), None, radius=0, whole=answer.whole)
    determinism = replace(answer.determinism, scope=nothing.scope, promise=nothing.promise)
    return replace(answer, radius=0, radius_verbatim=0, determinism=determinism)
