"""Training rows: one context and many questions about it.

A row is a shared prefix (instruction and context) and branches, each a question with its answer. Branches do not see
each other, so that the context is read once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from robustrag_integrations.text.prompts import ABSTENTION, NO_INFORMATION, format_choices
from training.reader import wording
from training.reader.language import (
    FILLERS,
    KINDS,
    OVERVIEWS,
    RELATIONS_OF,
    Relation,
    capitalised,
)
from training.reader.names import WORDS, Namer
from training.reader.wording import Wording

_NUMBERS = ("year", "metres", "kilometres", "tonnes", "people")
_UNITS = ((" kilometres", " km"), (" metres", " m"), (" tonnes", " t"))


@dataclass(frozen=True)
class Fact:
    """A relation, who it is about, and the value."""

    relation: Relation
    entity: str
    value: str

    def statement(self, r: Random) -> str:
        """The fact as a sentence, in random wording."""
        return capitalised(r.choice(self.relation.statements).format(e=self.entity, v=self.value))

    def question(self, r: Random) -> str:
        """A question for the value, in random wording."""
        return r.choice(self.relation.questions).format(e=self.entity)


@dataclass(frozen=True)
class Branch:
    """One prompt ending and the answer to be learned. `task` names what it exercises."""

    task: str
    tail: str
    answer: str


@dataclass(frozen=True)
class Row:
    """A shared prefix and its branches."""

    prefix: str
    branches: list[Branch]


@dataclass
class Passage:
    """A text and the facts it tells; `sentences[i]` tells `facts[i]`."""

    facts: list[Fact] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    text: str = ""


def entity(namer: Namer, kind: str) -> str:
    """The name of a new entity."""
    return namer.value(kind)


def lookalike(namer: Namer, kind: str, name: str) -> str:
    """A new entity whose name shares a word with the given one."""
    new = entity(namer, kind)
    if kind == "person":
        first, last = name.split()
        other_first, other_last = new.split()
        return namer.random.choice([f"{first} {other_last}", f"{other_first} {last}"])
    return new


def _entities(namer: Namer, kind: str, count: int) -> list[str]:
    names = [entity(namer, kind)]
    while len(names) < count:
        close = namer.random.random() < 0.25
        new = lookalike(namer, kind, names[0]) if close else entity(namer, kind)
        if new not in names:
            names.append(new)
    return names


def passage(namer: Namer, sentences: int, entities: int, binding: bool) -> Passage:
    """A passage of so many facts about entities of one kind.

    Args:
        namer: source of names and chance.
        sentences: number of facts, at most.
        entities: number of entities.
        binding: state the same one or two relations for all of them, so that only the name tells them apart.
    """
    r = namer.random
    kind = r.choice(KINDS)
    known = RELATIONS_OF[kind]
    relations = r.sample(known, min(len(known), r.choice([1, 1, 2]) if binding else 5))
    names = _entities(namer, kind, entities)
    if binding:
        pairs = [(relation, name) for relation in relations for name in names]
    else:
        pairs = [(relation, r.choice(names)) for relation in relations]
    r.shuffle(pairs)
    return _told(namer, pairs[:sentences], filler=0.2)


def _told(namer: Namer, pairs: list[tuple[Relation, str]], filler: float) -> Passage:
    r = namer.random
    facts: list[Fact] = []
    for relation, name in pairs:
        taken = [fact.value for fact in facts if fact.relation.value == relation.value]
        facts.append(Fact(relation, name, namer.other(relation.value, *taken)))
    sentences = [fact.statement(r) for fact in facts]
    shown = list(sentences)
    if r.random() < filler:
        shown.insert(r.randint(0, len(shown)), r.choice(FILLERS))
    return Passage(facts, sentences, " ".join(shown))


def absent(namer: Namer, facts: list[Fact], known: list[Fact]) -> Fact:
    """A fact close to the given ones that the known ones do not tell (its value is made up)."""
    r = namer.random
    told = {(fact.relation.name, fact.entity) for fact in known}
    while True:
        near = r.choice(facts)
        kind = near.relation.subject
        relation, name = r.choice(RELATIONS_OF[kind]), near.entity
        if (pick := r.random()) < 0.6:
            relation = near.relation if pick < 0.45 else relation
            name = lookalike(namer, kind, name) if pick < 0.2 else entity(namer, kind)
        if (relation.name, name) not in told:
            return Fact(relation, name, namer.value(relation.value))


def ask(r: Random, said: Wording, fact: Fact, answer: str, task: str) -> Branch:
    """A short-answer question."""
    return Branch(task, said.tail(fact.question(r)), answer)


def options_for(namer: Namer, fact: Fact, include: list[str], count: int) -> list[str]:
    """Shuffled options: those to include, filled up with made-up values of the same kind to `count`."""
    options = list(dict.fromkeys(include))[:count]
    while len(options) < count:
        options.append(namer.other(fact.relation.value, fact.value, *options))
    namer.random.shuffle(options)
    return [*options, NO_INFORMATION]


def choose(namer: Namer, said: Wording, fact: Fact, rivals: list[str], task: str, present: bool) -> Branch:
    """A multiple-choice question; when the fact is not present, "No information found" is right."""
    r = namer.random
    include = ([fact.value] if present else []) + [v for v in rivals if v != fact.value][: r.randint(0, 2)]
    options = options_for(namer, fact, include, max(len(include), r.choice([1, 2, 3, 3, 3, 4, 5])))
    right = options.index(fact.value) if present else len(options) - 1
    return Branch(task, said.tail(fact.question(r), format_choices(options)), chr(65 + right))


def questions(
    namer: Namer, said: Wording, facts: list[Fact], most: int, choice: float, known: list[Fact] | None = None
) -> list[Branch]:
    """At most `most` questions about told and untold facts of one context.

    Args:
        namer: source of names and chance.
        said: the wording.
        facts: told facts to ask for.
        most: number of branches, at most.
        choice: share of multiple choice.
        known: all facts the context tells, if more than `facts`.
    """
    r = namer.random
    branches = []
    asked = [(fact, True) for fact in facts] * (2 if len(facts) < 3 else 1)
    asked += [(absent(namer, facts, known or facts), False) for _ in range(r.randint(1, 3))]
    r.shuffle(asked)
    for fact, present in asked[:most]:
        if r.random() < choice:
            rivals = [f.value for f in facts if f.relation.value == fact.relation.value]
            branches.append(choose(namer, said, fact, rivals, "choice" if present else "choice_none", present))
        else:
            answer = fact.value if present else ABSTENTION
            branches.append(ask(r, said, fact, answer, "answer" if present else "abstain"))
    return branches


def reading_row(namer: Namer, choice: float = 0.2, varied: bool = False) -> Row:
    """One passage, all kinds of questions; `varied`: mostly in wordings that differ much."""
    r = namer.random
    only_choice = r.random() < choice / 2
    said = wording.reading(r, "choice" if only_choice else "answer")
    if varied and not only_choice and r.random() < 0.7:
        said = wording.varied(r)
    share = 1.0 if only_choice else 0.0 if said is wording.PROJECT["answer"] else choice / 2
    count = r.choice([1, 2, 3, 4, 4, 5, 6])
    told = passage(namer, count, r.choice([1, 2, 2, 3]), binding=r.random() < 0.6)
    return Row(said.prefix(told.text), questions(namer, said, told.facts, 9, share))


def _phrases(r: Random, value: str) -> set[str]:
    """The keywords of a value: the value itself and, mostly, its words."""
    words = value.split()
    return {value, *(w for w in words if len(words) > 1 and r.random() < 0.85)}


def _noise(namer: Namer, fact: Fact, tempting: float) -> str:
    """A keyword that cannot be the answer: another kind of thing, or (`tempting`, a share) the question's entity."""
    r = namer.random
    if r.random() < tempting:
        return fact.entity
    kinds = [k for k in WORDS if k != fact.relation.value]
    return namer.value(r.choice(kinds if fact.relation.value in _NUMBERS or r.random() < 0.5 else [*_NUMBERS]))


