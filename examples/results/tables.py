"""Keeps rows of runs, and writes the tables of the pages from what is kept.

pip install '.[eval]'
python examples/results/tables.py keep NAME RUN.jsonl ...    # rows of `robustrag eval`, in place of those kept as NAME
python examples/results/tables.py trust NAME RUN.jsonl ...   # rows of examples/handbook/uploads.py
python examples/results/tables.py silence NAME RUN.jsonl ... # rows of examples/handbook/silence.py
python examples/results/tables.py                            # the tables between the marks of the pages
"""

import csv
import gzip
import io
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustrag_integrations.answers.answer import ANSWERING
from robustrag_integrations.certification.metrics import contains_answer
from robustrag_integrations.evaluation.score.rows import Row, read_run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = ("README.md", "docs/internals/real-models.md")
ROWS, REPLIES = HERE / "rows.csv.gz", HERE / "replies.csv.gz"
TRUST, SILENCE = HERE / "trust.csv.gz", HERE / "silence.csv.gz"
PLAIN, OURS = "vanilla", "consensus"
NAMES = {
    PLAIN: "plain RAG",
    "vanilla-letters": "plain RAG, by letters",
    OURS: "**consensus**",
    "consensus by majority": 'consensus, `agreement="majority"`',
    "consensus, unsure abstain": 'consensus, `unsure="abstain"`',
    "keyword-paper": "keyword, as in the paper",
    "decoding paper": "decoding, the paper's prompt",
}
ATTACKS = {"pia": "injection", "poison": "poison"}
MODELS = ("qwen-0.5b", "qwen-1.5b")
BARE = (PLAIN, "vanilla-letters")  # without a radius
DRAWS = 2_000  # of questions, for an interval


class Kept(NamedTuple):
    """One answer."""

    run: str
    model: str
    dtype: str
    task: str
    setup: str
    attack: str
    rank: str
    planted: int
    question: str
    right: int
    hijacked: int
    told: int
    abstained: int
    radius: int

    @classmethod
    def of(cls, run: str, row: Row) -> "Kept":
        """An answer of an evaluation."""
        scores, answer, attack = row["scores"], row["answer"], row["attack"]
        model, _, settings = row["model"].partition(" (")
        about = (run, model.rpartition("/")[2], settings.partition("dtype=")[2].split(",")[0].strip(")"), row["task"])
        place = (attack["name"], attack["rank"] if attack["corruption_size"] else "", attack["corruption_size"])
        marks = (int(scores["correct"] == 1), *(int(bool(scores[n])) for n in ("hijacked", "told", "abstained")))
        return cls(*about, row["setup"], *place, row["question_id"], *marks, answer["radius"])


class Reply(NamedTuple):
    """One source's answer, without an attack, and how sure the model was of it."""

    run: str
    model: str
    question: str
    kind: str
    right: int
    confidence: float


class Asked(NamedTuple):
    """An answer about the handbook while strangers plant files; `right` may be a share, `cpu` is in seconds."""

    run: str
    question: str
    kind: str
    setup: str
    planted: int
    right: float
    hijacked: int
    abstained: int
    told: int
    decided_by: str
    trusted: str
    radius: int
    calls: int
    cpu: float


class Silent(NamedTuple):
    """A reply to a request for silence; `there`: the passages hold the answer; what passes two forms of the gate."""

    run: str
    question: str
    kind: str
    there: int
    request: str
    place: str
    status: str
    right: float
    passes: int
    passes_own: int


def _replies(row: Row) -> list[tuple[str, float | None]]:
    sources = row["answer"].get("sources", ())
    return [(g["response"], g.get("confidence")) for g in sources if g["status"] in ANSWERING and g["response"]]


def kind_of(row: Row) -> str:
    """What a question asks for: yes or no, a number or date, or words."""
    answer = row["answers"][0]
    if answer.casefold() in ("yes", "no", "ja", "nein"):
        return "yes or no"
    return "a number or a date" if re.search(r"\d", answer) else "words"


