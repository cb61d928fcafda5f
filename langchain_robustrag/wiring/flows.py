"""Where retrieved text goes: through a chain, from step to step, key by key."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableAssign,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnablePick,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.tools import BaseTool

from langchain_robustrag.graph import RobustNode
from langchain_robustrag.retrieval import RobustRetrievalChain
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.wiring.holdings import is_library, reach
from langchain_robustrag.wiring.kinds import (
    CALLABLE_NODES,
    TOOL_NODES,
    is_model,
    is_ours,
    is_source,
    loaded,
    reads_documents_alone,
    reads_queries_alone,
)
from langchain_robustrag.wiring.server_tools import server_tools
from langchain_robustrag.wiring.words import all_words, hands_on, reads_argument, words_read
from robustrag_integrations.audit import Finding

_PLAIN_MODEL = "give a plain model; if it isolates documents itself, pass it in trusted="
CHAIN = "create_robust_documents_chain(llm, prompt)"


@dataclass(frozen=True)
class Flow:
    """What a step is given: where retrieved text in it came from.

    Attributes:
        whole: the source, if any part of the value may be retrieved text; empty if none is.
        keys: the same for keys of a dict whose other keys are clean.
        clean: keys that are known to be there and clean.
    """

    whole: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    clean: frozenset[str] = frozenset()

    def of(self, name: str) -> str:
        """The source of what is under a key."""
        return self.whole or self.keys.get(name, "")

    @property
    def source(self) -> str:
        """Any source."""
        return self.whole or next(iter(self.keys.values()), "")

    def joined(self, other: Flow) -> Flow:
        """What may be either, or both."""
        return Flow(self.whole or other.whole, {**other.keys, **self.keys}, self.clean & other.clean)


CLEAN = Flow()


@dataclass
class Walk:
    """One walk over what a program is made of.

    Attributes:
        rules: what to do with which kinds of step; the first kind that fits decides.
        trusted: whether an object is not to be looked into.
        found: the findings.
        under_way: what is being looked at, by identity and flow.
    """

    rules: Rules
    trusted: Callable[[object], bool]
    found: list[Finding] = field(default_factory=list)
    under_way: set[tuple[int, str, str]] = field(default_factory=set)

    def report(self, kind: str, path: str, thing: object, problem: str, fix: str) -> None:
        """Add a finding, once per place and kind."""
        if not any((f.kind, f.path) == (kind, path) for f in self.found):
            self.found.append(Finding(kind, path, type(thing).__name__, problem, fix))

    def given_tools(self, tools: Any, path: str) -> None:
        """Report those of a model's tools that its provider runs."""
        for at, spec, name in server_tools(tools):
            if not self.trusted(spec):
                self.report(
                    "server-tool",
                    f"{path}.tools[{at}]",
                    spec,
                    f"what the provider's own tool {name!r:.60} finds is shown to the model as it is",
                    "retrieve with create_robust_retriever_tool; if nobody else writes what it finds, pass this dict "
                    "in trusted=",
                )

    def apart(self) -> Walk:
        """A walk of its own, whose findings are not reported."""
        return Walk(self.rules, self.trusted, [], set(self.under_way))

    def flow(self, thing: Any, given: Flow, path: str) -> Flow:
        """What a step gives, given this; findings are added on the way."""
        mark = (id(thing), given.whole, repr(sorted(given.keys)))
        if self.trusted(thing):
            return CLEAN
        if mark in self.under_way:
            return given
        self.under_way.add(mark)
        try:
            return self._flow(thing, given, path)
        finally:
            self.under_way.discard(mark)

    def _flow(self, thing: Any, given: Flow, path: str) -> Flow:
        if is_ours(thing):
            return self._ours(thing, given, path)
        for fits, rule in self.rules:
            if fits(thing):
                found = rule(self, thing, given, path)
                if not _overrides(thing):
                    return found
                if not isinstance(thing, BaseLanguageModel):
                    return found.joined(self.mixed(thing, given, path))
                if source := self.mixed(thing, CLEAN, path).source:
                    self.report("mixed", path, thing, f"the model retrieves text itself (from {source})", _PLAIN_MODEL)
                return found
        if is_source(thing):
            return Flow(named(path, thing))
        if isinstance(thing, Runnable):
            return self.mixed(thing, given, path)
        return given

    def _ours(self, thing: Any, given: Flow, path: str) -> Flow:
        if isinstance(thing, RobustDocuments):
            return _robust_documents(self, thing, given, path)
        if isinstance(thing, RobustRetrievalChain):
            self.flow(thing.retriever, Flow(keys=given.keys), f"{path}.retriever")
            context = thing.answering.document_variable_name
            kept = {name: source for name, source in given.keys.items() if name != context}
            found = _robust_documents(self, thing.answering, Flow(keys=kept), path)
            return Flow(keys={**kept, **found.keys, context: named(path, thing)}, clean=given.clean | found.clean)
        if isinstance(thing, RobustNode):
            _robust_documents(self, thing.answering, given, f"{path}.answering")
            return Flow(keys={} if thing.robustness_key is None else {thing.robustness_key: named(path, thing)})
        return CLEAN

    def parts(self, thing: object, path: str) -> None:
        """Look at a retriever or model inside of something that isolates documents."""
        if isinstance(thing, BaseRetriever):
            _retriever(self, thing, CLEAN, path)

    def mixed(self, thing: Any, given: Flow, path: str) -> Flow:
        """A function, or an object of a kind that is not known: what it holds decides."""
        sources: list[tuple[str, object]] = []
        models: list[tuple[str, object]] = []
        ours: list[object] = []
        handed = CLEAN
        read = given.whole or mentioned(thing, given)
        for at, value in reach(thing, self.trusted):
            here = f"{path}{at}"
            if is_source(value):
                sources.append((here, value))
                self.parts(value, here)
            elif is_model(value):
                models.append((here, value))
            elif isinstance(value, BaseTool) and not is_ours(value):
                if not is_library(thing) and "bind_tools" not in all_words(thing)[0]:
                    gave = self.apart().flow(value, CLEAN, here)
                    sources += [(here, value)] if gave.source else []
            elif isinstance(value, Runnable) and not _is_other_node(thing, value):
                gave = self.flow(value, Flow(keys={} if is_ours(value) else given.keys), here)
                if taken(thing, gave):
                    sources.append((here, value))
                    handed = gave if hands_on(thing) else handed
                if is_ours(value):
                    ours.append(value)
                    continue
                trial = self.apart()
                trial.flow(value, Flow("what it is given"), here)
                if trial.found:
                    models.append((here, value))
            elif is_ours(value):
                ours.append(value)
        raw = named(*sources[0]) if sources else read
        if raw and models:
            at, model = models[0]
            self.report(
                "mixed",
                path,
                thing,
                f"it holds both retrieved text (from {raw}) and what asks a model ({type(model).__name__} at {at})",
                f"answer with {CHAIN} there; if it isolates documents itself, pass it in trusted=",
            )
            return CLEAN
        if ours and all(not is_ours(value) for _, value in sources):
            return CLEAN
        return handed if len(sources) == 1 and handed.keys else Flow(raw)


