"""The lines of a summary in sentences, for people who know none of its words, and as tables of nine columns.

Names come from data and are hostile.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from robustrag_integrations._util.display import decimals, printable
from robustrag_integrations._util.words import count_of
from robustrag_integrations.evaluation.attacks.families import ATTACKS, no_answer
from robustrag_integrations.evaluation.score.rows import AttackSpec
from robustrag_integrations.evaluation.score.scoring import METRIC_OF_TASK
from robustrag_integrations.evaluation.score.summary import EMPTY, Interval, Line, kind_of_warning

TASKS: Mapping[str, str] = {
    "short_answer": "short answers",
    "multiple_choice": "multiple choice",
    "long_form": "long answers",
    "list": "lists",
}
PLAIN = "plain RAG"
_MOST_ATTACKS, _MOST_SETUPS = 3, 4

Block = tuple[Line, ...]
LEGEND: Mapping[str, str] = {
    "method": f"the method and its settings; {PLAIN} (--method vanilla) is one prompt with all passages",
    "attack": "what was planted among the passages; none: the same questions without an attack",
    "right": "a right answer, or none where there is none; of long answers the judge's mean score",
    "abstains": "no answer",
    "attacker's": "the attacker's answer, or what else the attack wants: no answer, a link",
    "attacker's r>=1": "the same, decided by trusted sources or with a radius of at least 1",
    "right r>=1, 2, 3": "right, and nothing that r sources say can change it: decided by trusted sources, or with a "
    "radius of at least r; min_radius=1 shows no other answers than those of r>=1",
}
"""The columns of the main table, with their meaning."""
_BUNDLED = "bundled: a small reader that ships to try things out; its shares say nothing about other models (--model)"
WIDTH = 120  # characters of the main table, if nothing is known of the terminal

_BETWEEN = 2  # columns
_NARROWEST = 8  # a column of names
_SHARES = ("right", "abstains", "attacker's", "attacker's r>=1", *(f"right r>={r}" for r in (1, 2, 3)))
_MODES = {"injection": "injected", "modification": "modified"}
MOST_WARNINGS = 8  # kinds of warnings below a table


@dataclass(frozen=True)
class Table:
    """A table; its first `keys` columns say what a row is about. Cells are made harmless where they are shown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    notes: Sequence[str] = ()

    def as_text(self, width: int = 10_000) -> str:
        """The table for a terminal: its header, and names that are too long, are broken into lines; nothing is cut."""
        cells = [[printable(cell, 300) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells[1:], strict=True)]
        for i, name in enumerate(cells[0]):
            widths[i] = max(widths[i], *map(len, name.split()))
        while sum(widths) + _BETWEEN * (len(widths) - 1) > width and max(widths[: self.keys]) > _NARROWEST:
            widths[widths.index(max(widths[: self.keys]))] -= 1
        header, *rows = (_broken(row, widths) for row in cells)
        lines = [*header, _joined(["-" * w for w in widths], widths), *itertools.chain.from_iterable(rows)]
        notes = [textwrap.fill(printable(note, 600), width, subsequent_indent="  ") for note in self.notes]
        parts = (textwrap.fill(printable(self.title, 400), width), "\n".join(lines), "\n".join(notes))
        return "\n\n".join(filter(None, parts))


def _broken(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [textwrap.wrap(cell, w, break_on_hyphens=False) or [""] for cell, w in zip(row, widths, strict=True)]
    return [_joined(parts, widths) for parts in itertools.zip_longest(*wrapped, fillvalue="")]


def _joined(parts: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _BETWEEN).join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()


def main_tables(lines: Sequence[Line]) -> list[Table]:
    """A table for each data set, task, model and metric, nine columns wide; shares in percent, without intervals.

    Where answers were certified, a second one says what is proved.
    """
    return [table for block in blocks(lines) for table in (_main_table(block), *_proved(block))]


def _main_table(block: Block) -> Table:
    attacks = [line.attack for line in block if not line.clean]
    names = [(setup_in_words(line), _attack_cell(line.attack, attacks)) for line in block]
    shares = list(zip(*map(_shares, block), strict=True))
    kept = [(name, column) for name, column in zip(_SHARES, shares, strict=True) if any(s.n for s in column)]
    rows = [(*row, *(_percent(column[i]) for _, column in kept)) for i, row in enumerate(names)]
    header = ("method", "attack", *(name for name, _ in kept))
    notes = [f"{name}: {meaning}" for name, meaning in LEGEND.items() if name.split(",")[0] in header]
    ends = [(s.mean - s.low, s.high - s.mean) for _, c in kept for s in c if None not in (s.mean, s.low, s.high)]
    if ends:
        off = decimals(max(map(max, ends)), 0, 100)
        notes.append(f"With so many questions chance alone moves a share by up to {off} points (95%).")
    return Table(_title(block, attacks), header, rows, 2, notes)


def _shares(line: Line) -> tuple[Interval, ...]:
    right = _as_share(line.judge) if line.task == "long_form" else line.accuracy
    under_attack = (EMPTY, EMPTY) if line.clean else (line.asr, line.asr_held)
    return (right, line.abstention, *under_attack, *(line.held or (EMPTY,) * 3))


def _as_share(score: Interval) -> Interval:
    mean, low, high = (None if end is None else end / 100 for end in (score.mean, score.low, score.high))
    return Interval(mean, low, high, score.n)


def _percent(share: Interval) -> str:
    return "-" if share.mean is None else decimals(share.mean, 0, 100)


def _title(block: Block, attacks: Sequence[AttackSpec]) -> str:
    """What all rows share: data, model, number of passages, and what is planted where."""
    first, counts = block[0], sorted({line.n for line in block})
    questions = count_of(counts[-1], "question") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} questions"
    sizes, ranks = {a.corruption_size for a in attacks}, {a.rank for a in attacks}
    own = first.metric in (None, METRIC_OF_TASK.get(first.task))
    metric = "" if own else f", by {printable(first.metric or '', 60)}"
    top = {line.top_k for line in block}
    passages = f", {count_of(k, 'passage')} each" if len(top) == 1 and (k := first.top_k) else ""
    planted = [f"{sizes.pop()} planted"] if len(sizes) == 1 else []
    planted += [f"at rank: {ranks.pop()}"] if len(ranks) == 1 else []
    attacked = f"; {', '.join(planted)}" if planted else ""
    return f"Percent of {questions}: {_about(first, metric)}{passages}{attacked}"