def keep(run: str, files: Iterable[str]) -> None:
    """Put a run's rows and replies in place of those kept under its name."""
    found = [row for file in files for row in read_run(file).rows if row["error"] is None]
    rows = {Kept.of(run, row): None for row in found}
    replies = {
        Reply(run, Kept.of(run, row).model, row["question_id"], kind_of(row), int(right), sure): None
        for row in found
        if row["setup"] == OURS and row["attack"]["name"] == "none"
        for said, sure in _replies(row)
        if sure is not None
        for right in [contains_answer(said, row["answers"]) > 0]
    }
    write(ROWS, Kept, [*(r for r in kept() if r.run != run), *rows])
    write(REPLIES, Reply, [*(r for r in kept_replies() if r.run != run), *replies])
    kept.cache_clear()


def keep_as(kind: Any, path: Path, run: str, files: Iterable[str]) -> None:
    """Put rows of a script in place of those kept under its name."""
    rows = (json.loads(line) for file in files for line in Path(file).read_text(encoding="utf-8").splitlines())
    new = [
        kind(**{n: "" if (v := {**row, "question": row["id"], "run": run}[n]) is None else v for n in kind._fields})
        for row in rows
    ]
    write(path, kind, [*(r for r in kept_as(kind, path) if r.run != run), *new])


def kept_as(kind: Any, path: Path) -> list[Any]:
    """Rows of a script that are kept."""
    types = kind.__annotations__
    return [kind(**{name: types[name](value) for name, value in row.items()}) for row in _read(path)]


def write(path: Path, kind: Any, rows: Iterable[Any]) -> None:
    """Write a table, the same bytes for the same rows."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(kind._fields)
    out.writerows(sorted(rows, key=str))
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


def _read(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        yield from csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))


@cache
def kept() -> list[Kept]:
    """The answers that are kept."""
    numbers = ("planted", "right", "hijacked", "told", "abstained", "radius")
    return [Kept(**{**row, **{n: int(row[n]) for n in numbers}}) for row in _read(ROWS)]  # type: ignore[arg-type]


def kept_replies() -> list[Reply]:
    """The replies that are kept."""
    return [Reply(**{**r, "right": int(r["right"]), "confidence": float(r["confidence"])}) for r in _read(REPLIES)]  # type: ignore[arg-type]


def share(rows: Sequence[Kept], mark: str, radius: int = 0) -> str:
    """The percentage of rows with a mark, and with at least this radius; empty without rows."""
    return f"{100 * sum(getattr(r, mark) and r.radius >= radius for r in rows) / len(rows):.0f}" if rows else ""


def right(rows: Sequence[Kept]) -> str:
    """The percentage that is right, and what was told beside other answers."""
    told = share(rows, "told")
    return share(rows, "right") + (f" + {told}" if told not in ("", "0") else "")


class Answers:
    """The kept answers of runs whose names begin so, by setup, attack and number of planted passages."""

    def __init__(self, run: str) -> None:
        self._rows: dict[tuple[str, str, int], list[Kept]] = defaultdict(list)
        for row in kept():
            if row.run.startswith(run):
                self._rows[row.setup, row.attack, row.planted].append(row)
        found = {setup for setup, *_ in self._rows}
        self.setups = [*(s for s in NAMES if s in found), *sorted(found - NAMES.keys())]

    def get(self, setup: str, attack: str = "none", planted: int = 0, of: Iterable[str] | None = None) -> list[Kept]:
        """The rows of some questions, at the rank where the attacker's answer comes out most often."""
        asked = None if of is None else set(of)
        ranks = defaultdict(list)
        for row in self._rows[setup, attack, planted]:
            if asked is None or row.question in asked:
                ranks[row.rank].append(row)
        return max(ranks.values(), key=lambda rows: sum(r.hijacked for r in rows), default=[])

    def both(self, *at: Any) -> set[str]:
        """The questions that plain RAG and consensus were asked, without an attack or with one."""
        return {r.question for r in self.get(PLAIN, *at)} & {r.question for r in self.get(OURS, *at)}

    def cells(self, setup: str, places: Iterable[tuple[str, int]], of: Iterable[str] | None = None) -> list[str]:
        """Right and the attacker's under each attack, with n where it is less than without one."""
        asked = len(self.get(setup, of=of))
        found = [self.get(setup, *place, of) for place in places]
        few = [f" (n = {len(rows)})" if 0 < len(rows) < asked else "" for rows in found]
        return [
            f"{right(rows)} / {share(rows, 'hijacked')}{n}" * bool(rows) for rows, n in zip(found, few, strict=True)
        ]