def _overrides(thing: object) -> bool:
    """Whether it is a step of a known kind that does something else than its kind does."""
    if isinstance(thing, (BaseRetriever, BaseTool)):
        return False
    names = ("_generate", "_agenerate", "_stream", "_astream", "_call", "_acall", "format_prompt", "format_messages")
    methods = (getattr(type(thing), name, None) for name in ("invoke", "ainvoke", "transform", *names))
    return any(isinstance(method, FunctionType) and not is_library(method) for method in methods)


def _is_other_node(function: object, value: object) -> bool:
    """Whether LangGraph's own code holds a node, which is looked at by itself."""
    return is_library(function) and isinstance(value, loaded(*CALLABLE_NODES, *TOOL_NODES))


def _sequence(walk: Walk, thing: RunnableSequence[Any, Any], given: Flow, path: str) -> Flow:
    for at, step in enumerate(thing.steps):
        given = walk.flow(step, given, f"{path}.steps[{at}]")
    return given


def _parallel(walk: Walk, thing: RunnableParallel[Any], given: Flow, path: str) -> Flow:
    flows = {name: walk.flow(step, given, f"{path}[{name!r}]").source for name, step in thing.steps__.items()}
    raw = {name: source for name, source in flows.items() if source}
    return Flow(keys=raw, clean=frozenset(flows) - frozenset(raw))


def _assign(walk: Walk, thing: RunnableAssign, given: Flow, path: str) -> Flow:
    added = _parallel(walk, thing.mapper, given, path)
    kept = {name: source for name, source in given.keys.items() if name not in thing.mapper.steps__}
    return Flow(given.whole, {**kept, **added.keys}, (given.clean | added.clean) - frozenset(added.keys))


def _pick(walk: Walk, thing: RunnablePick, given: Flow, path: str) -> Flow:
    if isinstance(thing.keys, str):
        return Flow(given.of(thing.keys))
    return Flow(given.whole, {name: given.keys[name] for name in thing.keys if name in given.keys})


