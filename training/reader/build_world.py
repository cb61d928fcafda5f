"""Write the demo corpus: short articles about one made-up world, and questions about it.

`python -m training.reader.build_world` writes `world.jsonl` and `questions.jsonl` into the package's `demo` folder.
Every fact is told by seven to nine articles, in different wordings and company, so that retrieval finds mostly, but not
only, passages that tell the truth about a question.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import bm25s  # type: ignore[import-untyped]

from training.reader.language import RELATIONS_OF, capitalised
from training.reader.names import Namer, words
from training.reader.rows import Fact

_PEOPLE, _PER_KIND = 16, {
    "town": 10, "island": 6, "company": 6, "mountain": 4, "river": 4, "ship": 5, "bird": 5, "book": 5, "band": 4,
    "building": 6, "festival": 4,
}  # fmt: skip
_FACTS_PER_ENTITY = 3
_TOLD = (7, 8, 9)
_SENTENCES = (2, 3, 3, 4, 4, 5)
LEAST_TRUTHFUL = 6
SOURCES = (
    "harbour-courier.example", "old-almanac.example", "coast-gazette.example", "travel-notes.example",
    "school-reader.example", "northern-post.example", "island-review.example", "museum-bulletin.example",
    "ferry-times.example", "atlas-of-the-isles.example", "evening-lantern.example", "traders-journal.example",
    "naturalist-letters.example", "library-digest.example", "festival-guide.example", "captains-log.example",
    "town-crier.example", "river-herald.example", "mountain-club.example", "radio-south.example",
)  # fmt: skip


def make_facts(random: Random) -> list[Fact]:
    """The facts of the world: names used as values are mostly names of its own entities."""
    namer = Namer(random, wild=0.0)
    names = {kind: _distinct(namer, kind, count) for kind, count in {"person": _PEOPLE, **_PER_KIND}.items()}
    facts: list[Fact] = []
    for kind, entities in names.items():
        for entity in entities:
            known = RELATIONS_OF[kind]
            for relation in random.sample(known, min(_FACTS_PER_ENTITY, len(known))):
                pool = [name for name in names.get(relation.value, []) if name != entity]
                facts.append(Fact(relation, entity, random.choice(pool) if pool else namer.value(relation.value)))
    return facts


def _distinct(namer: Namer, kind: str, count: int) -> list[str]:
    """Names that share no word but a generic one, so that retrieval by words can tell them apart."""
    names: list[str] = []
    seen: set[str] = set()
    while len(names) < count:
        name = namer.value(kind)
        stems = {word.casefold() for word in name.split()[: 2 if kind == "person" else None]}
        generic = {w for w in stems if kind != "person" and w in _GENERIC}
        if not (stems - generic) & seen:
            seen |= stems - generic
            names.append(name)
    return names


_GENERIC = frozenset(
    words(
        "the of star queen road to house winter works company brothers mills peak mountain ridge river trio quartet "
        "band tower hall bridge light castle museum finch gull hawk wren festival fair"
    )
)


def make_articles(facts: list[Fact], random: Random) -> list[dict[str, str]]:
    """Articles that together tell each fact seven to nine times, never the same fact twice in one."""
    left = {i: random.choice(_TOLD) for i in range(len(facts))}
    articles: list[dict[str, str]] = []
    while left:
        main = max(left, key=lambda i: (left[i], random.random()))
        told = _company(main, facts, left, random)
        for i in told:
            left[i] -= 1
        left = {i: count for i, count in left.items() if count > 0}
        text = " ".join(facts[i].statement(random) for i in told)
        number = f"{len(articles) + 1:03d}"
        title = facts[main].entity[:1].upper() + facts[main].entity[1:]
        articles.append({"id": f"world-{number}", "title": title, "source": random.choice(SOURCES), "text": text})
    return articles


def _company(main: int, facts: list[Fact], left: dict[int, int], random: Random) -> list[int]:
    """The facts of one article: the main one, some about the same entity, some about others."""
    size = random.choice(_SENTENCES)
    same = [i for i in left if i != main and facts[i].entity == facts[main].entity]
    others = [i for i in left if facts[i].entity != facts[main].entity]
    random.shuffle(same)
    random.shuffle(others)
    others.sort(key=lambda i: facts[i].relation.subject != facts[main].relation.subject)
    told = [main, *same[: random.choice([0, 1, 1])]]
    return [*told, *others[: max(0, size - len(told))]]


class Retrieval:
    """BM25 over the articles, as the demo retrieves."""

    def __init__(self, articles: Sequence[Mapping[str, str]]) -> None:
        self._texts = [article["text"] for article in articles]
        self._index = bm25s.BM25()
        self._index.index(_tokens(self._texts), show_progress=False)

    def best(self, question: str, top: int = 10) -> list[str]:
        """The texts of the best articles for a question, best first."""
        numbers, _ = self._index.retrieve(_tokens([question]), k=top, show_progress=False)
        return [self._texts[i] for i in numbers[0]]

    def truthful(self, question: str, fact: Fact) -> int:
        """How many of the ten best articles for a question tell the fact."""
        return sum(any(said in text for said in _statements(fact)) for text in self.best(question))


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def _statements(fact: Fact) -> list[str]:
    return [capitalised(s.format(e=fact.entity, v=fact.value)) for s in fact.relation.statements]


def make_questions(
    facts: list[Fact], articles: list[dict[str, str]], count: int, random: Random
) -> list[dict[str, object]]:
    """Questions with the right answer, an attacker's answer, and four options that hold both.

    Only questions for which most retrieved passages tell the truth: the demo shows attacks, not bad retrieval.
    """
    namer = Namer(random, wild=0.0)
    retrieval = Retrieval(articles)
    questions: list[dict[str, object]] = []
    for fact in random.sample(facts, len(facts)):
        served = {q: retrieval.truthful(q, fact) for q in (q.format(e=fact.entity) for q in fact.relation.questions)}
        asked = max(served, key=lambda q: served[q])
        if served[asked] < LEAST_TRUTHFUL or len(questions) == count:
            continue
        choices = [fact.value]
        while len(choices) < 4:
            choices.append(namer.other(fact.relation.value, *choices))
        incorrect = choices[1]
        random.shuffle(choices)
        questions.append({"question": asked, "answer": fact.value, "incorrect": incorrect, "choices": choices})
    return questions


def write_lines(path: Path, lines: Iterable[object]) -> None:
    """Write each object as a line of JSON."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def data_parser(about: str | None, *, questions: int) -> argparse.ArgumentParser:
    """The arguments of whatever makes files of the demonstration's package."""
    package = Path(__file__).resolve().parents[2] / "robustrag_integrations" / "evaluation" / "world"
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=package)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--questions", type=int, default=questions)
    return parser


def main() -> None:
    """The command line."""
    parser = data_parser(__doc__, questions=72)
    parser.add_argument(
        "--first", type=int, default=41, help="question to put first: the shipped reader falls for both attacks on it"
    )
    chosen = parser.parse_args()
    random = Random(f"world/{chosen.seed}")
    facts = make_facts(random)
    chosen.out.mkdir(parents=True, exist_ok=True)
    articles = make_articles(facts, random)
    write_lines(chosen.out / "world.jsonl", articles)
    questions = make_questions(facts, articles, chosen.questions, random)
    questions[0], questions[chosen.first] = questions[chosen.first], questions[0]
    write_lines(chosen.out / "questions.jsonl", questions)


if __name__ == "__main__":
    main()