def table(*rows: Sequence[object]) -> str:
    """Rows in Markdown, the first of them the head."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def size(model: str) -> str:
    """A model's name in tables."""
    return model.partition("-")[2].upper()


def headline() -> str:
    """Plain RAG and consensus on the same questions."""
    head = "Qwen2.5-Coder, RealtimeQA: correct + listed among conflicting answers / the attacker's answer, percent"
    lines: list[Sequence[object]] = [(head, "no attack", "1 of 10 passages gives orders", "3 of 10")]
    places = (("none", 0), ("pia", 1), ("pia", 3))
    for model in MODELS:
        found = Answers(f"realtimeqa-{model}")
        same = set.intersection(*(found.both(*place) for place in places))
        sides = zip(found.cells(PLAIN, places, same), found.cells(OURS, places, same), strict=True)
        lines.append(
            (
                f"{size(model)}, {len(same)} questions: plain RAG; **RobustRAG**",
                *(f"{plain}; **{ours}**" for plain, ours in sides),
            )
        )
    return table(*lines)


def methods(data: str, *places: tuple[str, int]) -> str:
    """All methods on a data set."""
    attacks = (f"{ATTACKS[attack]}, k' = {planted}" for attack, planted in places)
    lines: list[Sequence[object]] = [("", "n", "right + told", "wrong", "r >= 1, 2, 3", "wrong, r >= 1", *attacks)]
    for model in MODELS:
        found = Answers(f"{data}-{model}")
        for setup in found.setups:
            clean = found.get(setup)
            wrong = [row._replace(right=not row.right and not row.abstained) for row in clean]
            radii = (", ".join(share(clean, "right", k) for k in (1, 2, 3)), share(wrong, "right", 1))
            about = (f"{size(model)}: {NAMES.get(setup, setup)}", len(clean), right(clean), share(wrong, "right"))
            lines.append((*about, *(("-", "-") if setup in BARE else radii), *found.cells(setup, places)))
    return table(*lines)


