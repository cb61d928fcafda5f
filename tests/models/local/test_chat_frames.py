"""Chat templates that reason: hand-written ones on the bundled reader's tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from robustrag_integrations import DecodingAggregation, KeywordAggregation, LocalModel, ModelError  # noqa: E402
from robustrag_integrations.models.local.encoding import chat_frame  # noqa: E402
from robustrag_integrations.reader import reader_path  # noqa: E402
from robustrag_integrations.replies.reading import counted  # noqa: E402
from robustrag_integrations.text.prompts import Prompt  # noqa: E402

USER = "{% for m in messages %}<user>{{ m.content }}</user>{% endfor %}{% if add_generation_prompt %}<bot>"
CLOSED = "<think>\n\n</think>\n\n"
SWITCHES = {
    "enable_thinking": "{% if enable_thinking is defined and not enable_thinking %}" + CLOSED + "{% endif %}",
    "thinking": "{% if thinking %}<think>{% else %}</think>{% endif %}",
    "thinking_budget": "{% if thinking_budget == 0 %}" + CLOSED + "{% else %}<think>{% endif %}",
    "reasoning": "{% if reasoning is false %}<|START_THINKING|><|END_THINKING|>{% else %}<|START_THINKING|>{% endif %}",
}
OPENS = USER + "<think>\n{% endif %}"
HARMONY = (
    "Reasoning: {{ reasoning_effort or 'medium' }}\n# Channels: analysis, final.{% for m in messages %}"
    "<|start|>user<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant"
    "{# <|channel|>analysis<|message|> #}"
)


@pytest.fixture(scope="module")
def network() -> Any:
    return AutoModelForCausalLM.from_pretrained(str(reader_path())).eval()


def tokenizer(template: str) -> Any:
    made = AutoTokenizer.from_pretrained(str(reader_path()))
    made.chat_template = template
    return made


def local(network: Any, template: str, **settings: Any) -> LocalModel:
    return LocalModel(network, tokenizer(template), **{"max_new_tokens": 4, "max_context_tokens": 64, **settings})


@pytest.mark.parametrize("name", SWITCHES)
def test_reasoning_is_turned_off_where_the_template_has_a_switch(name: str, network: Any) -> None:
    template = USER + SWITCHES[name] + "{% endif %}"
    frame = chat_frame(tokenizer(template))
    assert list(frame.options) == [name]
    assert not frame.options[name]
    assert (frame.opened, frame.reasons) == ("", None)
    model = local(network, template)
    assert model.warnings == ()
    assert name in model.numerics["chat_template"]
    assert DecodingAggregation(model, max_new_tokens=3).answer("Who?", ["Anna.", "Anna."]) is not None


def test_the_users_own_options_come_first(network: Any) -> None:
    template = USER + SWITCHES["thinking"] + "{% endif %}"
    model = local(network, template, template_options={"thinking": True})
    assert "begins every reply with reasoning" in model.warnings[0]
    assert model.numerics["chat_template"] == "thinking=True"


def test_a_variable_without_effect_is_no_switch() -> None:
    frame = chat_frame(tokenizer(USER + "{# thinking enable_thinking #}{% endif %}"))
    assert frame.options == {}


def test_harmony_is_asked_for_the_least_effort_and_said() -> None:
    frame = chat_frame(tokenizer(HARMONY))
    assert frame.options == {"reasoning_effort": "low"}
    assert "Harmony" in (frame.reasons or "")


@pytest.mark.parametrize("template", [OPENS, HARMONY])
def test_decoding_refuses_a_template_that_begins_with_reasoning(template: str, network: Any) -> None:
    with pytest.raises(ModelError, match="would decode reasoning in place of an answer"):
        DecodingAggregation(local(network, template)).answer("Who?", ["Anna.", "Anna."])


def test_a_reply_is_read_with_the_mark_that_its_template_opened(network: Any) -> None:
    """Without it, reasoning that ends without a mark would pass for an answer."""
    model = local(network, OPENS)
    [response] = model.generate([Prompt("Who?")], "isolated")
    assert (response.text or "").startswith("<think>")
    assert counted(response).abstains
    pieces = [p for p in model.stream(Prompt("Who?")) if isinstance(p, str)]
    assert "".join(pieces) == response.text
    answer = KeywordAggregation(model).answer("Who?", ["Anna.", "Anna."])
    assert answer.abstained
    assert all(g.note and "reasoning never ended" in g.note for g in answer.sources)
