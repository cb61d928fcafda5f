"""What consensus shows for replies as models give them: the answer, a tie, a sole source, and who says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage, Response, RobustAnswer
from robustrag_integrations.text.prompts import ABSTENTION

SURE, UNSURE = (-0.01,), (-3.0,)
Reply = str | Response | None


class Model(CallableModel):
    """Replies to "text 0", "text 1", ... in order."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        def reply(prompt: str) -> str | Response:
            found = next(reply for place, reply in enumerate(replies) if f"text {place}." in prompt)
            return ABSTENTION if found is None else found

        super().__init__(reply)


def passages(count: int) -> list[Passage]:
    return [Passage(f"text {place}.", origin=f"{place}.md") for place in range(count)]


def ask(replies: Sequence[Reply], question: str = "Which?", **settings: Any) -> RobustAnswer:
    made = ConsensusAggregation(Model(replies), **settings)
    return made.answer(question, passages(len(replies)))


def sure(text: str) -> Response:
    return Response(text, logprobs=SURE)


def unsure(text: str) -> Response:
    return Response(text, logprobs=UNSURE)


def statuses(answer: RobustAnswer) -> str:
    """One letter each: supports, variant, differs, unsure, abstained, failed, copy, not_asked."""
    return "".join(source.status[0] for source in answer.sources)


@pytest.mark.parametrize(
    ("question", "replies"),
    [
        (
            "Are backups encrypted?",
            ["not encrypted", "unencrypted", "never encrypted", "No encryption", "Backups are not encrypted"],
        ),
        ("How much?", ["5 mg", "5 g", "5 ml", "5 drops"]),
        ("How far?", ["5 km", "5 miles", "5 km/h", "5 m"]),
        ("Who runs it?", ["Anna Lind", "Anna Berg", "Anna Koch", "Anna Ruiz", "Anna Toth"]),
        ("When does it end?", ["June 2027", "30 June", "2027"]),
        ("How long is it?", ["5'", '5"']),
        ("Which command?", ["rm -r x", "rm -R x"]),
        ("Wie hoch ist die Frist?", ["nicht vor 14 Tagen", "14 Tage", "keine 14 Tage"]),
        ("谁可以?", ["不是王小明", "王小明", "没有王小明"]),
    ],
)
def test_no_two_alike_are_no_answer_and_everything_is_told(question: str, replies: list[str]) -> None:
    answer = ask(replies, question)
    assert answer.abstained
    assert answer.radius == 0
    assert [dissent.text for dissent in answer.dissent] == replies
    assert answer.text.splitlines()[1:] == [f"- {place}.md: {reply}" for place, reply in enumerate(replies)]
    assert answer.for_prompt().text == ABSTENTION
    assert set(statuses(answer)) == {"d"}


@pytest.mark.parametrize(
    ("question", "replies", "text", "radius", "said"),
    [
        ("Who?", ["Ruth Penn"] * 3 + ["Mayor Ruth Penn"] * 2, "Ruth Penn", 0, "sssvv"),
        ("Who?", ["Ruth Penn"] * 6 + ["Mayor Ruth Penn", "Ann Fox"], "Ruth Penn", 2, "ssssssvd"),
        ("How long?", ["3½ hours", "3½ hours.", "31⁄2 hours"], "3½ hours", 0, "ssd"),
        ("Is it encrypted?", ["not encrypted"] * 3 + ["Not encrypted.", "encrypted"], "not encrypted", 1, "ssssd"),
        ("Where is it?", ["The Hague", "the Hague.", "Leiden"], "The Hague", 0, "ssd"),
        ("How much?", ["5 mg"] * 5 + ["5 g"], "5 mg", 1, "sssssd"),
        ("What does it say?", ["The file was not found"] * 3, "The file was not found", 1, "sss"),
        ("Which command?", ["`git stash`", "git stash", "git stash"], "git stash", 1, "sss"),
        ("Who?", ["Anna", "Anna", None, None, ""], "Anna", 0, "ssaaa"),
    ],
)
def test_the_answer_of_most_is_shown_in_their_words(
    question: str, replies: list[str | None], text: str, radius: int, said: str
) -> None:
    answer = ask(replies, question)
    assert (answer.text, answer.radius, statuses(answer)) == (text, radius, said)
    assert {d.text for d in answer.dissent} == {r for r, status in zip(replies, said, strict=True) if status == "d"}
    assert answer.for_prompt() is answer
    assert all(repr(dissent.text) in " ".join(answer.warnings) for dissent in answer.dissent)


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        (["1867", "1867", "1869", "1869"], "- 0.md, 1.md: 1867\n- 2.md, 3.md: 1869"),
        (["No", "Yes", "no", "yes.", None], "- 0.md, 2.md: No\n- 1.md, 3.md: Yes"),
        (["Rome"] * 4 + ["Oslo"] * 4, "- 0.md, 1.md, 2.md and 1 more: Rome\n- 4.md, 5.md, 6.md and 1 more: Oslo"),
    ],
)
def test_a_tie_is_told_and_is_no_answer(replies: list[str | None], told: str) -> None:
    answer = ask(replies)
    assert (answer.text, answer.abstained, answer.radius) == (f"The sources say:\n{told}", True, 0)
    assert answer.citations == ()
    assert answer.for_prompt().text == ABSTENTION
    assert any(f"have {replies.count(replies[0])} votes each" in w for w in answer.warnings) or "No" in replies
    assert RobustAnswer.from_dict(answer.to_dict()) == answer
    bare = ask(replies, disagreement="abstain")
    assert (bare.text, bare.abstained, bare.dissent) == (ABSTENTION, True, answer.dissent)


