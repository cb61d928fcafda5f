"""From rows to lines: rho(m) with its interval and quantiles, and certified accuracy at that many corrupted groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, TypeAlias

from robustrag_integrations.evaluation.retrieval.rows import Row, clean_digest
from robustrag_integrations.evaluation.score.intervals import EMPTY, RATE, Interval, bootstrap_mean
from robustrag_integrations.grouping.passages import PASSAGE

INJECTION = "injection"

_Proofs: TypeAlias = "dict[tuple[str, int, str, str], dict[str, dict[int, float]]]"


@dataclass(frozen=True)
class RetrievalLine:
    """What an attacker owns who plants m documents, over all questions of a data set.

    Attributes:
        dataset: the data set's name.
        task: `qa`, `mc` or `long`.
        retriever: `bm25`, or a name of the user's.
        attack: who wrote the documents.
        top_k: passages retrieved (with `per_source`: votes).
        per_source: at most this many passages per vote; None for no limit.
        sites: on how many sites the documents stand.
        rule: what one vote is.
        m: documents planted.
        n: questions.
        failed: questions that failed, which are in no number.
        rho: how many groups hold a planted passage; mean with its 95% interval.
        middle: its median.
        high: its 90% quantile: one question in ten is at least as bad.
        worst: its maximum.
        groups: mean number of groups.
        share: rho over the number of groups, per question.
        half: share of the questions in which the attacker owns at least half of the groups.
        short: questions for which the retriever gave fewer than `top_k` passages.
        displaced: mean k', the corrupted passages that a certificate must be against to cover the attacked retrieval:
            at least the planted passages in it, whatever one vote is. None where no certificate can cover it.
        cacc: by setup whose votes are by this rule: certified accuracy at that k', question by question. Empty without
            certificates of the same clean retrieval, and with a `per_source` above 1.
        beyond: by setup: share of these questions whose k' is more than what was certified, and which count 0.
    """

    dataset: str
    task: str
    retriever: str
    attack: str
    top_k: int
    per_source: int | None
    sites: int
    rule: str
    m: int
    n: int = 0
    failed: int = 0
    rho: Interval = EMPTY
    middle: float | None = None
    high: float | None = None
    worst: int | None = None
    groups: float | None = None
    share: Interval = EMPTY
    half: Interval = EMPTY
    short: int = 0
    displaced: float | None = None
    cacc: Mapping[str, Interval] = field(default_factory=dict)
    beyond: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The line in JSON's types."""
        return asdict(self)


def summarise_retrieval(rows: Iterable[Row], certified: Sequence[Row] = ()) -> tuple[RetrievalLine, ...]:
    """One line per data set, retriever, attack, number of passages, rule and m.

    Args:
        rows: of `measure_retrieval`.
        certified: rows of `evaluate` with certificates of clean answers against injection. They count where they are
            about the same clean retrieval.
    """
    cells: dict[tuple[Any, ...], list[_Cell]] = {}
    failed: dict[tuple[Any, ...], int] = {}
    for row in rows:
        about = tuple(row.get(name) for name in _ABOUT)
        if row["error"] is not None:
            failed[about] = failed.get(about, 0) + 1
            continue
        for part in row["measured"]:
            for vote in part["votes"]:
                clean = (row["clean"] or {}).get(vote["rule"], "")
                short = part["found"] < row["top_k"]
                cell = _Cell(clean, vote["owned"], vote["groups"], vote["displaced"], short)
                cells.setdefault((*about, vote["rule"], part["m"]), []).append(cell)
    proofs = _proofs(certified)
    return tuple(_line(about, found, failed.get(about[:-2], 0), proofs) for about, found in cells.items())


@dataclass(frozen=True)
class _Cell:
    """One question of a line."""

    clean: str
    owned: int
    groups: int
    displaced: int | None
    short: bool


_ABOUT = ("dataset", "task", "retriever", "attack", "top_k", "per_source", "sites")


def _line(about: tuple[Any, ...], cells: Sequence[_Cell], failed: int, proofs: _Proofs) -> RetrievalLine:
    named: dict[str, Any] = dict(zip((*_ABOUT, "rule", "m"), about, strict=True))
    owned = [cell.owned for cell in cells]
    shares = [cell.owned / cell.groups if cell.groups else 0.0 for cell in cells]
    ranked = sorted(owned)
    scores: dict[str, list[tuple[float, bool]]] = {}
    needed = [cell.displaced for cell in cells if cell.displaced is not None]
    for cell in cells:
        if cell.displaced is None:
            continue
        for setup, taus in proofs.get((cell.clean, named["top_k"], named["task"], named["rule"]), {}).items():
            scores.setdefault(setup, []).append(_certified_at(taus, cell.displaced))
    return RetrievalLine(
        **named,
        n=len(cells),
        failed=failed,
        rho=bootstrap_mean([float(rho) for rho in owned], limits=(0.0, float(max(cell.groups for cell in cells)))),
        middle=float(median(owned)),
        high=float(ranked[min(int(0.9 * len(ranked)), len(ranked) - 1)]),
        worst=max(owned),
        groups=sum(cell.groups for cell in cells) / len(cells),
        share=bootstrap_mean(shares, limits=RATE),
        half=bootstrap_mean([float(share >= 0.5) for share in shares], limits=RATE),
        short=sum(cell.short for cell in cells),
        displaced=sum(needed) / len(needed) if needed else None,
        cacc={setup: bootstrap_mean([tau for tau, _ in found], limits=RATE) for setup, found in scores.items()},
        beyond={setup: sum(b for _, b in found) / len(found) for setup, found in scores.items()},
    )


def _proofs(rows: Sequence[Row]) -> _Proofs:
    """Per clean retrieval and rule, by setup: tau by corruption size; at 0 the score of the clean answer."""
    models = {row["model"] for row in rows}
    found: _Proofs = {}
    for row in rows:
        if row.get("error") is not None or row["attack"]["name"] != "none" or row["task"] == "long":
            continue
        taus = {
            c["corruption_size"]: float(c["tau"]) if c["certified"] else 0.0
            for c in row.get("certificates") or ()
            if c["attack"] == INJECTION
        }
        if taus and row["settings"].get("group_size", 1) == 1:
            taus[0] = float(row["scores"]["correct"] or 0)
            rule = str(row["settings"].get("group_by", PASSAGE))
            label = row["setup"].replace(f" group_by={rule}", "")
            label = label if len(models) == 1 else f"{label}, {row['model']}"
            clean = clean_digest(row["question"], ((p["text"], p.get("source")) for p in row["passages"]))
            found.setdefault((clean, row["top_k"], row["task"], rule), {})[label] = taus
    return found


def _certified_at(taus: Mapping[int, float], size: int) -> tuple[float, bool]:
    """The best proof for at least so many corrupted passages, and whether they are more than was certified."""
    known = [tau for certified, tau in taus.items() if certified >= size]
    return (max(known), False) if known else (0.0, True)