def _normalised(value: str) -> str:
    """A value as counting knows it: lower case, units in short."""
    lower = value.casefold()
    return next((lower.removesuffix(unit) + short for unit, short in _UNITS if lower.endswith(unit)), lower)


def _written(r: Random, value: str) -> str:
    """A value as a list shows it: as sources wrote it or, where they wrote it in several ways, normalised."""
    return value if r.random() < 0.8 else _normalised(value)


def _written_list(r: Random, values: list[str]) -> str:
    """Keywords as sources wrote them, in the order of their normalised forms, mostly without the parts of a phrase."""
    shown = {value.casefold(): value for value in values}
    for value in values:
        words = value.split()
        if len(words) > 1 and r.random() < 0.15:
            shown |= {w.casefold(): _written(r, w) if value[0].isupper() else w for w in words if r.random() < 0.7}
        if (stems := " ".join(w.casefold().removesuffix("s") for w in words)) != value.casefold() and r.random() < 0.2:
            shown[stems] = stems
    return ", ".join(shown[key] for key in sorted(shown))


def keyword_branch(namer: Namer, said: Wording, tempting: float = 0.3, written: float = 0.0) -> Branch:
    """The second prompt of keyword aggregation: a sorted list of keywords, and a question.

    Args:
        namer: source of names and chance.
        said: the wording.
        tempting: share of the other keywords that are the question's entity.
        written: share of lists with keywords as they were written; the others are casefolded, with all their words.
    """
    r = namer.random
    relation = r.choice(RELATIONS_OF[r.choice(KINDS)])
    fact = Fact(relation, entity(namer, relation.subject), namer.value(relation.value))
    known = r.random() < 0.88
    task = "keywords" if known else "keywords_none"
    if written and r.random() < written:
        values = [_written(r, fact.value)] if known else []
        values += [_written(r, _noise(namer, fact, tempting)) for _ in range(r.choice([0, 0, 0, 1, 1, 2]))]
        tail = said.keyword_tail(_written_list(r, values), fact.question(r))
        return Branch(task, tail, values[0] if known else ABSTENTION)
    keywords = _phrases(r, fact.value) if known else set()
    for _ in range(r.choice([0, 0, 0, 1, 1, 2])):
        keywords |= _phrases(r, _noise(namer, fact, tempting))
    lower = r.random() < 0.85
    shown = ", ".join(sorted({k.casefold() if lower else k for k in keywords}))
    answer = (fact.value.casefold() if lower else fact.value) if known else ABSTENTION
    return Branch(task, said.keyword_tail(shown, fact.question(r)), answer)


