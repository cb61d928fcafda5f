"""The tables of docs/threat-model.md, computed with the package: `python -m tests.docs.threat_model_tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from robustrag_integrations.certification import benign_group_cases
from robustrag_integrations.defenses.decoding.step import answering_groups
from robustrag_integrations.defenses.decoding.token_choice import ONE, choose_token, fixed_point, step_radius
from robustrag_integrations.defenses.keyword.absolute import AbsoluteThreshold
from robustrag_integrations.defenses.keyword.counting import KeywordRule, keyword_radius, tally_keywords
from robustrag_integrations.defenses.keyword.relative import RelativeThreshold
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.registry import DECODING
from robustrag_integrations.defenses.voting.counting import tally_votes, vote_radius

RULES: dict[str, KeywordRule] = {
    **{f"{a}, {b}": AbsoluteThreshold.of(a, b) for a, b in ((0.2, 3), (0.3, 3), (0.4, 4), (0.5, 5), (0.5, 10))},
    **{f"share {share}": RelativeThreshold.of(share, 2) for share in (0.5, 0.67)},
}
SLACK = round(DECODING.default("slack") * ONE)


def keyword(agreeing: int, others: int, rule: KeywordRule, silent: int = 0) -> int:
    """The radius when so many groups say the same, the others something different each, and some say nothing."""
    said = [{"paris"}] * agreeing + [{f"word{n}"} for n in range(others)]
    tally = tally_keywords([*said, *[None] * silent], rule)
    if "paris" not in tally.retained:
        return 0
    return keyword_radius(tally, [*said, *[None] * silent], rule)


def keyword_by_groups() -> str:
    """All groups agree."""
    rows = [[str(n), *(str(keyword(n, 0, rule)) for rule in RULES.values())] for n in (3, 5, 7, 10, 15, 20, 30)]
    return table(["answering groups", *RULES], rows)


def keyword_by_agreement() -> str:
    """Ten groups answer, of which some agree and the others each say something else."""
    rows = [
        [f"{c} of 10", *(str(keyword(c, 10 - c, rule)) for rule in RULES.values())] for c in (10, 9, 8, 7, 6, 5, 4, 3)
    ]
    return table(["agree", *RULES], rows)


def votes() -> str:
    """The winner's votes among those of one rival."""
    rows = []
    for total in (5, 10, 15, 20):
        shares = []
        for share in (1.0, 0.9, 0.8, 0.7, 0.6):
            winner = round(total * share)
            shares.append(str(vote_radius(tally_votes([0] * winner + [1] * (total - winner), 4))))
        rows.append([str(total), *shares])
    return table(["votes", "all agree", "90%", "80%", "70%", "60%"], rows)


def decoding(probabilities: Sequence[float], eta: float) -> int:
    """The radius of one step: token 0 has these probabilities, token 1 the rest, token 2 is the no-retrieval token."""
    rows = fixed_point(np.array([[p, 1 - p, 0.0] for p in probabilities]))
    choice = choose_token(rows, 2, round(eta * ONE))
    return step_radius(rows, choice, 2, round(eta * ONE), SLACK, len(probabilities) - 1)


def decoding_by_eta() -> str:
    """Ten and twenty groups that agree with a probability each, or are divided."""
    cases = (
        ("10 groups, 0.99", [0.99] * 10),
        ("10 groups, 0.9", [0.9] * 10),
        ("10 groups, 0.7", [0.7] * 10),
        ("20 groups, 0.9", [0.9] * 20),
        ("10 groups, divided 5 : 5", [0.99] * 5 + [0.01] * 5),
        ("10 groups, divided 6 : 4", [0.99] * 6 + [0.01] * 4),
    )
    etas = (0, 1, 2, 4, 6)
    return table(["what the groups say", *(f"eta = {e}" for e in etas)], [
        [name, *(str(decoding(rows, eta)) for eta in etas)] for name, rows in cases
    ])  # fmt: skip


def hearing(groups: Sequence[tuple[int, float, float]], gamma: float) -> str:
    """The radius of one step without eta, how many groups are heard, and whether they abstain together.

    Args:
        groups: how many groups each give the answer (token 0) and the start of "I don't know" (token 1) which
            probability; the rest goes to a wrong answer (token 2).
        gamma: from which probability of "I don't know" on a group is left out.
    """
    rows = np.array([[a, u, 1 - a - u, 0.0] for count, a, u in groups for _ in range(count)])
    heard = answering_groups(rows[:, 1], gamma)
    if not heard:
        return "no group takes part"
    scores = fixed_point(rows[heard])
    choice = choose_token(scores, 3, 0)
    abstains = ', "I don\'t know"' if choice.token == 1 else ""
    return f"{step_radius(scores, choice, 3, 0, SLACK, len(heard) - 1)} ({len(heard)}{abstains})"


def decoding_by_gamma() -> str:
    """Ten groups, of which some find nothing in their passage, or all hesitate."""
    cases = (
        ("10 answer (0.9)", [(10, 0.9, 0.0)]),
        ("6 answer (0.9), 4 abstain (0.999)", [(6, 0.9, 0.0), (4, 0.0, 0.999)]),
        ("6 answer (0.9), 4 abstain (0.95)", [(6, 0.9, 0.0), (4, 0.0, 0.95)]),
        ("6 answer (0.9), 4 abstain (0.7)", [(6, 0.9, 0.0), (4, 0.0, 0.7)]),
        ("3 answer (0.9), 7 abstain (0.999)", [(3, 0.9, 0.0), (7, 0.0, 0.999)]),
        ("3 answer (0.9), 7 abstain (0.95)", [(3, 0.9, 0.0), (7, 0.0, 0.95)]),
        ("10 hesitate: answer (0.4), abstain (0.6)", [(10, 0.4, 0.6)]),
    )
    gammas = (0.5, 0.9, 0.99, 1.0)
    rows = [[name, *(hearing(groups, gamma) for gamma in gammas)] for name, groups in cases]
    return table(["what the groups say", *(f"gamma = {g}" for g in gammas)], rows)


def group_sizes() -> str:
    """What group size does to ten and twenty passages that all agree."""
    rows = []
    for passages in (10, 20):
        for size in (1, 2, 5):
            groups = -(-passages // size)
            hit = [max(c.corrupted for c in benign_group_cases(["x"] * passages, k, group_size=size)) for k in (1, 2)]
            best = keyword(groups, 0, KeywordSettings.of().rule)
            rows.append([str(passages), str(size), str(groups), *(str(h) for h in hit), str(best)])
    return table(["k", "group size", "groups", "hit by 1 passage", "hit by 2", "radius"], rows)


def silent_groups() -> str:
    """Ten groups, of which some abstain and the others agree."""
    rows = [[str(s), *(str(keyword(10 - s, 0, rule, silent=s)) for rule in RULES.values())] for s in (0, 2, 4, 6)]
    return table(["of 10 groups abstain", *RULES], rows)


TABLES = {
    "keyword-groups": keyword_by_groups,
    "keyword-agreement": keyword_by_agreement,
    "keyword-silent": silent_groups,
    "votes": votes,
    "decoding": decoding_by_eta,
    "gamma": decoding_by_gamma,
    "group-size": group_sizes,
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    for name, make in TABLES.items():
        print(f"<!-- {name} -->\n{make()}\n")
