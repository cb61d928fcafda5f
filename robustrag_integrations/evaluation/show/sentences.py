"""The outcome of a run in sentences, for people who know none of its words. Names come from data and are hostile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.evaluation.attacks.families import ATTACKS, no_answer
from robustrag_integrations.evaluation.score.intervals import Interval
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.summary import Line

TASKS: Mapping[str, str] = {
    "short_answer": "short answers",
    "multiple_choice": "multiple choice",
    "long_form": "long answers",
    "list": "lists",
}
PLAIN = "plain RAG"
_MOST_ATTACKS, _MOST_SETUPS = 3, 4

Block = tuple[Line, ...]


def blocks(lines: Sequence[Line]) -> list[Block]:
    """Lines of one data set, task, model and metric together: what one table shows."""
    found: dict[tuple[str | None, ...], list[Line]] = {}
    for line in lines:
        found.setdefault((line.dataset, line.task, line.model, line.metric), []).append(line)
    return [tuple(block) for block in found.values()]


def setup_in_words(line: Line) -> str:
    """The setup's label; what is called `vanilla` on the command line is plain RAG to people."""
    return line.setup.replace("vanilla", PLAIN, 1) if line.method == "vanilla" else line.setup


def outcome_in_words(lines: Sequence[Line]) -> list[str]:
    """A sentence for each attack, three at most for a data set and model, or one about answers without an attack."""
    several = blocks(lines)
    said = [(f"{_about(block[0])}: " if len(several) > 1 else "", s) for block in several for s in _sentences(block)]
    return [printable(about + sentence, 1000) for about, sentence in said] or ["This run has no rows yet."]


def _about(line: Line) -> str:
    return f"{printable(line.dataset, 60)} ({TASKS.get(line.task, line.task)}), {printable(line.model, 60)}"


def _sentences(block: Block) -> Iterator[str]:
    by_attack: dict[AttackSpec, list[Line]] = {}
    for line in block:
        by_attack.setdefault(line.attack, []).append(line)
    if not any(line.n for line in block):
        yield f"No question was answered: all {count_of(sum(line.failed for line in block), 'row')} failed."
        return
    if trusted := _trusted(block):
        yield f"Decided by trusted sources: {trusted}."
    attacked = {a: listed for a, listed in by_attack.items() if any(line.asr.mean is not None for line in listed)}
    attacked.pop(AttackSpec(), None)
    worst = sorted(attacked, key=lambda a: -max(line.asr.mean or 0.0 for line in attacked[a]))[:_MOST_ATTACKS]
    several_ranks = len({attack.rank for attack in attacked}) > 1
    for attack in attacked:
        if attack in worst:
            yield f"{_planted(attack, several_ranks)}: {_hijacked(attack, attacked[attack])}."
    if len(attacked) > len(worst):
        yield f"{len(attacked) - len(worst)} more attacks, which did no more, are in the table."
    if not attacked:
        yield from _clean(by_attack.get(AttackSpec(), list(block)))


def _trusted(block: Block) -> str:
    """How many answers of each setup trusted sources decided, under all attacks; empty where none."""
    counts: dict[str, list[int]] = {}
    for line in block:
        count = counts.setdefault(setup_in_words(line), [0, 0])
        count[0] += line.trusted
        count[1] += line.n
    return "; ".join(
        f"{setup} {decided} of {count_of(n, 'answer')}" for setup, (decided, n) in counts.items() if decided
    )


def _planted(attack: AttackSpec, several_ranks: bool) -> str:
    known = ATTACKS.get(attack.name)
    does = known.summary if known else f"comes from {attack.name}"
    count = attack.corruption_size
    place = f" (at rank: {attack.rank})" if several_ranks else ""
    many = "One planted passage that" if count == 1 else f"{count} planted passages, each of which"
    return f"{many} {does}{place}"


def _hijacked(attack: AttackSpec, lines: Sequence[Line]) -> str:
    """What each setup said, plain RAG first."""
    known = ATTACKS.get(attack.name)
    refused = known is not None and known.target is no_answer
    linked = known is not None and known.goal == "link"
    did = "gave no answer" if refused else "showed the attacker's link" if linked else "said the attacker's answer"
    counted = [line for line in _plain_first(lines) if line.asr.mean is not None]
    first = counted[0]
    parts = [f"{setup_in_words(first)} {did} in {_of(first.asr)} question{'s' * (first.asr.n != 1)}"]
    parts[0] += _weight(first) if first.method != "vanilla" else ""
    for line in counted[1:_MOST_SETUPS]:
        count = _of(line.asr) if line.asr.n != first.asr.n else str(_count(line.asr))
        parts.append(f"{setup_in_words(line)} in {count}{_weight(line)}")
    return ("; " if len(parts) > 2 else ", ").join(parts)


def _weight(line: Line) -> str:
    """What the attacker's answers are worth: their radius, and whether a second source answered at all."""
    if not _count(line.asr):
        return ""
    return f" ({_count(line.asr_held)} {_withstood(line)}, {line.asr_sole} on one source alone)"


def _clean(lines: Sequence[Line]) -> Iterator[str]:
    """Without an attack: who was right, or graded how."""
    ordered = _plain_first(lines)[:_MOST_SETUPS]
    if graded := [line for line in ordered if line.judge.mean is not None]:
        scores = ", ".join(f"{setup_in_words(line)} {line.judge.mean or 0.0:.0f}" for line in graded)
        yield f"Without an attack the judge gave, of 100: {scores}."
    elif counted := [line for line in ordered if line.accuracy.mean is not None]:
        parts = [f"{setup_in_words(line)} was right in {_of(line.accuracy)} questions{_held(line)}" for line in counted]
        yield f"Without an attack: {'; '.join(parts)}."
    else:
        answered = count_of(sum(line.n for line in lines), "answer")
        yield f"{answered} came, and nothing is scored: long answers need a judge (--set judge=MODEL)."


def _held(line: Line) -> str:
    right, held = _count(line.accuracy), _count(line.held[0]) if line.held else 0
    if line.method == "vanilla" or not right:
        return ""
    return f", {held if held else 'none'} of them {_withstood(line)}"


def _withstood(line: Line) -> str:
    return "with a radius of at least 1" + " or decided by trusted sources" * (line.trusted > 0)


def _plain_first(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.method != "vanilla")


def _count(share: Interval) -> int:
    return round((share.mean or 0.0) * share.n)


def _of(share: Interval) -> str:
    return f"{_count(share)} of {share.n}"
