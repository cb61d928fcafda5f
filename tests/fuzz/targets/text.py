"""Functions of a single text: prompts, abstentions, options, scores, terminal output."""

from __future__ import annotations

from robustrag_integrations._util.display import printable, table
from robustrag_integrations.defenses.voting.options import check_choices, parse_option
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.answer_text import answer_text
from robustrag_integrations.text.prompts import TASKS, PromptTemplate, format_choices, prompts_for
from tests.fuzz.checks import assert_harmless_on_a_terminal
from tests.fuzz.hostile import TEMPLATES, name, text
from tests.fuzz.source import Source, Target

_FIELDS = ("context", "query")


def rendering(source: Source) -> None:
    """A value is inserted unchanged, once, at the position the prompt reports."""
    prompts = prompts_for(source.pick(TASKS), exemplars=source.chance(2))
    values = {"context": text(source), "query": text(source), "choices": name(source), "keywords": text(source)}
    for template in (prompts.isolated, prompts.no_retrieval, prompts.keyword, prompts.phrases):
        if template is None:
            continue
        blank = template.render(**dict.fromkeys(values, ""))
        shown = template.render(**values)
        assert len(shown.text) == len(blank.text) + sum(len(values[f]) for f in template.fields)
        if shown.context is not None:
            start, end = shown.context
            assert shown.text[start:end] == values["context"]
            assert blank.context is not None
            assert shown.text[:start] == blank.text[: blank.context[0]]


def templates(source: Source) -> None:
    """A user's template is refused with a reason, or inserts its values without reading them."""
    body = "".join(source.some(lambda: source.pick((*TEMPLATES, "{context}", "{query}", "text ")), 8))
    try:
        template = PromptTemplate(name(source), body, _FIELDS)
    except ValueError:
        return
    values = {"context": text(source), "query": text(source)}
    shown = template.render(**values)
    assert shown.context is not None
    assert shown.text[slice(*shown.context)] == values["context"]
    assert values["query"] in shown.text


def abstentions(source: Source) -> None:
    """What is longer than an abstention answers, unless it is blank or never comes to an answer."""
    response = text(source)
    said = is_abstention(response)
    answered = answer_text(response)
    if len(answered) > 2000:
        assert said == (not answered.strip())


def options(source: Source) -> None:
    """A vote is one of the options or None, whatever the response and the options."""
    choices = tuple(source.some(lambda: name(source), 6)) or ("Paris", "Lyon")
    try:
        checked = check_choices(choices)
    except ValueError:
        checked = ("Paris", "Lyon", "Nice")
    format_choices(checked)
    response = text(source)
    vote = parse_option(response, checked)
    assert vote is None or 0 <= vote < len(checked)


def terminal(source: Source) -> None:
    """Whatever is printed is harmless, bounded and in its column."""
    given, limit = text(source), source.between(1, 80)
    shown = printable(given, limit)
    assert len(shown) <= max(limit, 1)
    assert_harmless_on_a_terminal(shown, lines=False)
    assert_harmless_on_a_terminal(printable(given), lines=False)
    rows = [(name(source), text(source), name(source)) for _ in range(source.between(1, 4))]
    lines = table(("a", "b", "c"), rows, limits=(8, 20, 5)).split("\n")
    assert len(lines) == len(rows) + 2
    assert all(len(line) <= 8 + 2 + 20 + 2 + 5 for line in lines)
    for line in lines:
        assert_harmless_on_a_terminal(line, lines=False)


class _Characters:
    """A codec whose tokens are characters, bytes and pieces of a stop string, as byte-level tokenizers have them."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def decode(self, tokens) -> str:
        return b"".join(self._pieces[t] for t in tokens).decode("utf-8", "replace")

    def is_end(self, token: int) -> bool:
        return False


def streaming(source: Source) -> None:
    """The pieces that are shown add up to the text, which holds no stop string and no whitespace at its ends."""
    raw = text(source, 6, 200).encode("utf-8", "surrogatepass")[:200]
    pieces = [raw[i : i + 2] for i in range(0, len(raw), 2)]
    stop = tuple(s for s in (source.pick(("\n", "\n\n", "END", "</s>", "a")), name(source)[:3]) if s)
    written = IncrementalDetokenizer(_Characters(pieces), stop)
    shown = []
    for token in range(len(pieces)):
        shown.append(written.add(token))
        if written.stopped:
            break
    shown.append(written.finish())
    assert "".join(shown) == written.shown
    assert written.shown == written.shown.strip()


TARGETS = (
    Target("abstentions", abstentions, 40),
    Target("options", options, 40),
    Target("rendering", rendering, 40),
    Target("streaming", streaming, 20),
    Target("templates", templates, 40),
    Target("terminal", terminal, 10),
)