def test_a_majority_is_more_than_half_of_those_that_answer() -> None:
    replies = ["a", "a", "b", "c", None]
    assert ask(replies).text == "a"
    answer = ask(replies, agreement="majority")
    assert (answer.abstained, answer.radius) == (True, 0)
    assert answer.text.splitlines()[1:] == ["- 0.md, 1.md: a", "- 2.md: b", "- 3.md: c"]
    assert any("more than half of the 4 sources that answer" in warning for warning in answer.warnings)
    enough = ask(["a"] * 5 + ["b", "c", None], agreement="majority")
    assert (enough.text, enough.radius) == ("a", 1)


def test_two_of_nine_are_no_agreement() -> None:
    replies = ["Xylo", "Xylo", *"bcdefgh"]
    answer = ask(replies)
    assert (answer.abstained, answer.radius) == (True, 0)
    assert answer.text.splitlines()[1:3] == ["- 0.md, 1.md: Xylo", "- 2.md: b"]
    assert answer.text.splitlines()[-1] == "- and 3 more"
    assert any("more than a quarter of the 9 sources that answer" in warning for warning in answer.warnings)
    assert ask(replies[:7]).text == "Xylo"


def test_the_one_sure_source_is_heard_by_people_and_by_no_prompt() -> None:
    answer = ask([sure("45 days"), unsure("20 days"), unsure("10")])
    assert (answer.text, answer.abstained, answer.radius, statuses(answer)) == ("45 days", False, 0, "suu")
    assert answer.sole_source == "0.md"
    assert [(d.text, d.unsure) for d in answer.dissent] == [("20 days", True), ("10", True)]
    assert answer.for_prompt().text == ABSTENTION
    assert [round(source.confidence or 0, 1) for source in answer.sources] == [0.9, 0.0, 0.0]
    assert "unsure" in answer.explain()


def test_where_no_confidence_is_known_a_sole_source_is_one_where_all_others_abstain() -> None:
    answer = ask(["14 days", None, None])
    assert (answer.text, answer.abstained, answer.radius, answer.sole_source) == ("14 days", False, 0, "0.md")
    assert any(
        "rests on 0.md alone; 2 other sources are silent, none contradicts" in warning for warning in answer.warnings
    )
    assert answer.evidence["confidence"] == "unknown"
    assert ask(["14 days", "15 days", None]).abstained
    held = ask(["14 days", None], allow_sole_source=True)
    assert held.for_prompt().text == "14 days"


def test_confidence_never_counts() -> None:
    tie = ask([sure("a"), sure("a"), unsure("b"), unsure("b")])
    _, told, unsure_of, least = tie.text.splitlines()
    assert (told, least) == ("- 0.md, 1.md: a", "- 2.md, 3.md: b")
    assert "unsure" in unsure_of
    lead = ask([unsure("a"), unsure("a"), unsure("a"), sure("b"), sure("b")])
    assert (lead.text, statuses(lead)) == ("a", "sssdd")


