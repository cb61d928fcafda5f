"""ReliabilityRAG, RADAR and TrustRAG, written from their papers.

The papers ask models of natural-language inference and of meaning; any such model is a function: of (question, first
answer, second answer) to True, False or a probability, or of texts to vectors. Without one, rules over words stand in.
They know no paraphrase: "5 km" and "five kilometres" contradict each other here.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.compare.base import (
    Baseline,
    BaselineSettings,
    Function,
    isolated_answers,
    probability,
    reread,
)
from robustrag_integrations._util.normalise import plain_words
from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.defenses.voting.options import shown_options
from robustrag_integrations.grouping.passages import Passage, Source
from robustrag_integrations.plans.asking import PlanInput, ask_final
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.text.abstention import is_abstention

CONTRADICTION = 0.5  # a probability from which on two answers contradict each other
LARGEST = 20  # passages of which the largest consistent set is searched exactly; the search is exponential in it
CONFLICT = 0.8  # RADAR: a contradiction above this leaves no agreement between two answers
LEAST, MOST = 0.01, 0.99  # RADAR: what the capacities from the source and to the sink are scaled to
ROUGE, COSINE = 0.25, 0.88  # TrustRAG: from which on two passages of a cluster are alike
_LONGEST_ANSWER, _LONGEST_PASSAGE = 2000, 20_000  # characters that are compared or embedded
_WORDS = 200  # of a passage that are compared in order
_DIMENSIONS = 512  # of the embedding without a model
_SAME = 1e-9  # eigenvalues that close are one
_UNITS = 1e8  # flows are counted in whole numbers
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the this that these those i you he she it we they me him her us them my your his its our their "
        "and or but nor so if as than then of in on at to by for from with without into onto over under about "
        "is are am was were be been being do does did has have had can could shall should would must not no "
        "yes there here which who whom whose what when where why how also",
    )
)

Matrix = NDArray[np.float64]


def differ(question: str, first: str, second: str) -> bool:
    """The rule for contradiction: each answer has a word that the other lacks.

    Function words and the question's own words count for nothing. An answer without any other word contradicts none.
    """
    one, other = told(question, first), told(question, second)
    return bool(one - other) and bool(other - one)


def share_said(question: str, first: str, second: str) -> float:
    """The rule for entailment: the share of the second answer's words that the first one has."""
    one, other = told(question, first), told(question, second)
    return len(one & other) / len(other) if other else 0.0


def told(question: str, answer: str) -> frozenset[str]:
    """Return the words of an answer but those of the question and function words."""
    asked = set(plain_words(question[:_LONGEST_ANSWER]).split())
    return frozenset(plain_words(answer[:_LONGEST_ANSWER]).split()) - asked - _FUNCTION_WORDS


def judged(name: str, judge: Function, question: str, answers: Sequence[str]) -> list[list[float]]:
    """n x n: what the judge gives for every ordered pair of answers; 0 on the diagonal. Equal pairs are judged once."""
    known = {
        (first, second): probability(name, judge(question, first, second))
        for first, second in dict.fromkeys(product(answers, repeat=2))
    }
    return [[0.0 if i == j else known[a, b] for j, b in enumerate(answers)] for i, a in enumerate(answers)]


def conflicts(judge: Function, question: str, answers: Sequence[str]) -> list[list[bool]]:
    """n x n, symmetric: which answers contradict each other, read either way. Equal answers never do."""
    found = judged("contradicts", judge, question, answers)
    return [
        [a != b and max(found[i][j], found[j][i]) >= CONTRADICTION for j, b in enumerate(answers)]
        for i, a in enumerate(answers)
    ]


@dataclass(frozen=True, kw_only=True)
class SetSettings(BaselineSettings):
    """The settings of ReliabilityRAG's exact form."""

    method: ClassVar[Method] = BASELINES["mis"]

    contradicts: Function = setting(
        differ, "tells if two answers contradict each other; compares words by default", is_function=True
    )


class IndependentSet(Baseline):
    """ReliabilityRAG's exact form.

    Every passage is asked alone. Among those that answer, the largest set of which no two contradict each other is
    kept, of several the one of better ranks; its raw passages are then read together.
    """

    settings_type = SetSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: SetSettings) -> Steps[Draft]:
        """Isolated answers, the largest set, one reading of its passages."""
        if (count := len(inputs.sources)) > LARGEST:
            raise ValueError(f"mis searches at most {LARGEST} passages exactly, got {count}; use a smaller top_k")
        heard = yield from isolated_answers(inputs, settings)
        answering = [i for i, said in enumerate(heard.found) if said is not None]
        found = conflicts(settings.contradicts, inputs.query, [heard.found[i] or "" for i in answering])
        kept = [answering[i] for i in largest_independent_set(found)]
        return (yield from reread(inputs, settings, kept, heard=heard))