def areas(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """The probability that a right reply is surer than a wrong one, equal ones counting one half.

    Both are numbers of replies, [..., levels] from the least sure on.
    """
    below = np.cumsum(wrong, -1) - wrong / 2
    return (right * below).sum(-1) / (right.sum(-1) * wrong.sum(-1))


def confidence() -> str:
    """How well confidence tells right replies from wrong ones, with intervals over questions."""
    head = ("", "questions: right, wrong replies", "area under the curve", "right, wrong from 0.5 on", "best level")
    lines: list[Sequence[object]] = [head]
    replies = kept_replies()
    for run in sorted({r.run for r in replies}):
        for kind in ("all", *sorted({r.kind for r in replies})):
            own = [r for r in replies if r.run == run and kind in ("all", r.kind)]
            asked, levels = sorted({r.question for r in own}), sorted({r.confidence for r in own} | {0.5})
            counts = np.zeros((2, len(asked), len(levels)))
            for r in own:
                counts[r.right, asked.index(r.question), levels.index(r.confidence)] += 1
            wrong, right = counts.sum(1)
            if min(right.sum(), wrong.sum()) < 10:
                continue
            drawn = np.random.default_rng(0).multinomial(len(asked), [1 / len(asked)] * len(asked), DRAWS)
            with np.errstate(invalid="ignore"):  # a draw without right or wrong replies
                low, high = np.nanquantile(areas(drawn @ counts[1], drawn @ counts[0]), (0.025, 0.975))
            from_on = [side[::-1].cumsum()[::-1] / side.sum() for side in (right, wrong)]
            best = levels[int(np.argmax(from_on[0] - from_on[1]))]
            half = ", ".join(f"{100 * side[levels.index(0.5)]:.0f}%" for side in from_on)
            about = f"{len(asked)}: {right.sum():.0f}, {wrong.sum():.0f}"
            lines.append(
                (f"{run}: {kind}", about, f"{areas(right, wrong):.2f} [{low:.2f}, {high:.2f}]", half, f"{best:.2f}")
            )
    return table(*lines)


def others() -> str:
    """Other papers' defences, and the paper's and this project's on the same questions."""
    peers, own = Answers("peers-qwen-0.5b"), Answers("realtimeqa-qwen-0.5b")
    same = {row.question for row in peers.get(PLAIN)}
    lines: list[Sequence[object]] = [("", "n", "no attack: right", "injection", "poison", "conditional")]
    for setup, found in ((OURS, own), ("keyword-paper", own), *((s, peers) for s in peers.setups)):
        clean = found.get(setup, of=same)
        cells = found.cells(setup, [(attack, 1) for attack in (*ATTACKS, "conditional")], same)
        lines.append((NAMES.get(setup, f"`{setup}`"), len(clean), right(clean), *cells))
    return table(*lines)


def worse() -> str:
    """Every figure of this project that is worse than plain RAG's, or another defence's, on the same questions."""
    lines: list[Sequence[object]] = [("", "n", "the other's", "ours")]
    for model in MODELS:
        for corpus in ("", *CORPORA):
            for kind, name in (("fact", ""), ("upload", "answer in an upload alone"), ("long", "long answers, points")):
                what = ", ".join(filter(None, (f"{corpus or 'handbook'} trusted", name, f"{size(model)}: plain RAG")))
                lines += _behind_plain(f"{corpus}-{model}".strip("-"), kind, what)
    for model in MODELS:
        for run, name in (("realtimeqa", "RealtimeQA"), ("news", "news 2022 to 2024")):
            found = Answers(f"{run}-{model}")
            lines += _behind(found, found, PLAIN, f"{name}, {size(model)}: plain RAG")
    ours, peers = Answers("realtimeqa-qwen-0.5b"), Answers("peers-qwen-0.5b")
    for setup in (s for s in peers.setups if s != PLAIN):
        lines += _behind(peers, ours, setup, f"RealtimeQA, 0.5B: `{setup}`")
    return table(*lines)


def _behind_plain(run: str, kind: str, what: str) -> Iterator[Sequence[object]]:
    of = {"fact": answered_there, "long": LONG.__contains__}.get(kind, kind.__eq__)
    found = [one for _, _, one in compared(run, of, ("plain, handbook" if kind == "long" else "plain, both", OWN))]
    for planted in FLOODS if len(found) == 2 else ():
        sides = [side[planted] for side in found]
        if len(sides[0]) == len(sides[1]):
            for mark, name, sign in (("right", "right", 1), ("hijacked", "the stranger's answer", -1)):
                sums = [sum(getattr(r, mark) for r in side) for side in sides]
                if sign * (sums[0] - sums[1]) > 0:
                    place = f", {planted} planted" * bool(planted)
                    shares = (mean(getattr(r, mark) for r in side) for side in sides)
                    yield f"{what}{place}: {name}", len(sides[0]), *shares


def _behind(theirs: Answers, ours: Answers, setup: str, what: str) -> Iterator[Sequence[object]]:
    for attack, planted in (("none", 0), ("pia", 1), ("pia", 3), ("poison", 1), ("poison", 3)):
        other, own = theirs.get(setup, attack, planted), ours.get(OURS, attack, planted)
        same = {r.question for r in other} & {r.question for r in own}
        place = "" if attack == "none" else f", {ATTACKS[attack]}, k' = {planted}"
        for mark, name, sign in (("right", "right", 1), ("hijacked", "the attacker's answer", -1)):
            sides = [[r for r in side if r.question in same] for side in (other, own)]
            counts = [sum(getattr(r, mark) for r in side) for side in sides]
            if sign * (counts[0] - counts[1]) > 0:
                yield f"{what}{place}: {name}", len(same), *(share(side, mark) for side in sides)


LONG = ("how-to", "comparison", "summary", "why")
FLOODS = (0, 3, 40)
OWN = "trust first"
SETUPS = ("plain, both", "plain, handbook", "consensus, both", OWN)
Planted = dict[int, list["Asked"]]  # answers by the number of planted files


def answered_there(kind: str) -> bool:
    """True for questions of one fact that the handbook answers."""
    return kind not in (*LONG, "upload", "nowhere")


def compared(
    run: str, kinds: Callable[[str], bool], setups: Collection[str] = SETUPS
) -> Iterator[tuple[str, int, Planted]]:
    """Setups, the number of their questions, and their answers: on the questions that the most asked setups share."""
    rows = [r for r in kept_as(Asked, TRUST) if r.run == run and kinds(r.kind) and r.setup in setups]
    own = {s: {r.question for r in rows if r.setup == s and not r.planted} for s in setups}
    own = {setup: asked for setup, asked in own.items() if asked}
    most = max(map(len, own.values()), default=0)
    same = set.intersection(*(asked for asked in own.values() if len(asked) >= 0.9 * most)) if own else set()
    for setup, asked in own.items():
        found: Planted = defaultdict(list)
        for row in rows:
            if row.setup == setup and row.question in same:
                found[row.planted].append(row)
        yield setup, len(asked & same), found


def cells_of(found: Planted, counts: Iterable[int] = FLOODS) -> list[str]:
    """For each number of planted files how many answers are right, and the stranger's, in percent; n where less."""
    asked = ((found.get(n, []), len(found[0])) for n in counts)
    return [
        f"{mean(r.right for r in own)} / {mean(r.hijacked for r in own)}{f' (n = {len(own)})' * (len(own) < most)}"
        * bool(own)
        for own, most in asked
    ]


def mean(values: Iterable[float]) -> str:
    """A mean in percent; empty without values."""
    found = list(values)
    return f"{100 * sum(found) / len(found):.0f}" if found else ""


def planted_headline() -> str:
    """README's table: plain RAG over all and trust first, while strangers plant files beside a trusted handbook."""
    head = "Qwen2.5-Coder, a trusted handbook beside uploads: correct / the strangers' answer, percent"
    counts = (0, 3, 40)
    lines: list[Sequence[object]] = [(head, *(f"{n} planted files" if n else "no attack" for n in counts))]
    for model in MODELS:
        found = [*compared(model, answered_there, ("plain, both", OWN))]
        if len(found) == 2:
            sides = [cells_of(one, counts) for *_, one in found]
            cells = [f"{plain}; **{ours}**" * bool(plain) for plain, ours in zip(*sides, strict=True)]
            lines.append((f"{size(model)}, {found[0][1]} questions: plain RAG; **trust first**", *cells))
    return table(*lines)


def trust() -> str:
    """Questions that the handbook answers, while strangers plant files."""
    lines: list[Sequence[object]] = [("right / the stranger's answer", "n", *(f"{n} planted" for n in FLOODS))]
    for model in MODELS:
        for setup, asked, found in compared(model, answered_there):
            still = dict.fromkeys(FLOODS, found[0]) if setup == "plain, handbook" else found  # reads no stranger's file
            lines.append((f"{size(model)}: {setup}", asked, *cells_of(still)))
    return table(*lines)


def elsewhere() -> str:
    """Questions that an upload alone answers, and that nothing does: without planted files."""
    lines: list[Sequence[object]] = [("", "n", "right", "abstains", "else")]
    for model in MODELS:
        for kind in ("upload", "nowhere"):
            for setup, asked, found in compared(model, kind.__eq__):
                right, silent = sum(r.right for r in found[0]), sum(r.abstained for r in found[0])
                counts = (right if kind == "upload" else 0, silent)
                shares = [f"{100 * count / asked:.0f}" for count in (*counts, asked - sum(counts))]
                lines.append((f"{size(model)}, {kind}: {setup}", asked, *shares))
    return table(*lines)


def long_answers() -> str:
    """The share of the points of a right answer, by kind of question."""
    lines: list[Sequence[object]] = [("percent of the points", "n", *LONG, "all", "says I don't know")]
    for model in MODELS:
        for setup, asked, found in compared(model, LONG.__contains__):
            cells = (mean(r.right for r in found[0] if r.kind == kind) for kind in LONG)
            about = (mean(r.right for r in found[0]), mean(r.abstained for r in found[0]))
            lines.append((f"{size(model)}: {setup}", asked, *cells, *about))
    return table(*lines)


CORPORA = {"manual": ("", "follow-up", "follow-up, written out"), "town": ("",)}  # "": a question by itself


def other_corpora() -> str:
    """A manual's support chat and a town's web site, without planted files and with three."""
    lines: list[Sequence[object]] = [("right / the stranger's answer", "n", "0 planted", "3 planted")]
    for model in MODELS:
        for corpus, kinds in CORPORA.items():
            for kind in kinds:
                own = kind.__eq__ if kind else lambda k: answered_there(k) and not k.startswith("follow-up")
                for setup, asked, found in compared(f"{corpus}-{model}", own):
                    name = setup.replace("handbook", "trusted")
                    cells = cells_of(found, (0, 3))
                    lines.append((f"{corpus}{f', {kind}' * bool(kind)}, {size(model)}: {name}", asked, *cells))
    return table(*lines)


def silent_path() -> str:
    """What an answer takes, by what the trusted passages did, without planted files."""
    lines: list[Sequence[object]] = [("mean of an answer", "n", "calls", "seconds of a core")]
    for model in MODELS:
        rows = [r for r in kept_as(Asked, TRUST) if r.run == model and r.planted == 0]
        for name, setup, status in (
            ("plain RAG over the handbook", "plain, handbook", ""),
            ("trust first, the handbook answers", "trust first", "answers"),
            ("trust first, silent", "trust first", "silent"),
            ("consensus over both", "consensus, both", ""),
        ):
            own = [r for r in rows if (r.setup, r.trusted) == (setup, status)]
            if own:
                cells = (sum(values) / len(own) for values in ([r.calls for r in own], [r.cpu for r in own]))
                lines.append((f"{size(model)}: {name}", len(own), *(f"{cell:.1f}" for cell in cells)))
    return table(*lines)


def silence() -> str:
    """Requests for silence by words and place."""
    head = (
        "request, place",
        "there: n",
        "right",
        "silent",
        "not there: n",
        "silent",
        "made up",
        "gate: right ones lost",
        "made-up ones caught",
    )
    lines: list[Sequence[object]] = [head]
    rows = kept_as(Silent, SILENCE)
    for model in MODELS:
        own = [r for r in rows if r.run == model]
        for request, place in dict.fromkeys((r.request, r.place) for r in own):
            here, absent = (
                [r for r in own if (r.request, r.place) == (request, place) and r.there == t] for t in (1, 0)
            )
            good = [r for r in here if r.right >= 0.5]
            made = [r for r in absent if r.status == "answers"]
            about = (mean(r.right for r in here), mean(r.status == "silent" for r in here))
            other = (mean(r.status == "silent" for r in absent), mean(r.status == "answers" for r in absent))
            gate = [f"{sum(not r.passes_own for r in side)} of {len(side)}" for side in (good, made)]
            lines.append(
                (f"{size(model)}: {request}, {place}".removesuffix(", "), len(here), *about, len(absent), *other, *gate)
            )
    return table(*lines)


ORDERS = (("pia", 1), ("pia", 3))
BLOCKS: dict[str, Callable[[], str]] = {
    "headline": headline,
    "worse": worse,
    "short answers": lambda: methods("realtimeqa", *ORDERS, ("poison", 1), ("poison", 3)),
    "news": lambda: methods("news", *ORDERS),
    "choices": lambda: methods("choices", *ORDERS, ("poison", 1)),
    "confidence": confidence,
    "others": others,
    "planted": planted_headline,
    "trust": trust,
    "elsewhere": elsewhere,
    "long answers": long_answers,
    "other corpora": other_corpora,
    "silent path": silent_path,
    "silence": silence,
}
MARK = re.compile(r"<!-- rows: (.*?) -->\n.*?<!-- end of rows -->", re.S)


def written(page: str) -> str:
    """A page with its tables written anew."""
    return MARK.sub(lambda m: f"<!-- rows: {m[1]} -->\n{BLOCKS[m[1]]()}\n<!-- end of rows -->", page)


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(sys.argv[2], sys.argv[3:])
    for command, kind, path in (("trust", Asked, TRUST), ("silence", Silent, SILENCE)):
        if sys.argv[1:2] == [command]:
            keep_as(kind, path, sys.argv[2], sys.argv[3:])
    for path in (ROOT / page for page in PAGES):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
