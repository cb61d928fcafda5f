"""What is taken off a reply, and which answers share a key: wordings of one meaning may, two meanings never do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.replies.keys import is_echo, key_of, scored_text, whole_answer

APART = [
    (".5 mg", "5 mg"),
    ("5 MW", "5 mW"),
    ("10 MB/s", "10 Mb/s"),
    ('6"', "6"),
    ('6"', "6'"),
    (":q", ":q!"),
    ("pip install -e .", "pip install -e"),
    ("rm -R x", "rm -r x"),
    ("./configure", "/configure"),
    ("A*", "A"),
    ("A negative", "negative"),
    ("Maßen", "Massen"),
    ("10⁶", "106"),
    ("3½", "31⁄2"),
    ("x²", "x2"),
    ("*", "?"),
    ("covered", "not covered"),
    ("US", "us"),
    ("A$10", "US$10"),
    ("5 °C", "-5 °C"),
    # negations, conditions, degrees
    ("encrypted", "unencrypted"),
    ("encrypted", "never encrypted"),
    ("Yes", "Yes, in part"),
    ("allowed", "allowed from 18"),
    ("before 5 pm", "after 5 pm"),
    ("at most 3", "at least 3"),
    # amounts, units, signs
    ("5 mg", "5 g"),
    ("5 mg", "5 mg/kg"),
    ("5 ml", "5 Ml"),
    ("$5", "€5"),
    ("$5", "$5m"),
    ("5%", "5"),
    ("5", "5‰"),
    ("-5", "5"),
    ("\u22125", "5"),
    ("±5", "5"),
    ("<5", ">5"),
    ("≤5", "5"),
    ("1,5", "1.5"),
    ("1.000", "1,000"),
    ("1 000", "1000 km"),
    ("1/2", "12"),
    ("½", "12"),
    ("H₂O", "HO"),
    ("CO2", "Co2"),
    ("pH 7", "PH 7"),
    ("5th", "5"),
    ("2:00", "200"),
    ("18+", "18"),
    ("3rd of May", "3rd of March"),
    ("1867–1869", "1867"),
    # code
    ("==", "="),
    ("==", "!="),
    ("`x`", "`X`"),
    ("`.gitignore`", "gitignore"),
    ("user_id", "userid"),
    ("getUser", "getuser"),
    ("getUser()", "getUser"),
    ("--force", "--Force"),
    ("grep -v x", "grep -V x"),
    ("/etc/hosts", "/etc/Hosts"),
    ("C++", "C"),
    ("C#", "C"),
    ("a.b", "ab"),
    ("$HOME", "HOME"),
    ("a && b", "a & b"),
    ("x;", "x:"),
    ("ls *", "ls"),
    ("C:\\Temp", "C:\\temp"),
    ("[]", "{}"),
    ("O-", "O"),
    ("@Anna", "Anna"),
    # names and words
    ("Ruth Penn", "Mayor Ruth Penn"),
    ("Anna Lind", "Lind Anna"),
    ("Jr.", "Sr."),
    ("IT", "it"),
    ("WHO", "who"),
    ("SHe", "she"),
    ("polish it", "Polish it now"),
    ("MacDonald", "Macdonald's"),
    ("NaN", "nan"),
    ("Müller", "Muller"),
    ("año", "ano"),
    ("резюме", "резюмё"),
    ("さ", "ざ"),
    ("شعر", "شِعر"),
    ("①", "1"),
    ("℃", "C"),
    ("ﬁ", "f"),
    ("K", "k"),
    ("Å", "A"),
    ("x\u0305", "x"),
    ("नहीं", "हीं"),
    ("不是", "是"),
    ("Open?", "Open"),
    ("Open!", "Open"),
    ("(5)", "5"),
    ("the", "a"),
    ("A", "a"),
]
ALIKE = [
    ("NATO", "NATO."),
    ("the Supreme Court", "Supreme Court"),
    ("Blue", "blue"),
    ("“Oppenheimer”", "Oppenheimer"),
    ("Yes", "yes."),
    ("YES", "Yes"),
    ("No.", "no"),
    ("`git stash`", "git stash"),
    ("```\ngit stash\n```", "git stash"),
    ("```bash\ngit stash\n```", "`git stash`"),
    ("The answer is Paris.", "paris"),
    ("Answer: Paris", "Paris"),
    ("**Paris**", "Paris"),
    ("**Final answer:** Paris", "Paris"),
    ("'Paris'", "Paris"),
    ("„Paris“", "Paris"),
    ("«Paris»", "Paris"),
    ("「東京」", "東京"),
    ("東京。", "東京"),
    ("Paris\n", "Paris"),
    ("New  York", "New York"),
    ("New\nYork", "new york"),
    ("Not Covered", "not covered"),
    ("5 mg.", "5 mg"),
    ("5 mg,", "5 mg"),
    ("3½ hours.", "3½ hours"),
    ("a mill", "mill"),
    ("An owl.", "owl"),
    ("Cafe\u0301", "Café"),
    ("\\boxed{42}", "42"),
    ('{"answer": "Paris"}', "Paris"),
    ("<think>Lyon?</think>Paris", "Paris"),
    ("Ärzte", "ärzte"),
    ("Париж", "париж"),
    ("It rains", "it rains"),
    ("Pa\u200bris", "Paris"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_two_meanings_never_share_a_key(one: str, other: str) -> None:
    first = key_of(whole_answer(one))
    assert first is not None
    assert first != key_of(whole_answer(other))


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_means_nothing_is_folded(one: str, other: str) -> None:
    key = key_of(whole_answer(one))
    assert key is not None
    assert key == key_of(whole_answer(other))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is 5' 3\".", "5' 3\"."),
        ("'5' and '6'", "'5' and '6'"),
        ("“5” or “6”", "“5” or “6”"),
        ("So, the correct answer is: Anna", "Anna"),
        ("Answer isn't known to Anna", "Answer isn't known to Anna"),
        ("The answering machine", "The answering machine"),
        ("Answers vary", "Answers vary"),
        ('"Anna"', "Anna"),
        ("**'Anna'**", "Anna"),
        ("`Anna`", "`Anna`"),
        ("not Anna, but Otto", "not Anna, but Otto"),
    ],
)
def test_only_what_wraps_an_answer_is_taken_off(reply: str, answer: str) -> None:
    assert whole_answer(reply) == answer


@pytest.mark.parametrize("nothing", ["", " ", "\n", "``` \n\n```", "\u200b"])
def test_an_empty_answer_has_no_key(nothing: str) -> None:
    assert key_of(whole_answer(nothing)) is None


@pytest.mark.parametrize(
    ("answer", "question", "found"),
    [
        ("The mill", "Who runs the mill?", True),
        ("runs the mill", "Who runs the mill?", True),
        ("Anna", "Who runs the mill?", False),
        ("Anna runs the mill", "Who runs the mill?", False),
        ("5", "Which of the 5 mills burnt?", False),
        ("red", "Is it red or blue?", False),
        ("", "Who?", False),
    ],
)
def test_a_reply_of_nothing_but_the_questions_words_is_an_echo(answer: str, question: str, found: bool) -> None:
    assert is_echo(answer, question) is found


def test_what_is_scored_is_a_function_of_the_key_alone_and_short() -> None:
    assert scored_text("supreme court") == "Supreme court"
    assert scored_text(":q!") == ":q!"
    assert scored_text("x" * 201) is None


@given(st.text(max_size=60))
def test_space_around_an_answer_is_none_of_its_key(text: str) -> None:
    assert key_of(f" {text}\n") == key_of(text)


@given(st.text(max_size=200))
def test_any_text_has_an_answer_and_a_key_or_none(text: str) -> None:
    answer = whole_answer(text)
    assert (key := key_of(answer)) is None or key