def largest_independent_set(conflicts: Sequence[Sequence[bool]]) -> tuple[int, ...]:
    """The largest set of which no two conflict (n x n, symmetric); of several, the first in dictionary order."""
    import networkx

    peace = networkx.empty_graph(len(conflicts))
    peace.add_edges_from((i, j) for i, row in enumerate(conflicts) for j in range(i) if not row[j])
    cliques = (tuple(sorted(clique)) for clique in networkx.find_cliques(peace))
    return min(cliques, key=lambda clique: (-len(clique), clique), default=())


@dataclass(frozen=True, kw_only=True)
class CutSettings(BaselineSettings):
    """The settings of RADAR."""

    method: ClassVar[Method] = BASELINES["radar"]

    contradicts: Function = setting(
        differ, "tells if two answers contradict each other; compares words by default", is_function=True
    )
    entails: Function = setting(
        share_said, "tells if an answer implies another; compares words by default", is_function=True
    )


class MinCut(Baseline):
    """RADAR.

    Every passage is asked alone. Those that answer become a graph: agreement ties two passages to each other, agreement
    with the strongest source and a good rank tie a passage to the source, contradiction with that source ties it to the
    sink. What a smallest cut leaves on the source's side is read together.
    """

    settings_type = CutSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: CutSettings) -> Steps[Draft]:
        """Isolated answers, the cut, one reading of what it keeps."""
        heard = yield from isolated_answers(inputs, settings)
        answering = [i for i, said in enumerate(heard.found) if said is not None]
        answers = [heard.found[i] or "" for i in answering]
        against = judged("contradicts", settings.contradicts, inputs.query, answers)
        agreed = judged("entails", settings.entails, inputs.query, answers)
        kept = [answering[i] for i in trusted(against, agreed)]
        return (yield from reread(inputs, settings, kept, heard=heard))


def trusted(contradicts: Sequence[Sequence[float]], entails: Sequence[Sequence[float]]) -> list[int]:
    """The answers on the source's side of the cut, by rank; of n x n probabilities, each of the row on the column."""
    count = len(contradicts)
    if not count:
        return []
    return sorted(source_side(capacities(contradicts, entails), count, count + 1) - {count})


def capacities(contradicts: Sequence[Sequence[float]], entails: Sequence[Sequence[float]]) -> list[list[float]]:
    """(n + 2) x (n + 2): the answers, then the source, then the sink."""
    conflict, agreement = _both_ways(contradicts), _both_ways(entails)
    agreement[conflict > CONFLICT] = 0
    np.fill_diagonal(agreement, 0)
    weight = leading(agreement)
    count = len(weight)
    by_rank = np.array([math.exp(-i / count) for i in range(1, count + 1)])
    graph = np.zeros((count + 2, count + 2))
    graph[:count, :count] = agreement
    graph[count, :count] = _scaled(weight * by_rank / max((weight * by_rank).max(), _SAME))
    graph[:count, count + 1] = _scaled(conflict @ weight / max(weight.sum(), _SAME))
    return [list(map(float, row)) for row in graph]


def leading(agreement: Matrix) -> Matrix:
    """n: the leading eigenvector, at least 0 everywhere; where several lead, what power iteration from ones ends in."""
    values, vectors = np.linalg.eigh(agreement + 0.01 * np.eye(len(agreement)))
    top = vectors[:, values >= values[-1] - _SAME]
    found: Matrix = np.maximum(top @ (top.T @ np.ones(len(agreement))), 0)
    return found


def _both_ways(found: Sequence[Sequence[float]]) -> Matrix:
    matrix: Matrix = np.array(found, dtype=np.float64)
    return np.sqrt(matrix * matrix.T)


def _scaled(shares: Matrix) -> Matrix:
    return LEAST + (MOST - LEAST) * shares


