"""Hostile text on its way into a local model."""

from __future__ import annotations

from functools import cache
from typing import Any

from robustrag_integrations.models.local.encoding import PromptEncoder
from robustrag_integrations.reader import reader_path
from robustrag_integrations.text.prompts import Prompt, prompts_for
from tests.fuzz.hostile import text
from tests.fuzz.source import Source, Target


@cache
def _tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(reader_path()))


@cache
def _encoder() -> PromptEncoder:
    return PromptEncoder(_tokenizer(), chat=False)


def encoding(source: Source) -> None:
    """No passage spells a special token, none makes its prompt longer than the budget allows; places cost no token."""
    context, query = text(source, 8, 3000), text(source, 3, 300)
    prompt = prompts_for("short_answer").isolated.render(context=context, query=query)
    encoder, budget = _encoder(), source.between(1, 64)
    whole, cut = encoder.encode(prompt), encoder.encode(prompt, budget)
    assert not set(whole.ids) & set(_tokenizer().all_special_ids)
    assert len(cut.ids) <= encoder.frame_length(prompt) + budget
    assert cut.truncated == (len(whole.ids) > len(cut.ids)) or cut.truncated
    if not cut.truncated:
        assert cut.ids == whole.ids
    encoder.encode(Prompt(context))
    assert encoder._read([context]) == [encoder._read_with_places(context)[0]]


TARGETS = (Target("encoding", encoding, 2),)
