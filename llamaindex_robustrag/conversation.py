"""Answers to greetings and to questions about the conversation, which no document answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llamaindex_robustrag.prompts import MessageText
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.plans.asking import ask_final
from robustrag_integrations.plans.finish import SpendingBook
from robustrag_integrations.plans.requests import Emit, Plan, Reply, Request, Steps, relayed
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

_WITHOUT_DOCUMENTS = (
    "no document answers this: the reply comes from the conversation alone, without documents, and its radius is that "
    "of finding no answer in them"
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


def with_aside(plan: Plan, prompt: Prompt) -> Plan:
    """Wrap a plan so that a reply from the conversation replaces an abstention, which is held back until then.

    Whether the documents give an answer is what the plan's radius is about, and nothing else of them reaches this
    prompt; so the radius stays. A withheld answer (`min_radius`) stays withheld.
    """
    held: list[Emit] = []
    book = SpendingBook()

    def relay(request: Request) -> Steps[Reply]:
        if isinstance(request, Emit) and request.text == ABSTENTION:
            held.append(request)
            return None
        reply = yield request
        book.note(request, reply)
        return reply

    answer: RobustAnswer = yield from relayed(plan, relay)
    if not held:
        return answer
    if not answer.abstained or "radius" in answer.evidence:
        yield held[0]
        return answer
    try:
        response = yield from relayed(ask_final(prompt), relay)
    except ModelError as error:
        yield held[0]
        return replace(answer, warnings=(*answer.warnings, f"the conversation could not be asked either: {error}"))
    answer = book.entered(replace(answer, text=response.text or ABSTENTION, model_calls=answer.model_calls + 1))
    if is_abstention(answer.text):
        return answer
    evidence = {**answer.evidence, "answered_from": "conversation"}
    return replace(answer, abstained=False, evidence=evidence, warnings=(*answer.warnings, _WITHOUT_DOCUMENTS))