def source_side(capacities: Sequence[Sequence[float]], source: int, sink: int) -> frozenset[int]:
    """The nodes on the source's side of a smallest cut (capacities: n x n, from row to column, from 0 to 10).

    Where there are several cuts it is the smallest such side.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    graph = csr_array((np.array(capacities) * _UNITS).round().astype(np.int32))
    left = graph - maximum_flow(graph, source, sink).flow
    return frozenset(map(int, breadth_first_order(left > 0, source, return_predecessors=False)))


def hashed_words(texts: Sequence[str]) -> list[list[float]]:
    """The embedding without a model: word counts, each word at a place that its hash decides."""
    vectors = np.zeros((len(texts), _DIMENSIONS))
    for row, text in zip(vectors, texts, strict=True):
        for word in plain_words(text[:_LONGEST_PASSAGE]).split():
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % _DIMENSIONS] += 1
    return [list(map(float, row)) for row in vectors]


@dataclass(frozen=True, kw_only=True)
class FilterSettings(BaselineSettings):
    """The settings of TrustRAG."""

    method: ClassVar[Method] = BASELINES["trustrag"]

    embed: Function = setting(hashed_words, "from texts to vectors; counts words by default", is_function=True)


class ClusterFilter(Baseline):
    """TrustRAG.

    The passages' embeddings fall into two clusters. Passages that have a near copy in their own cluster, by cosine and
    by ROUGE-L, are dropped: attackers write several passages from one template. Then the model answers from memory;
    unless it abstains, that answer stands beside the passages that are left, in one prompt. A single planted passage
    has no near copy, so only the second step can help against it.
    """

    settings_type = FilterSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: FilterSettings) -> Steps[Draft]:
        """The filter, the answer from memory, one reading of both."""
        texts = [source.text for source in inputs.sources]
        alike = written_alike(texts, settings.embed(texts)) if len(texts) > 1 else frozenset()
        kept = [i for i in range(len(texts)) if i not in alike]
        shown = [inputs.sources[i] for i in kept]
        known = None
        if shown and settings.prompts.no_retrieval is not None:
            choices = inputs.choices
            values = {} if choices is None else {"choices": shown_options(choices, "", settings.prompts)}
            prompt = settings.prompts.no_retrieval.render(query=inputs.query, **values)
            known = (yield from ask_final(prompt, settings.cut_replies, shown=False)).text
            if known and not is_abstention(known):
                shown.append(Source(len(inputs.sources), (Passage(known, id="what the model knows"),)))
        evidence = {"written_alike": sorted(alike), "from_memory": known}
        return (yield from reread(inputs, settings, kept, sources=shown, evidence=evidence))


def unit_vectors(embedded: object, count: int) -> Matrix:
    """count x d: what an embedding gave, each vector of length 1 (or 0)."""
    try:
        vectors = np.asarray(embedded, dtype=np.float64)
    except (TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise ValueError(f"embed must give {count} vectors of finite numbers, one per text")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths))


def two_means(vectors: Matrix) -> list[int]:
    """The cluster, 0 or 1, of each vector; it starts from the first vector and the one furthest from it."""
    from scipy.cluster.vq import kmeans2

    centres = vectors[[0, int(np.argmax(((vectors - vectors[0]) ** 2).sum(axis=1)))]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal vectors one cluster is empty
        return [int(c) for c in kmeans2(vectors, centres, iter=50, minit="matrix")[1]]


def rouge_l(first: str, second: str) -> float:
    """ROUGE-L: the F1 of the longest common subsequence of words, over the first words of each text."""
    one, other = (
        plain_words(first[:_LONGEST_PASSAGE]).split()[:_WORDS],
        plain_words(second[:_LONGEST_PASSAGE]).split()[:_WORDS],
    )
    if not one or not other:
        return 0.0
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for j, candidate in enumerate(other):
            row.append(before[j] + 1 if word == candidate else max(before[j + 1], row[j]))
    return 2 * row[-1] / (len(one) + len(other))


def written_alike(texts: Sequence[str], embedded: object) -> frozenset[int]:
    """The texts that have a near copy in their own cluster, by cosine and by ROUGE-L."""
    if len(texts) < 2:
        return frozenset()
    vectors = unit_vectors(embedded, len(texts))
    clusters = two_means(vectors)
    close = vectors @ vectors.T >= COSINE
    found: set[int] = set()
    for i in range(len(texts)):
        for j in range(i):
            if clusters[i] == clusters[j] and close[i, j] and rouge_l(texts[i], texts[j]) >= ROUGE:
                found |= {i, j}
    return frozenset(found)