def _attack_cell(attack: AttackSpec, attacks: Sequence[AttackSpec]) -> str:
    """The attack, and of its size, rank, repeats and seed what differs among the attacks."""
    if attack.name == "none":
        return "none"
    size = f" {attack.corruption_size} planted" if len({a.corruption_size for a in attacks}) > 1 else ""
    rank = f" {attack.rank}" if len({a.rank for a in attacks}) > 1 else ""
    repeat = f" x{attack.repeat}" if len({a.repeat for a in attacks}) > 1 and attack.repeat else ""
    seed = f" seed {attack.seed}" if len({a.seed for a in attacks}) > 1 else ""
    return f"{attack.name}{size}{rank}{repeat}{seed}"


def _proved(block: Block) -> list[Table]:
    attackers = sorted({(c.attack, c.corruption_size) for line in block for c in line.certified})
    if not attackers:
        return []
    rows = [(setup_in_words(line), *(_tau(line, each) for each in attackers)) for line in block if line.certified]
    header = ("method", *(f"{size} {_MODES.get(mode, mode)}" for mode, size in attackers))
    what = "the judge's score" if block[0].task == "long_form" else "the share that is right"
    note = (
        f"tau: at least this is {what}, whatever attackers write in so many passages. Injected ones come in anywhere, "
        "and the last ones drop out; modified ones are changed in place. Undecided ones count as 0. [low, high]: 95%."
    )
    return [Table("Certified: the mean tau, of 100", header, rows, 1, [note])]


def _tau(line: Line, attacker: tuple[str, int]) -> str:
    found = [c.score for c in line.certified if (c.attack, c.corruption_size) == attacker]
    return with_ends(found[0], 1 if line.task == "long_form" else 100) if found else "-"


def remarks(lines: Sequence[Line]) -> list[str]:
    """What weakens the numbers, each once: failed rows, certificates that were not decided, and answers' warnings."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for line in lines:
        for text, count in line.warnings.items():
            examples.setdefault(kind_of_warning(text), text)
            counts[kind_of_warning(text)] += count
    of = f"of {sum(line.n for line in lines)} answers"
    said = [f"Warning of {count} {of}, such as: {examples[kind]}" for kind, count in counts.most_common()]
    more = [f"and {len(said) - MOST_WARNINGS} more kinds of warnings"] if len(said) > MOST_WARNINGS else []
    found = dict.fromkeys(note for line in lines for note in _remarks(line))
    if any(line.model == "bundled" for line in lines):
        found[_BUNDLED] = None
    return [printable(text, 500) for text in (*found, *said[:MOST_WARNINGS], *more)]


def _remarks(line: Line) -> list[str]:
    about = ", ".join([line.dataset, line.setup, str(line.attack)])
    found = [f"{about}: {count} failed: {error}" for error, count in line.errors.items()]
    if line.unreadable:
        who = (
            "the judge's replies held no score"
            if line.task == "long_form"
            else f"the metric {line.metric} failed on them"
        )
        found.append(f"{about}: {line.unreadable} of {line.n} scores are 0 because {who}")
    for c in line.certified:
        if c.undecided:
            against = f"certificates against {c.attack} k'={c.corruption_size}"
            found.append(f"{about}: {c.undecided} of {c.score.n} {against} undecided, counted as 0")
    return found


def with_ends(interval: Interval, scale: int) -> str:
    """A mean with its interval, times a scale; "-" where there is none."""
    if interval.mean is None:
        return "-"
    mean = decimals(interval.mean, 1, scale)
    if interval.low is None or interval.high is None:
        return mean
    return f"{mean} [{decimals(interval.low, 0, scale)}, {decimals(interval.high, 0, scale)}]"


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


def _about(line: Line, metric: str = "") -> str:
    return f"{printable(line.dataset, 80)} ({TASKS.get(line.task, line.task)}{metric}), {printable(line.model, 80)}"


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
