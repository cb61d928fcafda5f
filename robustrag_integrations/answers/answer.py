"""The answer that a user gets: its text, its radius, and who said what."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.display import printable, table
from robustrag_integrations._util.json_values import plain, restored
from robustrag_integrations._util.words import (
    count_of,
    radius_in_words,
    repeats_in_words,
)
from robustrag_integrations.answers.citations import Citation, listed, marked_text
from robustrag_integrations.answers.determinism import UNKNOWN, Determinism
from robustrag_integrations.answers.links import without_links
from robustrag_integrations.answers.telling import LONGEST, Item, shown_names, told
from robustrag_integrations.answers.usage import UNTOLD, Spending, Usage
from robustrag_integrations.text.prompts import ABSTENTION

if TYPE_CHECKING:
    from robustrag_integrations.grouping.passages import Passage

SourceStatus = Literal["supports", "variant", "differs", "unsure", "abstained", "failed", "not_asked", "cut"]
VERDICTS: Mapping[SourceStatus, str] = {
    "supports": "gives the answer shown",
    "variant": "gives a longer or shorter form of it, counted apart",
    "differs": "its answer is not the one shown",
    "unsure": "its answer is not shown: the model is unsure of it",
    "abstained": "the model found no answer in it",
    "failed": "the call failed, which counts as no answer",
    "not_asked": "the others had already decided",
    "cut": "the reply reached the token limit, which counts as no answer",
}
"""What each status says of a source, for people."""

SCHEMA = "robustrag/answer/3"
ASK_SCHEMA = "robustrag/ask/3"
ANSWERING: tuple[SourceStatus, ...] = ("supports", "variant", "differs", "unsure")  # statuses of sources that answer
_MOST_SHOWN = 10  # dissenting answers in `explain()`
_MOST_LINES = 60  # of an answer
LONGEST_SHOWN = 300  # characters of one source's reply in one line
T = TypeVar("T")

Reader = Literal["people", "model"]  # who reads an answer
# What a tool tells an agent's model in place of an answer that is withheld.
WITHHELD = (
    "The answer was withheld: too few sources give it, and its words may be an attacker's. Go on without it: use "
    "another tool, ask in other words, or tell the user that this is not confirmed. Whoever runs this tool can add "
    "sources, or trusted ones; allow_sole_source=True lets through what one source says."
)

DecidedBy = Literal["trusted", "votes", "sole_source", "conversation"]
TrustedStatus = Literal["answers", "silent", "empty", "abstains", "failed"]


def checked_reader(reader: Reader) -> Reader:
    """Return who reads answers; raise ValueError for another word."""
    if reader not in get_args(Reader):
        raise ValueError(f"reader={reader!r:.40} must be 'people' or 'model'")
    return reader


@dataclass(frozen=True)
class SourceReport:
    """One source's part in an answer.

    Attributes:
        index: the source's place (0-based), as given by `isolate`; what people read counts sources from 1.
        passage_ids: the ids of its passages, in rank order.
        origins: the origins of its passages, as their metadata spells them, without repeats.
        status: what became of its reply; `VERDICTS` has each in words.
        response: its isolated response. For decoding aggregation: the answer up to where this source would have gone
            on differently, and its own next token.
        keywords: the key of its answer, by which it is counted; for keyword aggregation its keywords, sorted.
        choice: voting: the index of the option voted for.
        error: the reason for its failure.
        truncated: True if its passages were cut to fit the model's context.
        positions: the places (0-based) of its passages among those that the defence was given.
        words: its answer as it writes it; for voting its option; for keyword aggregation the kept keywords that it
            says.
        note: the reason for not counting its response, or not in full, where the model did not fail: cut, or refused.
        reasoning_chars: characters of reasoning that came with its response; they count for nothing.
        usage: tokens of its isolated calls. Reports that differ in it alone are equal.
        confidence: how sure the model was of its reply, from 0 to 1; None: not known. It counts for nothing.
    """

    index: int
    passage_ids: tuple[str, ...]
    origins: tuple[str, ...] = ()
    status: SourceStatus = "abstained"
    response: str | None = None
    keywords: tuple[str, ...] = ()
    choice: int | None = None
    error: str | None = None
    truncated: bool = False
    positions: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    note: str | None = None
    reasoning_chars: int = 0
    usage: Usage = field(default=UNTOLD, compare=False)
    confidence: float | None = None


@dataclass(frozen=True)
class TrustedReport:
    """The part of the trusted passages, which were read together, in an answer.

    Attributes:
        passage_ids: their ids, in order. They come first where places of passages are counted.
        origins: their origins, as their metadata spells them, without repeats.
        status: `answers`: their reply is the answer; `silent`: it was the phrase that the prompt asks for where they do
            not hold the answer, and the others were asked; `empty`: none was found, and the others were asked
            (`when_empty="ask_others"`); `abstains`: the reply abstains in words of its own, and nobody else was asked;
            `failed`: no reply that can be read, or none was found; nobody else was asked.
        reply: what the model said about them.
        error: why it failed.
        truncated: True if the last of them did not fit the model's context.
    """

    passage_ids: tuple[str, ...]
    origins: tuple[str, ...] = ()
    status: TrustedStatus = "answers"
    reply: str | None = None
    error: str | None = None
    truncated: bool = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The places (0-based) of the trusted passages: the first ones."""
        return tuple(range(len(self.passage_ids)))


