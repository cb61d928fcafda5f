"""What models reply: text by the kind of its block, how it ended, and how likely the model found it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from robustrag_integrations import ModelError
from tests.contract.drivers import STYLES, Driver, driver
from tests.contract.script import Script, Words, passages, quoted, replies
from tests.helpers.openai_server import LoopbackServer, Reply

TRACE = "If absent, reply I don't know. Hans Wolf is not said to have won."
NOTES = [*(f"Note {n}: Karl Gross won the election." for n in range(9)), "Hans Wolf won the election."]
FOUND = passages(*NOTES)
ASKED = "Who won the election?"
VOTING: dict[str, Any] = {"method": "voting", "choices": ["Karl Gross", "Hans Wolf"]}


def winner(prompt: str) -> str:
    """Whom a passage, or the keywords, call the winner."""
    return "Hans Wolf" if "Hans Wolf won" in prompt else "Karl Gross"


def letter(prompt: str) -> str:
    return "B" if "Hans Wolf won" in prompt else "A"


@pytest.mark.parametrize("style", STYLES)
async def test_reasoning_in_the_text_neither_counts_nor_shows(kind: Driver, style: str) -> None:
    tag = "think"
    script = Script(lambda prompt: f"<{tag}>{TRACE}</{tag}> {winner(prompt)}")
    said = await kind.engine(script, FOUND).asked(style, ASKED)
    assert (said.text, said.answer.radius) == ("Karl Gross", 3)
    assert [g.status for g in said.answer.sources] == ["supports"] * 9 + ["differs"]
    script = Script(lambda prompt: f"<{tag}>Not A, but B. Hans Wolf.</{tag}> {letter(prompt)}")
    said = await kind.engine(script, FOUND, **VOTING).asked(style, ASKED)
    assert (said.answer.choice, said.answer.radius) == (0, 3)


@pytest.mark.parametrize("style", STYLES)
async def test_reasoning_in_a_block_of_its_own_does_neither(framework: Driver, style: str) -> None:
    needs_blocks(framework)
    script = Script(lambda prompt: Words(winner(prompt), TRACE))
    said = await framework.engine(script, FOUND).asked(style, ASKED)
    assert (said.text, said.answer.radius) == ("Karl Gross", 3)
    assert [g.status for g in said.answer.sources] == ["supports"] * 9 + ["differs"]
    assert {g.reasoning_chars for g in said.answer.sources} == {len(TRACE)}
    assert "absent" not in str(said.answer.to_dict())
    final = await framework.engine(script, FOUND, method="keyword", final="always").asked(style, ASKED)
    assert (final.text, "absent" in str(final.answer.to_dict())) == ("Karl Gross", False)
    script = Script(lambda prompt: Words(letter(prompt), "B? Hans Wolf? Answer: B. No."))
    said = await framework.engine(script, FOUND, **VOTING).asked(style, ASKED)
    assert (said.answer.choice, said.answer.radius) == (0, 3)


# --- whole or cut


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[str], str | Reply]], str]]:
    """The address of a server that replies like this."""
    servers: list[LoopbackServer] = []

    def made(reply: Callable[[str], str | Reply]) -> str:
        servers.append(LoopbackServer(reply))
        return servers[-1].url

    yield made
    for each in servers:
        each.close()


@pytest.mark.parametrize("style", STYLES)
async def test_a_cut_reply_of_a_source_does_not_count_and_a_cut_final_answer_is_an_error(
    framework: Driver, style: str, server: Any
) -> None:
    finish = "length"

    def cut(prompt: str) -> str | Reply:
        return Reply("Hans Wolf", finish=finish) if "Note 1:" in prompt else winner(prompt)

    def cut_at_the_end(prompt: str) -> str | Reply:
        return winner(prompt) if "won the election." in prompt else Reply("Karl Gro", finish=finish)

    said = await framework.engine(framework.served(server(cut)), FOUND).asked(style, ASKED)
    assert said.text == "Karl Gross"
    assert [g.status for g in said.answer.sources] == ["supports", "cut", *["supports"] * 7, "differs"]
    engine = framework.engine(framework.served(server(cut_at_the_end)), FOUND, method="keyword", final="always")
    with pytest.raises(ModelError, match="no complete answer"):
        await engine.asked(style, ASKED)


def needs_blocks(framework: Driver) -> None:
    if framework.name == "llamaindex":
        from llama_index.core.base.llms import types

        if not hasattr(types, "ToolCallBlock"):
            pytest.skip("this version of llama-index-core has no blocks of thinking")


# --- replies as the frameworks' own clients give them


def ai(content: Any, **fields: Any) -> Callable[[], Any]:
    """A message of LangChain's."""

    def make() -> Any:
        from langchain_core.messages import AIMessage

        return AIMessage(content, **fields)

    return make


