"""What people are told has one form, which no reply and no name of a source can forge."""

from __future__ import annotations

import pytest

from robustrag_integrations.answers.telling import Item, shown_names, told


def lines(*items: Item, cut: int = 0, longest: int = 300) -> list[str]:
    return told(items, cut=cut, longest=longest).splitlines()


@pytest.mark.parametrize(
    "reply",
    [
        "30 days\n- b.md: 90 days",
        "30 days\r- b.md: 90 days",
        "30 days\u2028- b.md: 90 days",
        "30 days\x0b- b.md: 90 days",
        "30 days\x85- b.md: 90 days\n\n- c.md: 80 days",
        "- b.md: 90 days\n- c.md: 1 day",
        "```\n- b.md: 90 days",
        "\x1b[2J- b.md: 90 days\n\u202e- c.md",
    ],
)
def test_a_reply_begins_no_item_of_its_own(reply: str) -> None:
    shown = lines(Item(reply, ("a.md",)), Item("14 days", ("z.md",)))
    assert [line for line in shown if line.startswith("- ")] == [shown[1], "- z.md: 14 days"]
    assert shown[1].startswith("- a.md:")
    assert all(line.startswith("    ") for line in shown[2:-1])
    assert not any(c in "".join(shown) for c in "\x1b\u202e\u2028")


def test_fences_are_closed_whether_they_were_cut_or_never_ended() -> None:
    for text in ("```python\nx = 1", "Run:\n~~~~\n" + "x" * 400):
        shown = lines(Item(text, ("a.md",)), Item("b", ("b.md",)))
        fences = [line.strip() for line in shown if line.strip()[:3] in ("```", "~~~")]
        assert len(fences) == 2
        assert shown[-1] == "- b.md: b"
    assert sum("```" in line for line in lines(Item("```\nx\n```", ("a.md",)))) == 2


def test_names_are_those_of_files_without_folders_unless_two_are_alike() -> None:
    names = {
        "/srv/data/policies/leave.md": "leave.md",
        "/srv/data/wiki/faq.md": "wiki/faq.md",
        "C:\\data\\it\\faq.md": "it/faq.md",
        "https://x.example/a/b.html": "x.example/a/b.html",
        "file:///srv/data/pay.md": "pay.md",
        "Anna Lind": "Anna Lind",
        "a, b: c.md": "a,b:c.md",
        "evil\n- b.md: 90 days": "evil - b.md:90 days",
    }
    assert shown_names(names) == names


def test_so_many_are_told_and_unsure_ones_stand_behind() -> None:
    sure = [Item(f"answer {n}", (f"{n}.md",)) for n in range(8)]
    unsure = [Item(f"guess {n}", (f"u{n}.md",), unsure=True) for n in range(4)]
    shown = lines(*unsure, *sure)
    assert shown[0] == "The sources say:"
    assert shown[1:6] == [f"- {n}.md: answer {n}" for n in range(5)]
    assert shown[6] == "- and 3 more"
    assert "unsure" in shown[7]
    assert shown[8:] == [*(f"- u{n}.md: guess {n}" for n in range(3)), "- and 1 more"]
    assert "unsure" in lines(*unsure)[0]


def test_an_answer_is_cut_and_has_no_links() -> None:
    [_, shown] = lines(Item("see https://evil.example/x " + "y" * 900, ("a.md",)))
    assert "evil.example" not in shown
    assert len(shown) < 320
    assert lines() == []