def keyword_row(namer: Namer, tempting: float = 0.3, written: float = 0.0) -> Row:
    """Six keyword prompts behind one instruction."""
    r = namer.random
    said = wording.PROJECT["keywords"]
    if r.random() < 0.4:
        label = r.choice(["Keywords:", "Keywords:\n", "Words:", "Hints:"])
        said = wording.short(r)
        said = Wording(label, said.between, said.after)
    return Row(said.before.rstrip(" "), [keyword_branch(namer, said, tempting, written) for _ in range(6)])


def closed_row(namer: Namer) -> Row:
    """Questions without any context: the reader knows nothing."""
    r = namer.random
    multiple = r.random() < 0.4
    said = wording.PROJECT["closed_choice" if multiple else "closed"]
    branches = []
    for _ in range(5):
        relation = r.choice(RELATIONS_OF[r.choice(KINDS)])
        fact = Fact(relation, entity(namer, relation.subject), namer.value(relation.value))
        if multiple:
            branches.append(choose(namer, said, fact, [], "closed_choice", present=False))
        else:
            branches.append(ask(r, said, fact, ABSTENTION, "closed"))
    return Row(said.prefix(""), branches)


def long_row(namer: Namer, written: float = 0.0) -> Row:
    """Long form: copy the sentences, or the values, that belong to an entity; or put given phrases together."""
    r = namer.random
    told = passage(namer, r.randint(2, 4), r.choice([1, 2]), binding=False)
    entities = list(dict.fromkeys(f.entity for f in told.facts))
    if r.random() < 0.3:
        return _join_phrases(namer, told, written)
    listing = r.random() < 0.4
    said = wording.PROJECT["phrases" if listing else "long"]
    sentences = dict(zip(told.facts, told.sentences, strict=True))
    branches = []
    for name in [*entities, entity(namer, told.facts[0].relation.subject)]:
        own = [f for f in told.facts if f.entity == name]
        texts = [f.value if listing else sentences[f] for f in own]
        answer = (", " if listing else " ").join(texts) or ABSTENTION
        branches.append(Branch("phrases" if listing else "long", said.tail(r.choice(OVERVIEWS).format(e=name)), answer))
    if not listing:
        branches += [ask(r, said, fact, sentences[fact], "long") for fact in told.facts[:2]]
    return Row(said.prefix(told.text), branches)


def _join_phrases(namer: Namer, told: Passage, written: float) -> Row:
    r = namer.random
    said = wording.PROJECT["long_keywords"]
    branches = []
    for count in (1, 2, 3):
        values = [f.value for f in told.facts[:count]]
        if written and r.random() < written:
            phrases = _written_list(r, values)
        else:
            phrases = ", ".join(sorted(value.casefold() for value in values))
        question = r.choice(OVERVIEWS).format(e=told.facts[0].entity)
        branches.append(Branch("long_keywords", said.keyword_tail(phrases, question), phrases))
    return Row(said.before.rstrip(" "), branches)