@dataclass(frozen=True)
class Claim:
    """One item of a list, in the words that most of its sources write.

    `support` is the number of sources that make it, `radius` how many sources can be replaced while it stays in the
    answer (None for one that is left out); `origins` and `sources` name who makes it.
    """

    text: str
    support: int
    radius: int | None
    origins: tuple[str, ...]
    sources: tuple[int, ...]

    def in_words(self) -> str:
        """One line for a terminal."""
        radius = "" if self.radius is None else f", radius {self.radius}"
        named = printable(", ".join(self.origins), 80)
        return f"{printable(self.text, 160)} ({count_of(self.support, 'source')}{radius}: {named})"


@dataclass(frozen=True)
class Dissent:
    """An answer that sources give in place of the one that is shown, or beside others where none is.

    Attributes:
        text: in the words of the first of them.
        support: its number of votes.
        sources: their indices.
        origins: the origins of their passages, without repeats.
        unsure: True if the model is unsure of it in all of these sources.
    """

    text: str
    support: int
    sources: tuple[int, ...]
    origins: tuple[str, ...]
    unsure: bool = False


@dataclass(frozen=True, repr=False)
class RobustAnswer:
    """An answer with its radius.

    Attributes:
        text: the answer; when `abstained`, the abstention's words, or where no answer is agreed what the sources say.
        radius: the largest r such that replacing the content of any r sources cannot change `text` (attacker:
            substitution(r); sources, not passages; each keeps its source) up to case, spacing, an article in front,
            quotes or code marks around it, and the punctuation at its ends. 0 means no guarantee.
            With `min_radius` set: `text` stays as it is or becomes an abstention. Of an answer that a prompt of the
            user's worded, it is about the agreed answer in it (`evidence["agreed"]`); of a list, about the set of
            `claims`; their order and wording are for eyes.
        abstained: no source could answer, nothing they said was agreed on, or the radius was below `min_radius`.
        query: the question.
        method: the method's name.
        sources: one report per source, in isolation order.
        choice: multiple choice: the index of the winning option.
        warnings: everything that weakens this answer or its radius, in words.
        settings: the defence's settings, JSON-safe; holds the extractor's fingerprint where one was used.
        evidence: the numbers that decided: keyword counts and threshold, vote counts, or decoding gaps; JSON-safe.
        radius_unit: `sources`; `passages` where none names its origin, so that one author may have written several.
        model_calls: prompts sent to the model (text models) or rows of the decoding session (local decoding).
        determinism: the model's reproducibility, and the radius's promise about this run.
        reasoning_chars: characters of reasoning that came with the replies; they are shown nowhere.
        spending: calls, rounds and tokens of this run. Answers that differ in it alone are equal.
        radius_verbatim: the largest r such that replacing any r sources leaves `text` as it is to the letter; at most
            `radius`, and the same where a method has one radius alone.
        claims: the items of a list, each with its own support and radius.
        trusted: the part of the trusted passages; None where the question had none. The sources are the others.
        decided_by: who decided the answer: `trusted` passages, which no other source can change; `votes` of sources;
            a `sole_source`; the `conversation`, where an answer that untrusted sources decided, or of unknown origin,
            stands in it, whoever answered. None of an abstention, and without isolation.
    """

    text: str
    radius: int
    abstained: bool
    query: str
    method: str
    sources: tuple[SourceReport, ...] = ()
    choice: int | None = None
    warnings: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    radius_unit: str = "sources"
    model_calls: int = 0
    determinism: Determinism = UNKNOWN
    reasoning_chars: int = 0
    spending: Spending = field(default=Spending(), compare=False)
    radius_verbatim: int | None = None
    claims: tuple[Claim, ...] = ()
    trusted: TrustedReport | None = None
    decided_by: DecidedBy | None = None

    def __post_init__(self) -> None:
        if self.radius_verbatim is None:
            object.__setattr__(self, "radius_verbatim", self.radius)

    def __repr__(self) -> str:
        """One line; `explain()` is the account, and `to_dict()` all of it."""
        verdict = "abstained, " if self.abstained else ""
        return (
            f"RobustAnswer({printable(self.text, 80)!r}, {verdict}radius={self.radius} of {self.whole} "
            f"{printable(self.radius_unit, 20)}, "
            f"citations={len(self.citations)}, warnings={len(self.warnings)}; to_dict() has all of it)"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-safe dictionary; `schema` names its version."""
        return {
            "schema": SCHEMA,
            **plain(self),
            "dissent": plain(self.dissent),
            "sole_source": self.sole_source,
        }

    @classmethod
    def from_dict(cls, report: Mapping[str, Any]) -> RobustAnswer:
        """Return the answer of which `to_dict` made this report; raise ValueError for anything else."""
        found = report.get("schema") if isinstance(report, Mapping) else None
        if found != SCHEMA:
            raise ValueError(f"not a report of an answer: schema is {found!r:.60}, must be {SCHEMA!r}")
        return restored(cls, report)

    def meets(self, radius: int) -> bool:
        """True if nobody who writes so many of the sources that were asked one by one could have changed the answer.

        That is an answer that trusted passages decided, or one of at least this radius; never an abstention.
        """
        check_at_least(0, radius=radius)
        return not self.abstained and (self.decided_by == "trusted" or self.radius >= radius)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources that support the answer, each with its words; those that mention it are not cited.

        Of a trusted answer one for all trusted passages: they were read together, and none is known to support it by
        itself. None for an abstention, and for a method that does not ask in isolation.
        """
        shelf = self.trusted
        if self._is_trusted and shelf is not None:
            return (Citation(1, None, shelf.passage_ids, shelf.origins, shelf.positions, ()),)
        cited = [g for g in self.sources if g.status == "supports" and g.words and not self.abstained]
        return tuple(
            Citation(number, g.index, g.passage_ids, g.origins, g.positions, g.words)
            for number, g in enumerate(cited, 1)
        )

    @property
    def _is_trusted(self) -> bool:
        """True if the trusted passages gave the answer, whatever the conversation before it holds."""
        return not self.abstained and self.trusted is not None and self.trusted.status == "answers"

    @property
    def sole_source(self) -> str | None:
        """The origin of the one source that the answer rests on, or the ids of its passages; None for any other answer.

        No other one says it.
        """
        supporting = [source for source in self.sources if source.status == "supports"]
        if self.abstained or len(supporting) != 1 or any(source.status == "not_asked" for source in self.sources):
            return None
        [sole] = supporting
        if not sole.words:
            return None  # of a method that does not ask in isolation
        return ", ".join(sole.origins or sole.passage_ids)

    @property
    def abstention(self) -> str:
        """The text of an abstention that tells nothing, by the settings."""
        return str(self.settings.get("abstention") or ABSTENTION)

    def for_prompt(self) -> RobustAnswer:
        """The answer as another prompt may hold it: an agent's, a tool's, a chat history, or a next question's.

        What may stand there is said here and nowhere else: an answer that trusted sources decided, or one that has won
        and that at least two sources give; of a list or of keywords each item. With `allow_sole_source` (`VoteRules`)
        one source will do. Anything else is an abstention: what sources say where they agree on nothing is for people,
        and so is what one of them says alone, or none as it stands.
        """
        if self.abstained:
            return self if self.text == self.abstention else replace(self, text=self.abstention)
        if self.decided_by == "trusted":
            return self
        if self.decided_by == "conversation":
            return self.withheld(
                "withheld from the next prompt: the conversation before the question holds words that no trusted "
                "source decided"
            )
        given, needed = self._given_by, max(2, self.settings.get("min_support", 2))
        if given >= (1 if self.settings.get("allow_sole_source") else needed):
            return self
        sole = self.sole_source
        lone = f"{shown_names([sole])[sole] if sole else 'one source'} alone says it"
        who = {0: "no source says it as it stands", 1: lone}.get(given, f"{given} of {needed} sources say it")
        return self.withheld(
            f"withheld from the next prompt: {who}, and its words may be an attacker's; allow_sole_source=True lets "
            "through what one source says"
        )

    @property
    def _given_by(self) -> int:
        """How many sources give the answer; of one in parts, the part that fewest give."""
        if "retained" in self.evidence:
            return int(self.evidence.get("support", 0))
        return sum(source.status == "supports" for source in self.sources)

    @property
    def is_withheld(self) -> bool:
        """True for an abstention in place of an answer that there is, and that its reader is not to have."""
        return self.abstained and "radius" in self.evidence

    def withheld(self, why: str) -> RobustAnswer:
        """Return an abstention in place of the answer; its evidence keeps the radius."""
        return replace(
            self,
            text=self.abstention,
            radius=0,
            radius_verbatim=0,
            abstained=True,
            decided_by=None,
            choice=None,
            claims=(),
            warnings=(*self.warnings, why),
            evidence={
                **self.evidence,
                "radius": self.radius,
            },
        )

    @property
    def dissent(self) -> tuple[Dissent, ...]:
        """Every other answer that sources give; where there is no answer, every answer. None of a list.

        Those with most votes first.
        """
        found = [
            Dissent(
                _words(sources[0]),
                len(sources),
                tuple(g.index for g in sources),
                _sources(sources),
                _are_unsure(sources),
            )
            for sources in self._alike()
        ]
        return () if self.claims else tuple(sorted(found, key=lambda dissent: -dissent.support))

    def _alike(self) -> list[list[SourceReport]]:
        """Return the sources that give another answer by what they say, in order."""
        alike: dict[object, list[SourceReport]] = {}
        for source in self.sources:
            if source.status in ("differs", "unsure"):
                alike.setdefault(source.keywords or source.words or source.response, []).append(source)
        return [*alike.values()]

    def telling(self, *, first: Collection[int] = (), longest: int = LONGEST) -> RobustAnswer:
        """Return the abstention whose text tells people who says what (`answers/telling.py`); itself where none does.

        Args:
            first: the indices of sources whose answers stand before the others.
            longest: characters of one answer.
        """
        items = [
            Item("\n".join(sources[0].words) or sources[0].response or "", _sources(sources), _are_unsure(sources))
            for sources in sorted(self._alike(), key=lambda alike: alike[0].index not in first)
        ]
        cut = sum(source.status == "cut" for source in self.sources)
        text = told(items, cut=cut, longest=longest) if self.abstained else ""
        return replace(self, text=text) if text else self

    def supporting(self, items: Sequence[T]) -> list[T]:
        """Return those of the items that support the answer, in their order.

        Args:
            items: the passages, documents or nodes that the answer was made from, all of them and in the same order.
        """
        places = sorted(place for citation in self.citations for place in citation.positions)
        if places and places[-1] >= len(items):
            raise ValueError(
                f"the answer was made from at least {places[-1] + 1} passages, got {len(items)}; give all of them"
            )
        return [items[place] for place in places]

    @property
    def marked_text(self) -> str:
        """`text` with `[1]`, `[2]`, ... where the citations of these numbers support it, and a list of these.

        The markers are placed by what the sources said alone, and none by the model. The radius does not cover them. A
        trusted answer has none.
        """
        return self.shown(markers=True, to="people")

    def shown(self, *, markers: bool, to: Reader) -> str:
        """The text as somebody is shown it; a model is shown no names of sources, and with markers their numbers."""
        if not markers or self._is_trusted:
            return self.text
        marked = marked_text(self.text, self.citations)
        return f"{marked}\n\n{listed(self.citations)}" if to == "people" and self.citations else marked

    @property
    def whole(self) -> int:
        """The number of sources."""
        return len(self.sources)

    def account(self) -> list[tuple[str, str]]:
        """What terminals and pages tell of the answer besides its sources: names and values, not yet made printable."""
        told = [("Question", self.query), ("Answer", self.text)]
        if self.trusted is not None:
            told.append(("Trusted", _trusted_in_words(self.trusted, self.decided_by)))
        if self.trusted is None or self.sources:
            told.append(("Radius", f"{self.radius}  ({radius_in_words(self.radius, self.whole, self.radius_unit)})"))
        noun = "passage" if self.radius_unit == "passages" else "source"
        counted = f"{count_of(len(self.sources), noun)}, {count_of(self.model_calls, 'model call')}"
        told.append(("Method", f"{self.method}, {counted}"))
        told.append(("Model", repeats_in_words(self.determinism.model, self.determinism.why)))
        if self.determinism.scope != "every_run":
            told.append(("Holds", self.determinism.promise))
        told += [("Claim", claim.in_words()) for claim in self.claims]
        left_out = self.evidence.get("left_out") or ()
        told += [("Left out", restored(Claim, claim).in_words()) for claim in left_out[:_MOST_SHOWN]]
        told += [("Differs", _dissent(d)) for d in self.dissent[:_MOST_SHOWN]]
        told += [("Warning", warning) for warning in self.warnings]
        return told + [
            ("Source", f"[{c.number}] {_names(c)}{': ' * bool(c.words)}{', '.join(c.words)[:60]}")
            for c in self.citations
        ]

    def source_rows(self) -> list[tuple[str, ...]]:
        """Each source as a row: number, passages, verdict, response, note."""
        return [_row(source) for source in self.sources]

    def verdicts(self) -> list[str]:
        """What the verdicts in `source_rows` mean, a line for each that occurs."""
        found = {source.status for source in self.sources}
        return [f"{_verdict(status)}: {meaning}" for status, meaning in VERDICTS.items() if status in found]

    def explain(self) -> str:
        """A readable account for a terminal; hostile characters in responses are neutralised."""
        counts = list((self.evidence.get("counts") or {}).items())[:_MOST_SHOWN]
        counted = [("Counts", ", ".join(f"{said} {votes}" for said, votes in counts))] * bool(counts)  # pages draw them
        lines = [
            f"{name + ':':9} {_in_lines(text) if name == 'Answer' else printable(text, 600)}"
            for name, text in [*self.account(), *counted]
        ]
        if self.sources:
            header = ("no.", "source", "verdict", "reply", "note")
            lines += ["", table(header, self.source_rows(), limits=(5, 28, 9, 60, 48)), "", *self.verdicts()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same account for a notebook; no script, and whatever passages and models said stays text."""
        from robustrag_integrations.drawing.notebook import answer_html

        return answer_html(self)


def as_answer(report: object) -> RobustAnswer:
    """Return the answer itself, or the one of which `to_dict` made this report; raise ValueError for neither."""
    return report if isinstance(report, RobustAnswer) else RobustAnswer.from_dict(report)  # type: ignore[arg-type]


def ask_report(
    model: str, answer: RobustAnswer, passages: Sequence[Passage], skipped: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The report of one question in JSON's types, as `robustrag ask --json` prints it and the playground saves it.

    `skipped` are the files that could not be read: `path` and `reason`.
    """
    return {
        "schema": ASK_SCHEMA,
        "model": model,
        "answer": answer.to_dict(),
        "passages": [{"id": p.id, "origin": p.origin, "text": p.text} for p in passages],
        "skipped": list(skipped),
    }


def _trusted_in_words(report: TrustedReport, decided_by: DecidedBy | None) -> str:
    """Tell what the trusted sources did, and what follows for the others."""
    count = len(report.origins) or len(report.passage_ids)
    noun = "source" if report.origins or not count else "passage"
    read = f"{count_of(count, f'trusted {noun}')} {'was' if count == 1 else 'were'} read together"
    told = {
        "answers": f"{read}; no other source, however many there are, changes this answer",
        "silent": f"{read}, and {'does' if count == 1 else 'do'} not hold the answer; the others were asked one by one",
        "empty": "none was found; the others were asked one by one",
        "abstains": f"{read}; the reply is neither an answer nor the phrase that was asked for: nobody else was asked",
        "failed": f"no answer: {report.error}; nobody else was asked",
    }[report.status]
    if decided_by == "conversation" and report.status == "answers":
        told = f"{read}; but the conversation before the question holds words that no trusted source decided"
    named = ", ".join(report.origins or report.passage_ids)
    return f"{told}: {printable(named, 160)}" if report.passage_ids else told


def _in_lines(text: str) -> str:
    """Return a text for a terminal, its further lines indented below the first."""
    shown = [printable(line, 600) for line in text.splitlines()[:_MOST_LINES]]
    return ("\n" + " " * 10).join(shown)


def _row(source: SourceReport) -> tuple[str, ...]:
    notes = (
        source.error,
        source.note,
        "passages cut to fit" if source.truncated else None,
    )
    said = "; ".join(filter(None, notes))
    return str(source.index + 1), _names(source), _verdict(source.status), source.response or "", said


def _verdict(status: SourceStatus) -> str:
    return status.replace("_", " ")


def _dissent(found: Dissent) -> str:
    sources = ", ".join(str(index + 1) for index in found.sources[:10]) + (", ..." if len(found.sources) > 10 else "")
    named = printable(", ".join(found.origins), 200)
    where = f"{named}; source{'s' * (len(found.sources) > 1)} {sources}"
    return f"{printable(found.text, 100)} ({where}{'; unsure' * found.unsure})"


def _sources(sources: Sequence[SourceReport]) -> tuple[str, ...]:
    named = (name for g in sources for name in (g.origins or g.passage_ids or ("",)))
    return tuple(dict.fromkeys(named))


def _are_unsure(sources: Sequence[SourceReport]) -> bool:
    return all(source.status == "unsure" for source in sources)


def _words(source: SourceReport) -> str:
    """Return a source's answer as people are shown it: in one line, without its links."""
    text = " ".join((", ".join(source.words) or source.response or "").split())
    return without_links(text[:LONGEST_SHOWN]) + "…" * (len(text) > LONGEST_SHOWN)


def _names(of: SourceReport | Citation) -> str:
    return printable(", ".join(of.origins or of.passage_ids), 60)
