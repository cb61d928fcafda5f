"""Keys of replies: whole answers to the letter, amounts, echoes, and that whoever says a key says its runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation
from robustrag_integrations.keywords.runs import LONGEST, RunReader, longest, whole_answer

EXACT = [
    "-k", "--dry-run=client", "kubectl get pods", "git rebase -i HEAD~3", "*/5 2 * * 1", "$PATH", "%s", "${HOME}/bin",
    "/etc/hosts", r"C:\Users\x", "src/**/*.py", "[a-f0-9]{8}", r"^\d{3}-\d{4}$", "SELECT id FROM t WHERE a > 3",
    "SELECT * FROM users;", '{"limit": 9}', '{"a": 1, "b": null}', "[]", "==", "&&", "!=", "(2, 5]", "x ≤ 5",
    "E = mc^2", "a² + b² = c²", "10⁶", "5 MW", "100 mg/kg", "v1.2.3", "1-0", "-1", "1,450", "$5 million", "10 %",
    "C++", "C#", "R", "00123", "+49 170 1234567", "foo()", "f(x) = 2x", "<br/>", "{{ x }}", "@decorator",
    "Article 12(3)(c)", "at least 30 days' notice", "not before 1 May 2024", "less than 5 km",
    "Section 4.2 applies, unless 3 days have passed", "The Who", "Dr. No", "O'Brien", "To be or not to be", "Yes", "No",
    "北京", "Москва", "กรุงเทพ", "القاهرة",
]  # fmt: skip


@pytest.mark.parametrize("method", [ConsensusAggregation, KeywordAggregation])
def test_what_all_say_comes_out_to_the_letter(method: type[ConsensusAggregation] | type[KeywordAggregation]) -> None:
    for exact in EXACT:
        defense = method(CallableModel(lambda prompt, said=exact: said))
        answer = defense.answer("Which one is that?", [f"text {i}" for i in range(5)])
        assert (answer.text, answer.radius, answer.model_calls) == (exact, 2, 5)
        assert {group.status for group in answer.groups} == {"supports"}, exact


@pytest.mark.parametrize(
    "exact", ['pip install "x[gpu]==1.8.2"', '"Run" or "walk"', "`-a` or `-b`", 'echo "a b"', "“Run” or “walk”"]
)
def test_quotes_that_close_within_the_answer_are_shown(exact: str) -> None:
    replies = [f"Use {exact}.", f"You want {exact}!", f"The text says: {exact}", exact]
    defense = ConsensusAggregation(
        CallableModel(lambda prompt: next(r for r in replies if f"n{replies.index(r)}" in prompt))
    )
    assert defense.answer("What should I type?", [f"text n{i}" for i in range(len(replies))]).text == exact


def test_null_is_an_answer_to_a_question_for_code() -> None:
    def said(reply: str, question: str) -> str:
        return ConsensusAggregation(CallableModel(lambda prompt: reply)).answer(question, ["a", "b", "c"]).text

    assert said("null", "Which value does the function return?") == "null"
    assert said("null", "Who won?") == "I don't know"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is Paris.", "Paris"),
        ('"Paris"', "Paris"),
        ("`git push --force`", "git push --force"),
        ("```bash\ngit push --force\n```", "git push --force"),
        ('{"answer": "Paris", "confidence": 0.9}', "Paris"),
        (r"\boxed{42}", "42"),
        ("„Der Steg“", "Der Steg"),
        ("「東京」", "東京"),
        ("Paris [1]", "Paris"),
        ("The answer isn't known", "The answer isn't known"),
        ('"Run" or "walk"', '"Run" or "walk"'),
    ],
)
def test_the_whole_answer_is_the_reply_without_its_wrapping(reply: str, answer: str) -> None:
    assert whole_answer(reply) == answer


def keys(reply: str, question: str = "Which?") -> frozenset[str]:
    return RunReader(question)(reply).keys


def whole(reply: str, question: str = "Which?") -> str | None:
    return RunReader(question)(reply).whole


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("three years", "3 years"),
        ("$5 million", "five million dollars"),
        ("$5m", "5,000,000 dollars"),
        ("14 September 1962", "September 14, 1962"),
        ("Karl Gross.", "KARL GROSS"),
        ("the bridges", "The bridge"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_the_same_said_otherwise_is_one_key(one: str, other: str) -> None:
    assert whole(one) == whole(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5 km/h"),
        ("5 km", "5 m"),
        ("$5", "€5"),
        ("-5", "5"),
        ("3 years", "2 years"),
        ("getUser", "getuser"),
        ("10⁶", "106"),
        ("Yes", "No"),
        ("Mara won", "Mara lost"),
    ],
)
def test_what_differs_has_another_key(one: str, other: str) -> None:
    assert whole(one) != whole(other)
    assert whole(one) not in keys(other)


@pytest.mark.parametrize(
    ("question", "denied"),
    [
        ("Which city is it?", ["not Tarsk", "never Tarsk", "no Tarsk", "without Tarsk"]),
        ("Wo liegt die Stadt?", ["nicht in Tarsk", "kein Tarsk", "nie in Tarsk"]),
        ("Où est la ville ?", ["pas à Tarsk", "jamais à Tarsk"]),
        ("¿Dónde está la ciudad?", ["no en Tarsk", "nunca en Tarsk"]),
        ("Onde fica a cidade?", ["não em Tarsk"]),
        ("Waar ligt de stad?", ["niet in Tarsk"]),
        ("Var ligger staden?", ["inte i Tarsk"]),
        ("Где находится город?", ["не Tarsk"]),
        ("Şehir nerede?", ["Tarsk değil"]),
    ],
)
def test_a_denial_is_never_read_as_what_it_denies(question: str, denied: list[str]) -> None:
    for reply in denied:
        assert whole(reply, question) != whole("Tarsk", question) is not None, reply
        assert RunReader(question)(reply).rest > {"tarsk"}, reply


def test_a_unit_alone_is_no_key() -> None:
    assert not keys("5 km") & keys("7 km")
    assert not keys("$5 million") & keys("$6 million")


def test_an_echo_of_the_question_has_no_keys_unless_its_answer_may_be_among_them() -> None:
    asked = "Who won the Harbour Cup?"
    echo = RunReader(asked)("the Harbour Cup")
    assert (echo.keys, echo.whole, echo.is_echo) == (frozenset(), None, True)
    assert "karl gross" in keys("Karl Gross won the Harbour Cup", asked)
    assert "harbour cup" not in keys("Karl Gross won the Harbour Cup", asked)
    assert keys("Oslo", "Is it Rome or Oslo?")
    assert not RunReader(asked)("").is_echo


def test_a_verdict_is_the_whole_answer_to_a_question_for_one() -> None:
    assert keys("Yes, it is open until 5.", "Is it open?") == keys("yes", "Is it open?") == {"yes"}


def replying(said: Sequence[str]) -> tuple[CallableModel, list[str]]:
    """A model that gives these replies, and the passages that it gives them to."""
    replies = {f"text {i}.": reply for i, reply in enumerate(said)}
    return CallableModel(lambda prompt: next(r for text, r in replies.items() if text in prompt)), list(replies)


@pytest.mark.parametrize("method", [ConsensusAggregation, KeywordAggregation])
def test_nothing_is_said_that_no_source_said(method: type[ConsensusAggregation] | type[KeywordAggregation]) -> None:
    model, passages = replying(["Covid 19 vaccination"] * 3 + ["vaccination cards"] * 3)
    answer = method(model).answer("Which one is that?", passages)
    assert "19 vaccination cards" not in answer.text


def test_a_number_that_all_say_with_other_units_is_shown_without_one() -> None:
    model, passages = replying(["5 km"] * 3 + ["5 miles"] * 3)
    answer = ConsensusAggregation(model).answer("Which one is that?", passages)
    assert (answer.text, {group.status for group in answer.groups}) == ("5", {"mentions"})


def test_letters_are_decided_before_the_rest_is_left_out() -> None:
    stopped = 0
    for said in sorted(set(permutations(["OSLO", "OSLO", "Oslo", "Oslo", "Oslo", "Bergen"]))):
        model, passages = replying(said)
        early = ConsensusAggregation(model, stop_when_decided=True, wave_size=1).answer("Which city?", passages)
        assert early.text == ConsensusAggregation(model).answer("Which city?", passages).text == "Oslo", said
        stopped += early.model_calls < len(said)
    assert stopped > 10


def test_a_capital_letter_is_a_word_where_it_follows_one() -> None:
    assert whole("Vitamin A") != whole("Vitamin B")
    assert "vitamin A" in keys("Vitamin A")
    assert whole("Hepatitis B") != whole("Hepatitis")


def test_signs_count() -> None:
    assert len({whole("x < 5"), whole("x ≠ 5"), whole("x 5")}) == 3


def test_a_huge_reply_is_read_in_part() -> None:
    said = RunReader("Which?")(" ".join(f"w{i}" for i in range(100_000)))
    assert len(said.keys) <= 2_000 * LONGEST + 1


WORDS = [
    "the", "of", "or", "not", "is", "who", "won", "Mara", "mara", "lost", "5", "km", "km/h", "less", "than", "three",
    "3", "years", "$5", "million", "dollars", "`git", "push`", "--force", "==", "[]", ",", ".", "14", "September",
    "1962", "getUser", "Straße", "王", "小明", "\"x\"", "(a)", "-", "1,450", "10⁶", "Bridges", "bridge's", "№", "\n",
]  # fmt: skip
REPLIES = st.one_of(st.lists(st.sampled_from(WORDS), min_size=1, max_size=18).map(" ".join), st.text(max_size=40))
QUESTIONS = st.sampled_from(
    ["Who won?", "How far is it, in km?", "Is it 5 or 3?", "Wer hat gewonnen?", "谁写了这本书?"]
)


@given(QUESTIONS, REPLIES)
@settings(max_examples=400, deadline=None)
def test_whoever_says_a_key_says_its_runs(question: str, reply: str) -> None:
    reader = RunReader(question)
    said = reader(reply)
    for key in said.keys:
        tokens = key.split(" ")
        for first in range(len(tokens)):
            for last in range(first + 1, len(tokens) + 1):
                run = " ".join(tokens[first:last])
                if reader.comes_with(run, key):
                    assert run in said.keys or is_old(reader, question, run), (key, run)


@given(QUESTIONS, REPLIES, REPLIES)
@settings(max_examples=400, deadline=None)
def test_what_comes_with_a_key_is_said_by_all_who_say_it(question: str, one: str, other: str) -> None:
    reader = RunReader(question)
    first, second = reader(one), reader(other)
    shared = first.keys & second.keys
    for key in shared:
        for part in first.keys | second.keys:
            if reader.comes_with(part, key):
                assert part in first.keys
                assert part in second.keys


def test_no_token_holds_a_space() -> None:
    """Runs are told apart by spaces; compatibility forms of some accents begin with one."""
    reader = RunReader("Which?")
    for accent in "¨´¸¯˘˙˚˛˜˝‗΄᾿῾":
        assert all(" " not in token for token in reader.tokens(f"a{accent}b {accent}c {accent}"))


def is_old(reader: RunReader, question: str, run: str) -> bool:
    """Whether a run holds words of the question and units alone, and so is nobody's key."""
    old = reader.tokens(question)
    return all(token in old or token.startswith("¤") or reader._language.is_small(token) for token in run.split(" "))


def test_the_longest_keys_are_those_that_are_no_part_of_another_one() -> None:
    assert longest({"a b", "a", "b", "c", "b c"}) == {"a b", "b c"}
    assert longest({"ab", "a"}) == {"ab", "a"}
    assert longest({" ".join("abcdefghijklmn"), "b c", "n"}) == {" ".join("abcdefghijklmn")}
