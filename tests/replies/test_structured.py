"""Structured replies: read with suspicion, in a mode that a probe without passages fixes, and the radius as before."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations, product
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Probed, Response
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.prompts import prompts_for, structured_prompts
from robustrag_integrations.replies.structured import PROBE, ReplyMode, answer_in
from tests.helpers.openai_server import LoopbackServer, Reply
from tests.helpers.scripted import BARE
from tests.helpers.structured_replies import HOSTILE, PASSAGES, QUERY, said, server

DEFENSES = (ConsensusAggregation, KeywordAggregation)


def test_an_object_is_an_answer_or_an_abstention() -> None:
    assert answer_in(Response('{"answer": "Paris", "found": true}')) == Response("Paris", finish="stop")
    assert answer_in(Response('{"found": false}')) == Response("", abstains=True, finish="stop")
    assert answer_in(Response('{"answer": "Berlin", "found": false}')).text == ""
    assert answer_in(Response('{"answer": "x", "found": true, "why": {"a": 1}}')).text == "x"
    assert answer_in(Response('{"answer": "a\\ud800", "found": true}')).text == "a\ufffd"
    thought = answer_in(Response('<think>It is {"answer": "Berlin"}.</think>{"answer": "Paris", "found": true}'))
    assert thought.text == "Paris"
    assert thought.aloud
    assert thought.reasoning_chars > 0


@pytest.mark.parametrize("reply", HOSTILE, ids=range(len(HOSTILE)))
def test_anything_else_is_a_failure(reply: str) -> None:
    read = answer_in(Response(reply))
    assert read.text is None
    assert read.error is not None
    assert read.error.startswith("its reply is not the object that was asked for: ")
    assert len(read.error) < 200


def test_a_reply_that_was_cut_abstains_unless_its_object_was_complete() -> None:
    whole, half = '{"answer": "Paris", "found": true}', '{"answer": "Par'
    assert answer_in(Response(whole, finish="length")) == Response("Paris", finish="stop")
    assert answer_in(Response(half, finish="length")) == Response("", finish="length")
    assert answer_in(Response(whole, finish="content_filter")).finish == "content_filter"
    for given in (Response(None, error="down"), Response("", refusal="no"), Response("", abstains=True)):
        assert answer_in(given) is given


@pytest.mark.parametrize(("enforced", "way"), [("json_schema", "json_schema"), ("nothing", ""), ("refuses", "")])
@pytest.mark.parametrize("defense", DEFENSES)
def test_a_probe_without_passages_shows_how_a_server_is_asked(defense: Any, enforced: str, way: str) -> None:
    with server(enforced) as asked:
        model = OpenAIModel("m", asked.url)
        made = defense(model, replies="auto")
        answer = made.answer(QUERY, PASSAGES)
        assert answer.text == "Paris"
        assert answer.radius == 1
        assert [g.status for g in answer.groups] == ["supports"] * 4 + ["abstained"]
        assert answer.settings["replies"] == ("structured" if way else "text")
        assert asked.prompts[0] == PROBE
        assert made.answer(QUERY, PASSAGES).text == "Paris"
        assert PROBE not in asked.prompts[1:]  # it is known by now
        assert all(("response_format" in r) is bool(way) for r in asked.requests[1:])
        model.close()


@pytest.mark.parametrize("enforced", ["json_schema", "nothing"])
def test_no_reply_changes_the_mode(enforced: str) -> None:
    """Neither objects where text is asked for, nor text where objects are, of however many groups."""
    with server(enforced, lambda p: said(p) if p == PROBE else "I am text now") as asked:
        model = OpenAIModel("m", asked.url)
        made = ConsensusAggregation(model, replies="auto")
        for _ in range(2):
            if enforced == "json_schema":  # no group replies with an object
                with pytest.raises(ModelError, match="its reply is not the object"):
                    made.answer(QUERY, PASSAGES)
            else:
                assert made.answer(QUERY, PASSAGES).settings["replies"] == "text"
            assert ("response_format" in asked.requests[-1]) is (enforced == "json_schema")
        assert asked.prompts.count(PROBE) == 1
        model.close()


def test_a_probe_that_does_not_get_through_fixes_nothing() -> None:
    mode = ReplyMode()

    def fails(way: str) -> Response:
        raise ConnectionError("refused")

    assert not mode.settled(("json_schema",), fails).way
    assert mode.fixed is None
    assert mode.settled(("json_schema",), lambda way: Response(said(PROBE))) == Probed("json_schema", "")
    assert mode.settled(("json_schema",), fails).way == "json_schema"
    refusing = ReplyMode()
    assert asyncio.run(refusing.asettled(("a",), _arefuses)) == Probed("", "asked by a: TypeError")
    assert refusing.fixed is not None


async def _arefuses(way: str) -> Response:
    raise TypeError("an unexpected argument")


def test_a_server_that_is_busy_at_first_is_probed_again() -> None:
    statuses = iter([503, 503])

    def reply(request: dict[str, Any]) -> Reply:
        prompt = request["messages"][-1]["content"]
        if "response_format" not in request:
            return Reply("Paris")
        return Reply(said(prompt), next(statuses, 200) if prompt == PROBE else 200)

    with LoopbackServer(reply, whole_requests=True) as asked:
        model = OpenAIModel("m", asked.url, attempts=1)
        made = ConsensusAggregation(model, replies="auto")
        kinds = [made.answer(QUERY, PASSAGES).settings["replies"] for _ in range(3)]
        assert kinds == ["text", "text", "structured"]
        model.close()


def test_what_cannot_be_structured_says_so_and_how_to_mend_it() -> None:
    made = ConsensusAggregation(CallableModel(lambda p: "Paris"), replies="structured")
    with pytest.raises(ModelError, match=r"replies='structured' needs .* use replies='auto'") as caught:
        made.answer(QUERY, PASSAGES)
    assert caught.value.robustness.abstained
    with server("refuses") as asked:
        model = OpenAIModel("m", asked.url)
        with pytest.raises(ModelError, match="asked by json_schema: ServerError 400"):
            KeywordAggregation(model, replies="structured").answer(QUERY, PASSAGES)
        model.close()
    with pytest.raises(ValueError, match="replies='structured' is for short answers"):
        KeywordAggregation(CallableModel(str), task="long_form", replies="structured", extractor="spacy")
    with pytest.raises(ValueError, match="replies='json' must be 'auto' or 'text' or 'structured'"):
        ConsensusAggregation(CallableModel(lambda p: "x"), replies="json")  # type: ignore[arg-type]
    long = KeywordAggregation(CallableModel(lambda p: "x"), task="long_form", replies="auto")
    assert long.settings.reader.replies == "text"


class Objects(CallableModel):
    """Replies per passage, of a model that gives objects."""

    def __init__(self, replies: Any) -> None:
        super().__init__(lambda p: replies[int(p.split("page ")[1].split(".")[0])], samples=False)

    def probe_replies(self) -> Probed:
        return Probed("scripted", "")


OBJECTS = (
    {"answer": "Berlin", "found": True},
    {"answer": "Paris", "found": True},
    {"answer": "Paris", "found": False},
    {"answer": "", "found": True},
    {"answer": "paris Berlin", "found": True},
    {"answer": "I don't know", "found": True},
    {"answer": '{"answer": "Berlin", "found": true}', "found": True},
    {"answer": "<think>Berlin", "found": True},
    {"answer": "What is the capital", "found": True},
)
LIES = (*map(json.dumps, OBJECTS), "", *HOSTILE)


def _answer(defense: Any, replies: Any) -> Any:
    made = defense(Objects(replies), replies="structured", quorum=0.1)
    return made.answer(QUERY, [f"page {i}." for i in range(len(replies))])


LIES = (*(json.dumps(r) for r in (
    {"answer": "Berlin", "found": True}, {"answer": "Paris", "found": True}, {"answer": "Paris", "found": False},
    {"answer": "", "found": True}, {"answer": "paris Berlin", "found": True}, {"answer": "I don't know", "found": True},
    {"answer": '{"answer": "Berlin", "found": true}', "found": True}, {"answer": "<think>Berlin", "found": True},
    {"answer": "What is the capital", "found": True},
)), "", *HOSTILE)  # fmt: skip


@pytest.mark.parametrize("defense", DEFENSES)
@pytest.mark.parametrize("honest", [["Paris"] * 4, ["Paris"] * 6, ["Paris"] * 4 + ["paris", None, "Lyon"]])
def test_the_radius_holds_whatever_a_group_replies(defense: Any, honest: list[str | None]) -> None:
    """Brute force over the groups and over lies, malformed ones among them."""
    replies = [json.dumps({"answer": text or "", "found": text is not None}) for text in honest]
    answer = _answer(defense, replies)
    assert answer.text.casefold() == "paris"
    assert answer.radius >= 1
    for size in range(1, min(answer.radius, 2) + 1):
        lies = LIES if size == 1 else [LIES[0], LIES[2], LIES[4], HOSTILE[0], HOSTILE[8]]
        for groups in combinations(range(len(replies)), size):
            for told in product(lies, repeat=size):
                attacked = [dict(zip(groups, told, strict=True)).get(i, reply) for i, reply in enumerate(replies)]
                assert _answer(defense, attacked).text.casefold() == "paris", (groups, told)
    beyond = [LIES[0]] * len(replies)
    assert _answer(defense, beyond).text == "Berlin"  # the check can fail


@pytest.mark.parametrize("reply", HOSTILE, ids=range(len(HOSTILE)))
def test_a_malformed_reply_costs_its_own_group_alone(reply: str) -> None:
    replies = [said("capital of France is Paris")] * 4 + [reply]
    answer = _answer(ConsensusAggregation, replies)
    assert answer.text == "Paris"
    assert [g.status for g in answer.groups] == ["supports"] * 4 + ["failed"]
    assert "1 of 5 groups failed (its reply is not the object" in " ".join(answer.warnings)


@pytest.mark.parametrize("defense", DEFENSES)
def test_certificates_read_replies_in_the_same_mode(defense: Any) -> None:
    with server("json_schema") as asked:
        model = OpenAIModel("m", asked.url)
        made = defense(model, replies="auto")
        kept = made.answer(QUERY, PASSAGES, keep=True)
        found = made.certify(QUERY, PASSAGES, "Paris", answer=kept, attack="modification")
        assert found.settings["replies"] == "structured"
        assert found.tau == 1.0
        assert len(asked.requests) == 1 + len(PASSAGES)  # the answer's replies are not asked for again
        assert asyncio.run(made.acertify(QUERY, PASSAGES, "Paris", attack="modification")).tau == 1.0
        model.close()


def test_every_way_of_asking_gives_the_same_and_the_final_call_is_text() -> None:
    with server("json_schema") as asked:
        model = OpenAIModel("m", asked.url)
        made = KeywordAggregation(model, replies="structured", final="always")

        async def astreamed() -> str:
            return "".join([piece async for piece in made.astream(QUERY, PASSAGES)])

        texts = [
            made.answer(QUERY, PASSAGES).text,
            asyncio.run(made.aanswer(QUERY, PASSAGES)).text,
            "".join(made.stream(QUERY, PASSAGES)),
            asyncio.run(astreamed()),
        ]
        assert len(set(texts)) == 1
        finals = [r for r in asked.requests if "Several sources" in r["messages"][-1]["content"]]
        assert len(finals) == 4
        assert not any("response_format" in r or "tools" in r for r in finals)
        model.close()


def test_prompts_say_what_the_fields_are() -> None:
    isolated = prompts_for("short_answer", exemplars=2).isolated
    for template in (isolated, BARE.isolated):
        [prompt] = structured_prompts(template, "who?", ["a {passage}"])
        assert prompt.structured
        assert prompt.without_context().structured
        assert prompt.context is not None
        start, end = prompt.context
        assert prompt.text[start:end] == "a {passage}"
        assert '"found" is true if the text contains the answer' in prompt.text[end:]
    [asking] = structured_prompts(isolated, "who?", ["x"])
    assert ' {"answer": "Tomas Brevik", "found": true}\n' in asking.text
    assert ' {"answer": "I don\'t know", "found": false}\n' in asking.text