def _bound(walk: Walk, thing: Any, given: Flow, path: str) -> Flow:
    walk.given_tools((getattr(thing, "kwargs", None) or {}).get("tools"), path)
    return walk.flow(thing.bound, given, path)


def _fallbacks(walk: Walk, thing: RunnableWithFallbacks[Any, Any], given: Flow, path: str) -> Flow:
    found = CLEAN
    for at, step in enumerate([thing.runnable, *thing.fallbacks]):
        found = found.joined(walk.flow(step, given, f"{path}.fallbacks[{at}]"))
    return found


def _branch(walk: Walk, thing: RunnableBranch[Any, Any], given: Flow, path: str) -> Flow:
    found = walk.flow(thing.default, given, f"{path}.default")
    for at, (condition, step) in enumerate(thing.branches):
        walk.flow(condition, given, f"{path}.branches[{at}].condition")
        found = found.joined(walk.flow(step, given, f"{path}.branches[{at}]"))
    return found


def _dynamic(walk: Walk, thing: DynamicRunnable[Any, Any], given: Flow, path: str) -> Flow:
    found = walk.flow(thing.default, given, path)
    for name, other in getattr(thing, "alternatives", {}).items():
        if isinstance(other, Runnable):
            found = found.joined(walk.flow(other, given, f"{path}[{name!r}]"))
    return found


def _lambda(walk: Walk, thing: Any, given: Flow, path: str) -> Flow:
    functions = [f for f in (getattr(thing, "func", None), getattr(thing, "afunc", None)) if f is not None]
    found = CLEAN
    for function in functions:
        if walk.trusted(function):
            continue
        if isinstance(function, operator.itemgetter):
            names = [name for name in function.__reduce__()[1] if isinstance(name, str)]
            found = found.joined(Flow(next((s for n in names if (s := given.of(n))), "")))
        else:
            found = found.joined(walk.mixed(function, given, path))
    return found


def _generator(walk: Walk, thing: RunnableGenerator[Any, Any], given: Flow, path: str) -> Flow:
    held = vars(thing)
    functions = [held[name] for name in ("_transform", "_atransform") if name in held]
    found = CLEAN
    for function in functions:
        found = found.joined(walk.mixed(function, Flow(given.source), path))
    return found


def _passed(walk: Walk, thing: Any, given: Flow, path: str) -> Flow:
    return given


def _prompt(walk: Walk, thing: BasePromptTemplate[Any], given: Flow, path: str) -> Flow:
    names = {*thing.input_variables, *thing.optional_variables}
    for at, value in reach(dict(vars(thing)), walk.trusted):
        if is_source(value):
            return Flow(named(f"{path}{at}", value))
    return Flow(given.whole or next((s for name in sorted(names) if (s := given.of(name))), ""))


def _model(walk: Walk, thing: BaseLanguageModel[Any], given: Flow, path: str) -> Flow:
    if given.source:
        walk.report(
            "raw-prompt",
            path,
            thing,
            f"retrieved text (from {given.source}) is put into its prompt as it is",
            f"answer with {CHAIN} in place of the prompt and the model",
        )
    return CLEAN


def _retriever(walk: Walk, thing: BaseRetriever, given: Flow, path: str) -> Flow:
    """Retrieved text; a model inside reads documents, unless it is known to read the question or one document alone."""
    if not reads_queries_alone(thing):
        for at, value in _inside(thing, walk):
            if is_model(value) or _asks(walk, value, f"{path}{at}"):
                walk.report(
                    "reading-retriever",
                    f"{path}{at}",
                    thing,
                    "a model inside of the retriever may read several documents together, and one of them decide over "
                    "the others",
                    "retrieve without a model, or with a cross-encoder that scores each document by itself; if the "
                    "model sees the question alone, pass the retriever in trusted=",
                )
                break
    return Flow(named(path, thing))


def _asks(walk: Walk, thing: object, path: str) -> bool:
    """Whether a step inside of a retriever may show documents to a model: those it finds itself, or those it is given.

    What retrieves by itself is asked the question, as `prompt | model | retriever` is.
    """
    if not isinstance(thing, Runnable) or is_ours(thing):
        return False
    trial = walk.apart()
    if not trial.flow(thing, CLEAN, path).source:
        trial.flow(thing, Flow("the retriever"), path)
    return bool(trial.found)


def _inside(thing: BaseRetriever, walk: Walk) -> Iterator[tuple[str, object]]:
    def left_out(value: object) -> bool:
        return walk.trusted(value) or reads_documents_alone(value)

    for at, value in reach([dict(vars(thing)), _methods(thing)], left_out):
        if isinstance(value, BaseRetriever) and not walk.trusted(value):
            if not reads_queries_alone(value):
                yield from _inside(value, walk)
        else:
            yield at, value


