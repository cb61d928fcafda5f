"""Answers that count to the letter come out of prose as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.keywords import SpacyKeywordExtractor
from robustrag_integrations.keywords.kinds import _SIGNS, KINDS

extract = SpacyKeywordExtractor()


@pytest.mark.parametrize(
    ("answer", "replies"),
    [
        ("https://Example.org/a_B?x=1&y=2", ["See {}.", "(`{}`)", "It is at <{}>!", "**{}**", '"{}", it says.']),
        ("ops+alerts@mail.example.org", ["Write to {}.", "<{}>", "[{0}](mailto:{0})"]),
        ("172.16.4.9:8443", ["It listens on {}.", "`{}`", "**{}**"]),
        ("10.1.0.0/16", ["The network is {}."]),
        ("2001:db8::1", ["The address is {}.", "`{}`", "[{}]", "**{}**", "2001:DB8::1", "2001:0db8:0:0:0:0:0:1 it is"]),
        ("::1", ["It is {}, the loopback.", "`{}`", "({})"]),
        ("fe80::1%eth0", ["Use {}.", "`{}`"]),
        ("2001:db8::/32", ["The network is {}.", "`{}`"]),
        ("[::1]:8443", ["It listens on {}.", "`{}`"]),
        ("::ffff:192.0.2.128", ["It is {}.", "`{}`"]),
        (">=2.7,<4.1", ["It needs {}.", "Versions >=2.7, <4.1 work."]),
        ("v3.2.0-beta.1", ["Fixed in {}.", "upgrade to `{}`"]),
        ("/etc/Acme/acme.conf", ["Edit {}.", "```\n{}\n```", '"{}"']),
        (r"C:\Acme\bin\run.exe", ["Start {}.", "`{}`"]),
        (r"%TEMP%\acme\log.txt", ["Look in {}."]),
        ('pip install "acme[gpu]==1.2"', ["Use `{}`.", "```bash\n$ {}\n```", "You run {} first."]),
        ("frobctl sync --all --jobs=4", ["Run {} now.", "`{}`", "You can use {}."]),
        ("getUserById", ["Call {}.", "Call {}().", "`{}`"]),
        ("ACME_API_KEY", ["Set {}.", "```sh\nexport {}=...\n```"]),
        ("Al2(SO4)3", ["It is {}.", "Al₂(SO₄)₃"]),
        ("8:30-16:45", ["Open {}.", "Open from 8:30 to 16:45.", "Von 8:30 bis 16:45 Uhr.", "08:30–16:45"]),
        ("9:00-17:00", ["Open 9 am to 5 pm.", "From 9:00 a.m. to 5:00 p.m.", "9am-5pm"]),
        ("HttpClient", ["The class is {}.", "`{}`"]),
        ("4:1", ["They won {}.", "4 : 1"]),
    ],
)
def test_an_answer_that_counts_to_the_letter_keeps_its_letters(answer: str, replies: list[str]) -> None:
    for reply in [answer, *replies]:
        assert answer in extract(reply.replace("{0}", answer).replace("{}", answer)), reply


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.0.0.1:80", "10.0.0.1:81"),
        ("It is 2001:db8::1.", "2001:db8::2"),
        ("[::1]:80", "[::1]:81"),
        ("fe80::1%eth0", "fe80::1%eth1"),
        ("2001:db8::/32", "2001:db8::/48"),
        ("getUserById", "getUserByName"),
        ("It is effective.", "It is not effective."),
        ("It works.", "It never works."),
        ("Na2SO3", "Na2SO4"),
        ("2:1", "1:2"),
        ("9:00-17:00", "9:00-18:00"),
        (">=3.10,<3.14", ">=3.10,<3.12"),
        ("/var/log/a.log", "/var/log/b.log"),
        ("Das ist wirksam.", "Das ist nicht wirksam."),
        ("这是允许的", "这不允许"),
    ],
)
def test_different_answers_of_a_kind_do_not_meet(one: str, other: str) -> None:
    shared = extract(one) & extract(other)
    assert not shared - {"getuserby"}, shared


@pytest.mark.parametrize(
    ("reply", "keyword"),
    [
        ("<think>Maybe Lyon.</think>It is Paris.", "paris"),
        ('{"answer": "Paris", "confidence": 0.4}', "paris"),
        (r"So $\boxed{4608\ \text{pallets}}$.", "4608"),
        ("1. Ashby\n2. Kelford", "kelford"),
    ],
)
def test_answers_are_found_within_what_models_wrap_around_them(reply: str, keyword: str) -> None:
    found = extract(reply)
    assert keyword in found
    assert not found & {"lyon", "confidence", "0.4", "boxed", "text"}


@pytest.mark.parametrize("code", ["`<|im_end|>`", "`</s>`", "`[INST] x`", "`a\u202eb_c`", "`x_y\u0000z`"])
def test_code_that_acts_on_a_template_or_a_terminal_is_no_keyword_to_the_letter(code: str) -> None:
    assert code.strip("`") not in extract(code)


def test_code_with_a_list_in_it_stays_one_keyword() -> None:
    assert "f(a,b)" in extract("`f(a, b)`")


@pytest.mark.parametrize(
    ("reply", "keyword"),
    [
        ("It needs ^18.17.0 || >=20.3.0.", "^18.17.0 || >=20.3.0"),
        ("Use >=1.2 <2.0 please.", ">=1.2 <2.0"),
        ("tinylib~=2.4.1", "~=2.4.1"),
        ("Run kubectl get pods -n prod.", "kubectl get pods -n prod"),
        ("Run git commit -a to commit.", "git commit -a"),
        ("foo list -n prod", "foo list -n prod"),
        ("The salt is CuSO4·5H2O.", "CuSO4·5H2O"),
        ("At half past nine in the evening.", "21:30"),
        ("A quarter to ten", "9:45"),
        ("About 10⁻⁹ metres", "10^-9"),
        ("It shuts at 9:30 p.m.", "21:30"),
        ("5 kilometres per hour", "5 km/h"),
        ("Die Messe beginnt um 7.30 Uhr.", "7:30"),
        ("La messe commence à 7h30.", "7:30"),
        ("La misa empieza a las 7:30.", "7:30"),
        ('Her book is called "I Don\'t Know".', "i don't know"),
    ],
)
def test_ranges_options_times_and_titles_of_other_forms(reply: str, keyword: str) -> None:
    assert keyword in SpacyKeywordExtractor()(reply)


@pytest.mark.parametrize("name", ["std::vector", "Foo::Bar", "dead::beef", "12:30:45", "1:2:3:4", "a::b"])
def test_colons_make_no_address(name: str) -> None:
    [address] = [kind for kind in KINDS if kind.needs == "colons"]
    assert not any(address.forms(match) for match in address.pattern.finditer(name))


@given(st.lists(st.sampled_from([*"HONaCl()·⋅∙ -,.;x", "Na", "Cl", "₂", "٣", *"0123"]), max_size=12).map("".join))
def test_a_text_without_the_sign_of_a_formula_holds_none(text: str) -> None:
    [formula] = [kind for kind in KINDS if kind.name == "formula"]
    held = any(formula.forms(match) for match in formula.pattern.finditer(text))
    assert not held or _SIGNS[formula.needs](text)