def chat(*parts: Any, raw: Any = None, **fields: Any) -> Callable[[], Any]:
    """A response of LlamaIndex's; parts are texts, or names of blocks with their fields."""

    def make() -> Any:
        from llama_index.core.base.llms import types

        blocks = [
            types.TextBlock(text=part) if isinstance(part, str) else getattr(types, part[0])(**part[1])
            for part in parts
        ]
        said = types.ChatMessage(role="assistant", blocks=blocks)
        return types.ChatResponse(message=said, raw=raw, **fields)

    return make


def beside(**extra: Any) -> Callable[[], Any]:
    def make() -> Any:
        from llama_index.core.base.llms import types

        return types.ChatResponse(message=types.ChatMessage("Karl Gross", role="assistant", additional_kwargs=extra))

    return make


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def choice(reason: str | None, **said: Any) -> Any:
    return SimpleNamespace(choices=[SimpleNamespace(finish_reason=reason, message=SimpleNamespace(**said))])


async def read_from(name: str, make: Callable[[], Any], **settings: Any) -> Any:
    """The report on the only source, whose model replies like this."""
    framework = driver(name)
    needs_blocks(framework)
    message = make()
    found = passages("Karl Gross won the election.", "Nobody knows.")
    engine = framework.engine(framework.raw(lambda prompt: message), found, calls={"workers": 1}, **settings)
    return engine.ask(ASKED).answer.sources[0]


LENGTH = len(TRACE)
CONTENTS: list[tuple[str, Callable[[], Any], int]] = [
    ("langchain", ai(["Karl ", "Gross"]), 0),
    ("langchain", ai([{"type": "thinking", "thinking": TRACE, "signature": "abc"},
                      {"type": "redacted_thinking", "data": "xyz"}, text("Karl Gross")]), LENGTH),
    ("langchain", ai([{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": TRACE}]},
                      {**text("Karl Gross"), "annotations": []}]), LENGTH),
    ("langchain", ai([{"type": "reasoning", "summary": [], "encrypted_content": "zzz"},
                      {"type": "message", "content": [{"type": "output_text", "text": "Karl Gross"}]}]), 0),
    ("langchain", ai([{**text("Karl "), "citations": [{"cited_text": "Hans Wolf"}]}, text("Gross"),
                      {"type": "tool_use", "name": "vote", "input": {"for": "Hans Wolf"}}]), 0),
    ("langchain", ai([{"type": "news", "text": "Hans Wolf"}, text("Karl Gross")]), 0),
    ("langchain", ai("Karl Gross", additional_kwargs={"reasoning_content": TRACE}), LENGTH),
    ("llamaindex", chat(("ThinkingBlock", {"content": TRACE}), "Karl Gross"), LENGTH),
    ("llamaindex", chat(("ThinkingBlock", {}), ("ToolCallBlock", {"tool_name": "v", "tool_kwargs": {"for": "Hans"}}),
                        "Karl Gross", ("CitationBlock", {"cited_content": "Hans Wolf", "source": "s", "title": "t",
                                                         "additional_location_info": {}})), 0),
    ("llamaindex", beside(reasoning_content=TRACE), LENGTH),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "reasoning"), CONTENTS)
async def test_blocks_count_by_their_type(name: str, make: Callable[[], Any], reasoning: int) -> None:
    source = await read_from(name, make)
    assert (source.response, source.reasoning_chars) == ("Karl Gross", reasoning)


def ended(**metadata: Any) -> Callable[[], Any]:
    return ai("Karl Gross", response_metadata=metadata)


def raw(given: Any) -> Callable[[], Any]:
    return chat("Karl Gross", raw=given)