def _methods(thing: object) -> list[Any]:
    names = ("_get_relevant_documents", "_aget_relevant_documents")
    return [getattr(type(thing), name) for name in names]


def _parser(walk: Walk, thing: BaseOutputParser[Any], given: Flow, path: str) -> Flow:
    return walk.mixed(thing, given, path) if any(is_model(v) for _, v in reach(thing, walk.trusted)) else given


def _robust_documents(walk: Walk, thing: RobustDocuments, given: Flow, path: str) -> Flow:
    context = thing.document_variable_name
    prompts = thing.all_prompts()
    names = {name for p in prompts for name in (*p.input_variables, *p.optional_variables)} - {context}
    for name in sorted(names):
        if source := given.keys.get(name):
            walk.report(
                "raw-input",
                f"{path}[{name!r}]",
                thing,
                f"the prompt's input {name!r} holds retrieved text (from {source}), which is not isolated there",
                f"give documents as {context!r} alone",
            )
    for prompt in prompts:
        if source := _prompt(walk, prompt, CLEAN, path).source:
            walk.report(
                "raw-input",
                f"{path}.prompt",
                thing,
                f"the prompt itself retrieves text (from {source}), which is not isolated",
                f"give documents as {context!r} alone",
            )
    for name in ("llm", "final_llm"):
        model = getattr(thing, name)
        if model is not None and not is_model(model) and walk.flow(model, CLEAN, f"{path}.{name}").source:
            walk.report("mixed", f"{path}.{name}", model, "the model retrieves text itself", _PLAIN_MODEL)
    if not thing.return_robustness:
        return CLEAN
    return Flow(keys={"robustness": named(path, thing)}, clean=frozenset({"answer"}))


def named(path: str, thing: object) -> str:
    """A thing and where it is, in words."""
    return f"{type(thing).__name__ if not isinstance(thing, type) else thing.__name__} at {path or 'the top'}"


def mentioned(function: Any, given: Flow) -> str:
    """The source of a key that a function's code names; of any, if it reads its argument and no clean key of it."""
    if not given.keys:
        return ""
    names, words = all_words(function)
    if source := _source_named(given, names, words):
        return source
    reads_others = given.clean & (names | words_read(function)) or not reads_argument(function)
    return "" if reads_others else given.source


def _source_named(given: Flow, names: Collection[str], words: Collection[str]) -> str:
    return next((source for key, source in given.keys.items() if key in names or key in words), "")


def taken(function: Any, gave: Flow) -> str:
    """The source of what a function takes from a step that it calls; of any part, if it reads no clean key alone."""
    if gave.whole or not gave.clean:
        return gave.whole or mentioned(function, gave)
    named = _source_named(gave, *all_words(function))
    return named or ("" if gave.clean & words_read(function) else gave.source)


_CLASSIC = ("langchain_classic.chains.base", "Chain")


def _chain(walk: Walk, thing: Any, given: Flow, path: str) -> Flow:
    """A chain class of langchain-classic: fine with our own chain over documents in it, else its parts decide."""
    own = loaded(("langchain_robustrag.classic", "RobustDocumentsChain"))
    if any(type(value) in own for value in vars(thing).values()):
        for name, value in vars(thing).items():
            walk.parts(value, f"{path}.{name}")
        return CLEAN
    return walk.mixed(dict(vars(thing)), given, path or type(thing).__name__)


def _is_classic(value: object) -> bool:
    return isinstance(value, loaded(_CLASSIC))


def _of(*kinds: Any) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


Rules: TypeAlias = Sequence[tuple[Callable[[object], bool], Callable[[Walk, Any, Flow, str], Flow]]]

STEPS: Rules = (
    (_is_classic, _chain),
    (_of(BaseLanguageModel), _model),
    (_of(BaseRetriever), _retriever),
    (_of(BasePromptTemplate), _prompt),
    (_of(BaseOutputParser), _parser),
    (_of(RunnableSequence), _sequence),
    (_of(RunnableParallel), _parallel),
    (_of(RunnableAssign), _assign),
    (_of(RunnablePick), _pick),
    (_of(RunnablePassthrough), _passed),
    (_of(RunnableWithFallbacks), _fallbacks),
    (_of(RunnableBranch), _branch),
    (_of(DynamicRunnable), _dynamic),
    (_of(RunnableBindingBase, RunnableEachBase), _bound),
    (_of(RunnableLambda), _lambda),
    (_of(RunnableGenerator), _generator),
)
