"""What is taken off a reply, and which answers share a key: wordings of one meaning may, two meanings never do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.replies.keys import key_of, verdict_of, whole_answer
from tests.helpers.tables import listed

APART, ALIKE = listed(Path(__file__).with_name("keys.txt"), "apart", "alike")


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
        ("So, the correct answer is: Anna", "Anna"),
        ("Answer isn't known to Anna", "Answer isn't known to Anna"),
        ('"Anna"', "Anna"),
        ("**'Anna'**", "Anna"),
        ("`Anna`", "`Anna`"),
    ],
)
def test_only_what_wraps_an_answer_is_taken_off(reply: str, answer: str) -> None:
    assert whole_answer(reply) == answer


@pytest.mark.parametrize("nothing", ["", " ", "\n", "``` \n\n```", "\u200b"])
def test_an_empty_answer_has_no_key(nothing: str) -> None:
    assert key_of(whole_answer(nothing)) is None


@pytest.mark.parametrize(
    ("verdict", "replies"),
    [
        (
            "yes",
            "Yes|YES!|yes, on Fridays|Yes it is|Yes (on Fridays)|Yes — if asked|Ja, klar|Oui.|Sí, se puede",
        ),
        ("yes", "Да|是的。|是|はい、|네, 됩니다|Evet|نعم|כן|हाँ|Có.|ใช่ครับ"),
        (
            "no",
            "No.|No, they may not|No they may not|No: managers only|No se permite|Nein|Non, jamais|Não|Нет.",
        ),
        ("no", "不是|いいえ。|아니요|Hayır|لا، غير|לא|नहीं।|Không|ไม่"),
        (
            None,
            "No one|No. 5|No 5|No-fly zone|No entry|Nobody|none|North|Yes and no|Yes/No|Yesterday|Jakob|Non applicable",
        ),
        (
            None,
            "对不起|不锈钢|不丹|네 가지|예: 서울|Дания|Hayır kurumu|لا أحد|Không ai|Da Vinci|Ano: 2019|Si|Now|",
        ),
    ],
)
def test_a_verdict_is_a_word_of_its_own_at_the_beginning(verdict: str | None, replies: str) -> None:
    assert {reply: verdict_of(reply) for reply in replies.split("|")} == dict.fromkeys(replies.split("|"), verdict)
    if verdict is not None:
        assert {verdict_of(key_of(reply) or "") for reply in replies.split("|")} == {verdict}


@given(st.text(st.characters(exclude_categories=["Cc"]), max_size=60))
def test_space_around_an_answer_of_one_line_is_none_of_its_key(text: str) -> None:
    assert key_of(f" {text}\n") == key_of(text)


PIECES = (
    "the ", "A ", "an ", "The ", "May ", "3", "21", "2026", "-", "–", "−", "’", "'", "`", "```", "\n", "  ", "**",
    "!", ".", ",", "Oslo", "yes", "no", "Answer: ", "is ", "°", "mg", "MW", "１", "Ａ", "年", "11", "月", "日", "ß",
    "İ", "ŉ", "\u0301", "[1]", "x_y", "\r", "\u200b", "！", '"', "¡", "ÀÉ", "ǅ", "Ⅷ", "{", "}", "\\boxed{",
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=10).map("".join)))
def test_the_key_of_a_key_and_the_answer_of_an_answer_are_themselves(text: str) -> None:
    answer = whole_answer(text)
    for key in (key_of(text), key_of(answer)):
        assert key is None or key_of(key) == key


WRITINGS = {"-": ("-", "−"), "": ("",), "<": ("<",), "±": ("±",), " ": (" ", "\u00a0", "\u202f"), "–": ("-", "–", "‑")}
Amount = tuple[str, str, str]
AMOUNTS = st.tuples(
    st.sampled_from(["", "-", "<", "±"]),
    st.from_regex(r"[0-9]{1,3}([.,][0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["", "–7", "!", "%", '"', "'", " mg", " Mg", " MG", " g", "mg", " °C", " m²", " km/h", " MW", " mW", " 5"]
    ),
)


@given(AMOUNTS, AMOUNTS, st.data())
def test_two_amounts_never_share_a_key_and_one_does_in_all_typography(
    one: Amount, other: Amount, data: st.DataObject
) -> None:
    def written(amount: Amount) -> str:
        text = "".join(data.draw(st.sampled_from(WRITINGS.get(c, (c,)))) for c in "".join(amount))
        wide = text.translate({ord("0") + d: 0xFF10 + d for d in range(10)})
        wrapped = data.draw(st.sampled_from(["{}", "**{}**", " {}\n", "Answer: {}"]))
        return str(wrapped).format(data.draw(st.sampled_from([text, wide])))

    keys = [key_of(whole_answer(written(amount))) for amount in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


@given(st.text(max_size=200))
def test_any_text_has_an_answer_and_a_key_or_none(text: str) -> None:
    answer = whole_answer(text)
    assert (key := key_of(answer)) is None or key
