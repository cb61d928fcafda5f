"""The registry of aggregation methods: the name, settings, needs and module of each.

The command line, evaluation configs, both integrations and the reports read this table. An entry names its code by a
dotted name, so that reading the table loads neither numpy nor torch. A new method is a folder and an entry here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from robustrag_integrations._util.entry_points import Table

if TYPE_CHECKING:
    from robustrag_integrations.prompts import Task

Need = Literal["text", "probabilities"]


@dataclass(frozen=True)
class Setting:
    """A setting of a method.

    Attributes:
        name: the keyword argument.
        default: what it is when nothing is given; None where that depends on the task.
        kind: `float` or `int` for numbers and `str` for one of `values`, which configs and flags can hold; `object` for
            anything else.
        meaning: in a few words, for `--help`.
        threshold: whether it is a threshold, or says which ones there are. Those are flags of their own, and every row
            of an evaluation records them.
        values: the values that a `str` may have.
        is_function: whether it is a function, which configs and flags name as `module:function`.
        where: another setting and the value of it that this one goes with; None if it goes with all.
        tries: what `robustrag tune` tries when it is not told; empty to leave the setting as it is.
    """

    name: str
    default: Any
    kind: type
    meaning: str
    threshold: bool = False
    values: tuple[str, ...] = ()
    is_function: bool = False
    where: tuple[str, str] | None = None
    tries: tuple[Any, ...] = ()

    @property
    def is_number(self) -> bool:
        """True if its value is a number, which a config or a flag can hold."""
        return self.kind in (int, float)

    @property
    def is_choice(self) -> bool:
        """True if its value is one of a few words, which a config or a flag can hold."""
        return bool(self.values)


@dataclass(frozen=True)
class Method:
    """A method of aggregating isolated responses.

    Attributes:
        name: what users write: `aggregation=`, `--defense`, the answer's `defense`.
        summary: in one line, for `--help`.
        tasks: the tasks it answers; the first one is its default.
        needs: `text` for any model, `probabilities` for a model that gives next-token probabilities.
        defense: `module:Class` of its front door, a `Defense`.
        settings: its settings, besides `task`, `prompts` and the grouping.
        prompts: the prompts of a `PromptSet` that it uses besides the isolated one.
    """

    name: str
    summary: str
    tasks: tuple[Task, ...]
    needs: Need
    defense: str
    settings: tuple[Setting, ...] = ()
    prompts: tuple[str, ...] = ()

    @property
    def takes_choices(self) -> bool:
        """True if it answers multiple-choice questions."""
        return "multiple_choice" in self.tasks

    @property
    def needs_probabilities(self) -> bool:
        """True if it works on next-token probabilities, which not every model gives."""
        return self.needs == "probabilities"

    @property
    def thresholds(self) -> tuple[Setting, ...]:
        """The thresholds among the settings."""
        return tuple(s for s in self.settings if s.threshold)

    @property
    def flags(self) -> tuple[Setting, ...]:
        """The settings that are options of the command line: thresholds, what is one of a few words, and functions."""
        return tuple(s for s in self.settings if s.threshold or s.is_choice or s.is_function)

    @property
    def class_name(self) -> str:
        """The front door's name in Python."""
        return self.defense.partition(":")[2]

    def default(self, name: str) -> Any:
        """Return the default of a setting."""
        return next(s.default for s in self.settings if s.name == name)

    def value(self, name: str, given: Any) -> Any:
        """Return a setting as given, or its default for None."""
        return self.default(name) if given is None else given

    def choice(self, name: str, given: Any) -> Any:
        """A setting that is one of a few words, or its default for None.

        Raises:
            ValueError: it is none of them; the message lists them.
        """
        chosen = self.value(name, given)
        values = next(s.values for s in self.settings if s.name == name)
        if chosen not in values:
            raise ValueError(f"{name}={chosen!r}: use {' or '.join(map(repr, values))}")
        return chosen

    def in_force(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the thresholds that decide: those given, and the defaults of the others that go with them.

        Where a setting is not given but one that goes with a value of it is, that value is meant.

        Raises:
            ValueError: settings that do not go together; the message names them and the fix.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        found: dict[str, Any] = {}
        for setting in self.thresholds:
            name = setting.name
            if setting.where is None:
                found[name] = chosen.get(name, self._implied(name, chosen))
                if setting.is_choice and found[name] not in setting.values:
                    raise ValueError(f"{name}={found[name]!r}: use {' or '.join(map(repr, setting.values))}")
            elif found[setting.where[0]] == setting.where[1]:
                found[name] = self.value(name, chosen.get(name))
            elif name in chosen:
                other, wanted = setting.where
                raise ValueError(
                    f"{name}={chosen[name]!r} goes with {other}={wanted!r}, not {found[other]!r} and its numbers; "
                    f"leave {name} out, or pass {other}={wanted!r} alone"
                )
        return found

    def _implied(self, name: str, chosen: Mapping[str, Any]) -> Any:
        """The value of a setting that the given ones go with, or its default."""
        meant = (s.where[1] for s in self.thresholds if s.where and s.where[0] == name and s.name in chosen)
        return next(meant, self.default(name))

    def check_task(self, task: Task | None) -> Task:
        """Return the task, or the method's first one for None.

        Raises:
            ValueError: the method does not do it; the message names the methods that do.
        """
        if task is None:
            return self.tasks[0]
        if task in self.tasks:
            return task
        others = [m.class_name for m in METHODS.values() if task in m.tasks]
        fix = f"; use {' or '.join(others)} for {str(task).replace('_', ' ')}" if others else ""
        raise ValueError(f"task={task!r}: {self.name} does {' and '.join(map(repr, self.tasks))}{fix}")

    def check_names(self, names: Collection[str], also: Collection[str] = ()) -> None:
        """Check that all of these settings are the method's own (or among `also`).

        Raises:
            ValueError: one is not; the message lists what the method takes.
        """
        known = (*(s.name for s in self.settings), *also)
        if foreign := sorted(set(names) - set(known)):
            raise ValueError(
                f"aggregation={self.name!r} has no {', '.join(foreign)}; it takes {', '.join(known) or 'no settings'}"
            )

    def load(self) -> Any:
        """Return the front door's class, a subclass of `Defense`."""
        module, _, name = self.defense.partition(":")
        return getattr(import_module(module), name)

    def build(self, model: Any, **given: Any) -> Any:
        """Return the front door, a `Defense`, around a model; `given`: `task`, `prompts`, settings and grouping.

        Raises:
            ValueError, TypeError: an invalid argument, or a model that does not give what the method needs.
        """
        return self.load()(model, **given)

    def settings_of(self, given: Mapping[str, Any]) -> Any:
        """Return checked settings (`MethodSettings`) from user arguments, prompts and task among them.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        return self.load().settings_type.of(**given)


def _method(name: str, found: object) -> Method:
    """Check that another package's entry point names a method, and return it as an entry of the table.

    Raises:
        TypeError, ValueError: it is none, or may not have this name.
        Exception: what its module raises.
    """
    if not isinstance(found, Method):
        raise TypeError(f"must be a Method of defenses.registry, got {type(found).__name__}")
    if found.name != name:
        raise ValueError(f"is named {found.name!r}; give the entry point the same name")
    if name in BASELINES or name == "no-rag":
        raise ValueError("has the name of a baseline")
    if not hasattr(found.load(), "settings_type"):  # loaded here, so that what fails in it fails in nobody's answer
        raise TypeError(f"{found.defense} is no Defense")
    return found


_RELATIVE, _ABSOLUTE = ("threshold", "relative"), ("threshold", "absolute")
_CUT_REPLIES = Setting("cut_replies", "abstain", str, "what a reply that was cut does", values=("abstain", "count"))

_REPLIES = Setting(
    "replies",
    "text",
    str,
    "whether groups are asked for an object with answer and flag: never, always, where the model is made to give one",
    values=("text", "structured", "auto"),
)
_UNGROUNDED = Setting(
    "ungrounded",
    "abstain",
    str,
    "what becomes of an answer of which no word stands in the passages of those that give it",
    values=("abstain", "count"),
)
_OPTIONS = Setting(
    "options",
    "words",
    str,
    "multiple choice asks for an option's words, or for its letter as the paper does",
    values=("words", "letters"),
)
_EXTRACTOR = Setting(
    "extractor",
    "runs",
    str,
    "what finds a reply's keywords: runs of words, or the paper's spaCy; in Python also a function",
    values=("runs", "spacy"),
)

KEYWORD = Method(
    name="keyword",
    summary="keep the keywords that enough groups share, answer from those alone; any model",
    tasks=("short_answer", "long_form", "list"),
    needs="text",
    defense="robustrag_integrations.defenses.keyword.defense:KeywordAggregation",
    settings=(
        Setting(
            "threshold",
            "absolute",
            str,
            "what a keyword is held against: the strongest keyword, or alpha and beta",
            threshold=True,
            values=("relative", "absolute"),
            tries=("relative", "absolute"),
        ),
        Setting(
            "share",
            0.5,
            float,
            "share of the strongest keyword's groups that must agree",
            True,
            where=_RELATIVE,
            tries=(0.5, 0.6, 0.7),
        ),
        Setting(
            "min_support", 2, int, "number of groups that must say a keyword", True, where=_RELATIVE, tries=(1, 2, 3)
        ),
        Setting(
            "alpha",
            0.5,
            float,
            "share of answering groups that must agree",
            True,
            where=_ABSOLUTE,
            tries=(0.2, 0.3, 0.4, 0.5),
        ),
        Setting(
            "beta", 5, int, "number of groups that is enough in any case", True, where=_ABSOLUTE, tries=(2, 3, 4, 5)
        ),
        Setting(
            "final",
            "auto",
            str,
            "when the model words the kept keys: where several have to be put together, always, or never",
            values=("auto", "always", "never"),
        ),
        _EXTRACTOR,
        Setting("min_words", None, int, "keywords of fewer words do not count"),
        Setting("quorum", 0.5, float, "share of groups that must have been asked with success"),
        Setting("abstention", None, object, "from one response to whether it abstains, or phrases that do"),
        _CUT_REPLIES,
        _REPLIES,
        _UNGROUNDED,
    ),
    prompts=("keyword", "phrases"),
)
DECODING = Method(
    name="decoding",
    summary="decode from the sum of all groups' next-token probabilities; a model that gives them",
    tasks=("short_answer", "long_form"),
    needs="probabilities",
    defense="robustrag_integrations.defenses.decoding.defense:DecodingAggregation",
    settings=(
        Setting(
            "gamma",
            0.99,
            float,
            "probability of abstaining from which a group is left out",
            threshold=True,
            tries=(0.9, 0.99),
        ),
        Setting("eta", 0.0, float, "smallest lead of a token, in probability", threshold=True, tries=(0.0, 1.0, 2.0)),
        Setting("max_new_tokens", None, int, "longest answer"),
        Setting("stop", None, object, "strings that end the answer"),
        Setting("slack", 2.0**-10, float, "what comparisons of the radius are widened by, for float noise"),
    ),
    prompts=("no_retrieval",),
)
VOTING = Method(
    name="voting",
    summary="majority vote over the options of a multiple-choice question; any model",
    tasks=("multiple_choice",),
    needs="text",
    defense="robustrag_integrations.defenses.voting.defense:MajorityVoting",
    settings=(
        _OPTIONS,
        Setting("quorum", 0.5, float, "share of groups that must have been asked with success"),
        _CUT_REPLIES,
    ),
)

CONSENSUS = Method(
    name="consensus",
    summary="one round: what most of the strongest support says, in the groups' own words; any model",
    tasks=("short_answer", "long_form", "list"),
    needs="text",
    defense="robustrag_integrations.defenses.consensus.defense:ConsensusAggregation",
    settings=(
        Setting(
            "share",
            0.5,
            float,
            "share of the strongest keyword's groups that must agree",
            threshold=True,
            tries=(0.5, 0.6, 0.7),
        ),
        Setting(
            "min_support",
            2,
            int,
            "number of groups that must say the strongest keyword",
            threshold=True,
            tries=(1, 2, 3),
        ),
        _EXTRACTOR,
        Setting("quorum", 0.5, float, "share of groups that must have been asked with success"),
        Setting("abstention", None, object, "from one response to whether it abstains, or phrases that do"),
        _CUT_REPLIES,
        _REPLIES,
        _UNGROUNDED,
    ),
)

VANILLA = Method(
    name="vanilla",
    summary="no defence: one prompt with all passages, to compare with",
    tasks=("short_answer", "multiple_choice", "long_form", "list"),
    needs="text",
    defense="robustrag_integrations.defenses.vanilla:VanillaRAG",
    settings=(_OPTIONS, _CUT_REPLIES),
)

_BASELINES = "robustrag_integrations.evaluation.baselines"
_ANY_TASK: tuple[Task, ...] = ("short_answer", "multiple_choice", "long_form")
_CONTRADICTS = Setting(
    "contradicts", None, object, "whether two answers contradict each other; None compares words", is_function=True
)

MIS = Method(
    name="mis",
    summary="baseline (ReliabilityRAG): read the largest set of passages whose answers do not contradict each other",
    tasks=("short_answer", "multiple_choice"),
    needs="text",
    defense=f"{_BASELINES}.mis:IndependentSet",
    settings=(_CONTRADICTS, _OPTIONS, _CUT_REPLIES),
)
MIS_SAMPLING = Method(
    name="mis-sampling",
    summary="baseline (ReliabilityRAG, for many passages): the same over small random draws of passages",
    tasks=("short_answer", "multiple_choice"),
    needs="text",
    defense=f"{_BASELINES}.mis:SampledIndependentSet",
    settings=(
        _CONTRADICTS,
        Setting("samples", 20, int, "how many draws are asked"),
        Setting("sample_size", 2, int, "how many passages a draw holds"),
        Setting("decay", 0.9, float, "weight of a rank relative to the one above it"),
        Setting("seed", 0, int, "of the draws"),
        _OPTIONS,
        _CUT_REPLIES,
    ),
)
RADAR = Method(
    name="radar",
    summary="baseline (RADAR): read the passages that a smallest cut leaves on the side of those that agree",
    tasks=("short_answer", "multiple_choice"),
    needs="text",
    defense=f"{_BASELINES}.radar:MinCut",
    settings=(
        _CONTRADICTS,
        Setting("entails", None, object, "whether an answer implies another; None compares words", is_function=True),
        _OPTIONS,
        _CUT_REPLIES,
    ),
)
TRUSTRAG = Method(
    name="trustrag",
    summary="baseline (TrustRAG): drop passages that were written alike, add what the model knows",
    tasks=_ANY_TASK,
    needs="text",
    defense=f"{_BASELINES}.trustrag:ClusterFilter",
    settings=(
        Setting("embed", None, object, "from texts to vectors; None counts words", is_function=True),
        _OPTIONS,
        _CUT_REPLIES,
    ),
)
INSTRUCTION = Method(
    name="instruction",
    summary="baseline: one prompt with all passages that says to ignore instructions in them",
    tasks=_ANY_TASK,
    needs="text",
    defense=f"{_BASELINES}.filters:InstructionPrompt",
    settings=(
        _OPTIONS,
        _CUT_REPLIES,
    ),
)
DETECTOR = Method(
    name="detector",
    summary="baseline: drop the passages in which a detector finds an injection",
    tasks=_ANY_TASK,
    needs="text",
    defense=f"{_BASELINES}.filters:InjectionDetector",
    settings=(
        Setting(
            "detector", None, object, "whether a passage holds an injection; None looks for phrases", is_function=True
        ),
        _OPTIONS,
        _CUT_REPLIES,
    ),
)

METHODS: Table[Method] = Table(
    "robustrag.methods", {method.name: method for method in (KEYWORD, DECODING, VOTING, CONSENSUS)}, _method
)
"""The methods with a radius, by name: these and those of other packages."""

BASELINES: Mapping[str, Method] = {
    method.name: method for method in (VANILLA, MIS, MIS_SAMPLING, RADAR, TRUSTRAG, INSTRUCTION, DETECTOR)
}
"""The baselines to compare with, by name; each has the radius 0."""


def entry_of(name: str) -> Method:
    """The method or baseline of this name; vanilla RAG for any other."""
    return BASELINES.get(name) or METHODS.get(name, VANILLA)


def methods_that(trait: str) -> tuple[Method, ...]:
    """Return the methods whose front door has this trait (`takes_weights`, `decides_early`); loads all of them."""
    return tuple(method for method in METHODS.values() if getattr(method.load(), trait))


def default_method(task: Task | None, names: Collection[str] = ()) -> str:
    """Return the method used where none is named: the first one that does the task and takes all that is given.

    Args:
        task: what is to be answered; None for short answers, or what the names say.
        names: the names of given settings and prompts (`keyword_prompt`), `choices` and `final_llm` among them.
    """
    for method in (CONSENSUS, KEYWORD, VOTING, DECODING):
        taken = {"task", "prompts", *(s.name for s in method.settings), *(f"{p}_prompt" for p in method.prompts)}
        taken |= {"final_llm", "final_model", "output_schema", "output_cls"} if method is KEYWORD else set()
        taken |= {"choices"} if method.takes_choices else set()
        if (task is None or task in method.tasks) and taken.issuperset(names):
            return method.name
    return CONSENSUS.name


def method_of(name: object) -> Method:
    """Return the method of this name.

    Raises:
        ValueError: there is none; the message lists those that there are.
    """
    found = METHODS.get(name) if isinstance(name, str) else None
    if found is None:
        why = "is a baseline of robustrag eval and ask" if name in tuple(BASELINES) else "is unknown"
        raise ValueError(f"aggregation={name!r} {why}; use one of {', '.join(map(repr, METHODS))}")
    return found