def test_unsure_replies_abstain_where_they_are_told_to_and_are_still_named() -> None:
    replies = [unsure("a"), unsure("a"), unsure("a"), sure("b"), sure("b")]
    answer = ask(replies, unsure="abstain")
    assert (answer.text, statuses(answer)) == ("b", "uuuss")
    assert [(d.text, d.unsure, d.support) for d in answer.dissent] == [("a", True, 3)]
    strict = ask(replies, unsure="abstain", sure_from=1.0)
    assert (strict.abstained, statuses(strict)) == (True, "uuuuu")
    assert ask(["a", "a", "b"], unsure="abstain").text == "a"  # nothing is known: nobody is unsure


@pytest.mark.parametrize("longest", ["Eve", "Open the lid, wait for the light, and press the red button for 9 s."])
def test_where_long_replies_differ_the_tasks_for_several_things_and_for_sentences_are_named(longest: str) -> None:
    [said] = [w for w in ask(["Anna", "Cleo", longest], "Which?").warnings if "min_support" in w]
    assert [task for task in ("list", "long_form") if f"task={task!r}" in said] == ["list", "long_form"] * (
        longest != "Eve"
    )


def test_replies_that_begin_with_opposite_verdicts_are_counted_against_each_other() -> None:
    replies = ["Yes", "Yes, employees may.", "Yes, on Fridays.", "No", "No"]
    answer = ask(replies, "May I?")
    assert (answer.abstained, answer.radius) == (True, 0)
    assert answer.text == "The sources say:\n" + "\n".join(
        ["- 0.md: Yes", "- 1.md: Yes, employees may.", "- 2.md: Yes, on Fridays.", "- 3.md, 4.md: No"]
    )
    assert ask([*replies, "No", "No"], "May I?").text == "No"
    behind = ask(["No", "Yes, you may", "Yes, I may", "Yes, you may", "Yes, I may"], "May I?").text.splitlines()
    assert behind[0] == "The sources say:"
    assert behind[3] == "- 0.md: No"
    firm = ask(["Yes"] * 6 + ["No", "No, never"], "May I?")
    assert (firm.text, firm.radius) == ("Yes", 1)


def cut(text: str) -> Response:
    return Response(text, finish="length")


def test_a_cut_reply_is_not_silence_and_no_sole_source_is_heard_beside_it() -> None:
    answer = ask(["14 days", cut("Customers may ret"), None])
    assert (answer.abstained, statuses(answer)) == (True, "dca")
    assert answer.sources[1].status == "cut"
    assert answer.text.splitlines()[:2] == ["1 source answers:", "- 0.md: 14 days"]
    assert "limit of tokens" in answer.text
    assert not any("silent" in warning for warning in answer.warnings)
    assert ask(["14 days", "14 days", cut("Cust")]).text == "14 days"
    alone = ask([cut("Customers may ret"), None])
    assert alone.abstained
    assert "limit of tokens" in alone.text
    assert alone.for_prompt().text == ABSTENTION


def test_nothing_told_is_false() -> None:
    two = ask(["14 days", "14 days", None], min_support=3)
    assert two.text == "2 sources answer:\n- 0.md, 1.md: 14 days"
    assert "no two alike" not in " ".join(two.warnings)
    doubtful = ask([unsure("14 days"), None])
    assert "unsure" in doubtful.text
    contained = ask(["Ruth Penn", "Mayor Ruth Penn"], "Who?")
    assert "disagree" not in contained.text
    bare = ask(["1867", "1869"], min_radius=1)
    assert (bare.text, bare.abstained) == (ABSTENTION, True)


def test_a_long_answer_is_asked_in_full_shown_as_it_is_and_of_several_told() -> None:
    steps = "1. Open the lid.\n2. Press the button.\n\n3. Wait."
    asked: list[str] = []
    model = CallableModel(lambda prompt: asked.append(prompt) or (steps if "text 0." in prompt else ABSTENTION))
    alone = ConsensusAggregation(model, task="long_form").answer("How do I start it?", passages(3))
    assert (alone.text, alone.sole_source, alone.radius) == (steps, "0.md", 0)
    assert "in a few words" not in asked[0]
    several = ask([steps, "Press the button. " * 90, None], "How do I start it?", task="long_form")
    told = several.text.splitlines()
    assert told[:5] == [told[0], "- 0.md:", "    1. Open the lid.", "    2. Press the button.", "    3. Wait."]
    assert 1400 < len(told[5]) < 1600
    agreed = ask([steps] * 4, "How do I start it?", task="long_form")
    assert (agreed.text, agreed.radius) == (steps, 1)
