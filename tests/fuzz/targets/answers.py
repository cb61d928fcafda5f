"""Answers and certificates as they are shown and stored."""

from __future__ import annotations

from robustrag_integrations.answers.answer import RobustAnswer, SourceReport
from robustrag_integrations.certification.result import Certification, PossibleResponse
from tests.fuzz.checks import assert_harmless_on_a_terminal, assert_json
from tests.fuzz.hostile import name, text, value
from tests.fuzz.source import Source, Target


def an_answer(source: Source) -> RobustAnswer:
    """An answer whose every text is hostile."""
    sources = [
        SourceReport(
            index,
            tuple(source.some(lambda: name(source), 3)),
            tuple(source.some(lambda: name(source), 2)),
            source.pick(("supports", "differs", "abstained", "failed")),
            text(source) if source.chance(2) else None,
            tuple(source.some(lambda: name(source), 3)),
            error=name(source) if source.chance(3) else None,
            truncated=source.chance(2),
        )
        for index in range(source.below(5))
    ]
    counts = {name(source): source.below(9) for _ in range(source.below(6))}
    return RobustAnswer(
        text=text(source),
        radius=source.below(4),
        abstained=source.chance(2),
        query=text(source),
        method=source.pick(("keyword", "decoding", "voting")),
        sources=tuple(sources),
        warnings=tuple(source.some(lambda: text(source, 3, 500), 2)),
        settings={"extractor": name(source), "more": value(source)},
        evidence={"counts": counts, "threshold": 3.0, "retained": list(counts)} if counts else {},
    )


def answers(source: Source) -> None:
    """`explain` and `to_dict` of an answer full of hostile texts."""
    answer = an_answer(source)
    shown = answer.explain()
    assert_harmless_on_a_terminal(shown)
    assert len(shown) < 20_000
    assert_json(answer.to_dict())
    assert_json(Certification.to_dict(a_certificate(source)))


def a_certificate(source: Source) -> Certification:
    """A certificate whose every text is hostile."""
    responses = [
        PossibleResponse(text(source) if source.below(4) else None, float(source.below(2)), name(source), i)
        for i in range(source.below(4))
    ]
    return Certification(
        tau=source.pick((0.0, 1.0, 57.5)),
        certified=source.chance(2),
        corruption_size=source.below(4),
        attack=source.pick(("injection", "modification")),
        query=text(source),
        references=(name(source), name(source)),
        metric=name(source),
        method="keyword",
        responses=tuple(responses),
        stopped=text(source) if source.chance(2) else None,
        warnings=tuple(source.some(lambda: text(source, 3, 500), 2)),
        settings={"model": name(source)},
        evidence={"counts": {name(source): 2}},
    )


def certificates(source: Source) -> None:
    """`explain` and `to_dict` of a certificate full of hostile texts."""
    found = a_certificate(source)
    assert_harmless_on_a_terminal(found.explain())
    assert_json(found.to_dict())


TARGETS = (Target("answers", answers, 2), Target("certificates", certificates, 6))