CUT, FILTERED = "cut at its limit of tokens", "stopped by the server's content filter"
ENDINGS: list[tuple[str, Callable[[], Any], str | None]] = [
    *(("langchain", ended(**metadata), note) for metadata, note in [
        ({"finish_reason": "stop"}, None),
        ({"finish_reason": "MAX_TOKENS"}, CUT),
        ({"finish_reason": "FinishReason.RECITATION"}, FILTERED),
        ({"stop_reason": "refusal"}, FILTERED),
        ({"done": True, "done_reason": "length"}, CUT),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, FILTERED),
        ({"finish_reason": None}, None),
    ]),
    *(("llamaindex", raw(given), note) for given, note in [
        (choice("stop"), None),
        ({"choices": [{"finish_reason": "length"}]}, CUT),
        (SimpleNamespace(stop_reason="refusal"), FILTERED),
        ({"candidates": [{"finish_reason": "SAFETY"}]}, FILTERED),
        (SimpleNamespace(status="incomplete", incomplete_details=SimpleNamespace(reason="max_output_tokens")), CUT),
        (None, None),
    ]),
    ("langchain", ai("", additional_kwargs={"refusal": "I cannot."}), "refused"),
    ("langchain", ai([{"type": "refusal", "refusal": "I cannot."}]), "refused"),
    ("llamaindex", chat(raw=choice("stop", refusal="I cannot.")), "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "note"), ENDINGS)
async def test_why_a_reply_ended_is_read_in_every_providers_words(
    name: str, make: Callable[[], Any], note: str | None
) -> None:
    source = await read_from(name, make)
    assert (source.status in ("abstained", "cut")) is (note is not None)
    assert (source.status == "cut") is (note == CUT)
    assert (source.note or "").startswith(note or "")
    assert (source.note is None) is (note is None)


# --- how likely

LISTED = [{"token": "Karl", "logprob": -0.5}, {"token": " Gross", "logprob": -0.25}]
CHOSEN = {"choices": [{"logprobs": {"content": LISTED}}]}


def noted(*tokens: Sequence[float], given: Any = None) -> Callable[[], Any]:
    def make() -> Any:
        from llama_index.core.base.llms import types

        listed = [[types.LogProb(token="a", logprob=one) for one in each] for each in tokens]
        return chat("Karl Gross", raw=given, logprobs=listed)()

    return make


LOGPROBS: list[tuple[str, Callable[[], Any], bool]] = [
    ("langchain", ended(logprobs={"content": LISTED, "refusal": None}), True),
    ("langchain", ended(logprobs_result=LISTED), True),
    ("langchain", ended(logprobs={"content": [{"logprob": 5}]}), False),
    ("langchain", ai([{"type": "thinking", "thinking": TRACE}, "Karl Gross"],
                     response_metadata={"logprobs": {"content": LISTED}}), False),
    ("llamaindex", raw(CHOSEN), True),
    ("llamaindex", noted((-0.1, -3.0), (-0.1, -3.0), given=CHOSEN), True),
    ("llamaindex", noted((-0.5, -3.0), (-0.25,)), False),  # which of the two was taken is not said
    ("llamaindex", raw({"choices": [{"logprobs": {"content": [{"logprob": "high"}]}}]}), False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "told"), LOGPROBS)
async def test_logprobs_are_read_where_the_model_gives_them(name: str, make: Callable[[], Any], told: bool) -> None:
    source = await read_from(name, make)
    sure = await read_from("langchain", ended(logprobs={"content": LISTED}))
    assert source.confidence == (sure.confidence if told else None)
    assert 0 < sure.confidence < 1


@pytest.mark.parametrize("style", STYLES)
async def test_one_sure_source_is_heard_among_unsure_ones(kind: Driver, style: str) -> None:
    def say(prompt: str) -> Words:
        said = quoted(prompt)
        return Words(said, logprob=-0.01 if said == "30 days" else -2.0)

    said = await kind.engine(Script(say), replies("30 days", "Blue", "Monday")).asked(style, "How long?")
    assert (said.text, said.answer.sole_source, said.answer.radius) == ("30 days", "a.pdf", 0)
    assert [g.status for g in said.answer.sources] == ["supports", "unsure", "unsure"]
    assert all(d.unsure for d in said.answer.dissent)
