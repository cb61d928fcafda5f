"""Every kind of leak in every hiding place is found, and a robust engine in the same places is not."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import itertools
import queue
import types
import weakref
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, PrivateAttr
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llamaindex_robustrag import RobustRAGQueryEngine, find_undefended
from tests.llamaindex.fakes import FactReader, index_of, truthful

INDEX = index_of(truthful(3))


def reads(thing: Any, question: str) -> str:
    """Whatever a tool does with a thing."""
    return str(thing.act(question))


# Ways to hide a thing behind a function. Each gives a function of a question.


def by_closure(thing: Any) -> Any:
    def act(question: str) -> str:
        """Act."""
        return str(thing.act(question))

    return act


def by_default(thing: Any) -> Any:
    def act(question: str, held: Any = thing) -> str:
        """Act."""
        return str(held.act(question))

    return act


def by_keyword_default(thing: Any) -> Any:
    def act(question: str, *, held: Any = thing) -> str:
        """Act."""
        return str(held.act(question))

    return act


def by_lambda_default(thing: Any) -> Any:
    return lambda question, held=thing: str(held.act(question))


def by_helper(thing: Any) -> Any:
    def helper(question: str) -> str:
        return str(thing.act(question))

    def act(question: str) -> str:
        """Act."""
        return helper(question)

    return act


def by_two_helpers(thing: Any) -> Any:
    return by_helper(types.SimpleNamespace(act=by_closure(thing)))


def by_argument(thing: Any) -> Any:
    def act(question: str) -> str:
        """Act."""
        return reads(thing, question)

    return act


def by_inner_function(thing: Any) -> Any:
    def act(question: str) -> str:
        """Act."""

        def inner() -> str:
            return str(thing.act(question))

        return inner()

    return act


def by_alias(thing: Any) -> Any:
    def act(question: str) -> str:
        """Act."""
        held = thing
        other = held
        return str(other.act(question))

    return act


def by_getattr(thing: Any) -> Any:
    box = types.SimpleNamespace(held=thing)

    def act(question: str) -> str:
        """Act."""
        return str(getattr(box, "held").act(question))  # noqa: B009 - that is the case

    return act


def by_comprehension(thing: Any) -> Any:
    held = [thing]

    def act(question: str) -> str:
        """Act."""
        return " ".join(str(one.act(question)) for one in held)

    return act


def by_coroutine(thing: Any) -> Any:
    async def act(question: str) -> str:
        """Act."""
        return str(await asyncio.to_thread(thing.act, question))

    return act


def by_partial(thing: Any) -> Any:
    return functools.partial(reads, thing)


def by_partial_keyword(thing: Any) -> Any:
    return functools.partial(reads, thing=thing)


def by_wrapper(thing: Any) -> Any:
    function = by_closure(thing)

    @functools.wraps(function)
    def act(*arguments: Any, **named: Any) -> str:
        return str(function(*arguments, **named))

    return act


def by_cache(thing: Any) -> Any:
    return functools.lru_cache(by_closure(thing))


def by_compiled_text(thing: Any) -> Any:
    space: dict[str, Any] = {"held": thing}
    exec("def act(question: str) -> str:\n    return str(held.act(question))", space)
    return space["act"]


def by_globals(thing: Any) -> Any:
    space: dict[str, Any] = {"held": thing, "__builtins__": __builtins__}
    exec("def act(question: str) -> str:\n    return str(globals()['held'].act(question))", space)
    return space["act"]


def _behind(holder: Any) -> Any:
    def act(question: str) -> str:
        """Act."""
        return str(holder)

    return act


def by_dict(thing: Any) -> Any:
    return _behind({"a": {"b": thing}})


def by_list(thing: Any) -> Any:
    return _behind([[(thing,)]])


def by_deque_and_proxy(thing: Any) -> Any:
    return _behind(deque([types.MappingProxyType({"a": thing})]))


def by_ordered(thing: Any) -> Any:
    return _behind(OrderedDict(a=thing))


def by_named_tuple(thing: Any) -> Any:
    return _behind(namedtuple("Held", "held")(thing))


def by_context_variable(thing: Any) -> Any:
    variable: ContextVar[Any] = ContextVar("held")
    variable.set(thing)
    return _behind(variable)


def by_weak_reference(thing: Any) -> Any:
    return _behind(weakref.ref(thing))


def by_enumeration(thing: Any) -> Any:
    return _behind(enum.Enum("Held", {"HELD": ("held", thing)}))


def by_module(thing: Any) -> Any:
    module: Any = types.ModuleType("held")
    module.held = thing
    return _behind(module)


def by_descriptor(thing: Any) -> Any:
    class Gives:
        def __get__(self, owner: Any, kind: Any = None) -> Any:
            return thing

    class Holding:
        held = Gives()

    return _behind(Holding())


def by_attribute_of_a_text(thing: Any) -> Any:
    class Text(str):
        """With more than characters."""

    text: Any = Text("held")
    text.held = thing
    return _behind(text)


def by_queue(thing: Any) -> Any:
    waiting: Any = queue.Queue()
    waiting.put(thing)
    return _behind(waiting)


def by_iterator(thing: Any) -> Any:
    return _behind(itertools.cycle([(one for one in [thing])]))


def by_registry(thing: Any) -> Any:
    registry = {"a": {"held": thing}}

    def act(question: str) -> str:
        """Act."""
        return str(registry["a"]["held"].act(question))

    return act


def by_class_of_class(thing: Any) -> Any:
    class Kind(type):
        def act(cls, question: str) -> str:
            """Act."""
            return str(thing.act(question))

    return Kind("Holding", (), {}).act


def by_cycle(thing: Any) -> Any:
    one: list[Any] = [thing]
    one.append(one)
    return _behind(one)


def by_deep_chain(thing: Any) -> Any:
    chain: Any = thing
    for _ in range(3000):
        chain = [chain]
    return _behind(chain)


class Service:
    """Holds a thing."""

    shared: Any = None

    def __init__(self, held: Any) -> None:
        self._held = held

    def act(self, question: str) -> str:
        """Act."""
        return self._deeper(question)

    def _deeper(self, question: str) -> str:
        return str(self._held.act(question))


class Slotted:
    """Holds a thing in a slot."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def act(self, question: str) -> str:
        """Act."""
        return str(self._held.act(question))


@dataclasses.dataclass(frozen=True)
class Data:
    """Holds a thing in a field."""

    held: Any

    def act(self, question: str) -> str:
        """Act."""
        return str(self.held.act(question))


class Model(BaseModel):
    """Holds a thing in a private attribute."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    _held: Any = PrivateAttr()

    def act(self, question: str) -> str:
        """Act."""
        return str(self._held.act(question))


class Calling(Service):
    """Is called."""

    def __call__(self, question: str) -> str:
        """Act."""
        return self.act(question)


class Dynamic:
    """Finds its attributes when it runs."""

    def __init__(self, held: Any) -> None:
        self.__dict__["hidden"] = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["hidden"], name)


def by_method(thing: Any) -> Any:
    return Service(thing).act


def by_service(thing: Any) -> Any:
    return by_closure(Service(thing))


def by_slot(thing: Any) -> Any:
    return Slotted(thing).act


def by_data(thing: Any) -> Any:
    return Data(Data(thing)).act


def by_private_attribute(thing: Any) -> Any:
    model = Model()
    model._held = thing
    return model.act


def by_callable_object(thing: Any) -> Any:
    return Calling(thing)


def by_dynamic_attribute(thing: Any) -> Any:
    return by_closure(Dynamic(thing))


def by_class_attribute(thing: Any) -> Any:
    class Holding:
        held = thing

        @classmethod
        def act(cls, question: str) -> str:
            """Act."""
            return str(cls.held.act(question))

    return Holding.act


def by_property(thing: Any) -> Any:
    class Holding:
        @property
        def held(self) -> Any:
            return thing

        def act(self, question: str) -> str:
            """Act."""
            return str(self.held.act(question))

    return Holding().act


def by_class_made_inside(thing: Any) -> Any:
    class Holding:
        def __init__(self) -> None:
            self.held = thing

    def act(question: str) -> str:
        """Act."""
        return str(Holding().held.act(question))

    return act


WAYS = {name: way for name, way in list(globals().items()) if name.startswith("by_")}


class Keeping(Workflow):
    """Holds a thing."""

    def __init__(self, thing: Any) -> None:
        super().__init__()
        self._thing = thing

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        """Answer."""
        return StopEvent(result=str(self._thing))


LEAKS: dict[str, Callable[[], Any]] = {
    "index": lambda: INDEX,
    "retriever": INDEX.as_retriever,
    "vector store": lambda: INDEX.vector_store,
    "docstore": lambda: INDEX.docstore,
    "storage": lambda: StorageContext.from_defaults(docstore=INDEX.docstore),
    "nodes": lambda: next(iter(INDEX.docstore.docs.values())),
    "stock engine": lambda: INDEX.as_query_engine(llm=FactReader()),
    "stock chat engine": lambda: INDEX.as_chat_engine(chat_mode="context", llm=FactReader()),
    "agent": lambda: FunctionAgent(
        tools=[RetrieverTool.from_defaults(INDEX.as_retriever(), name="r", description="d")], llm=FactReader()
    ),
    "workflow": lambda: Keeping(INDEX),
}


def as_tool(function: Any) -> Any:
    return FunctionTool.from_defaults(function, name="n", description="d", fn_schema=Question)


class Question(BaseModel):
    """What a tool is asked."""

    question: str


def found(thing: Any) -> list[str]:
    return [finding.kind for finding in find_undefended(thing)]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_found_wherever_a_tool_or_a_workflow_hides_it(leak: str) -> None:
    thing = LEAKS[leak]()
    for name, way in WAYS.items():
        hidden = way(thing)
        assert found(as_tool(hidden)), f"in a tool, {name}"
        assert found(Keeping(hidden)), f"in a workflow, {name}"


@pytest.mark.parametrize("way", WAYS)
def test_a_robust_engine_is_no_leak_wherever_it_is_hidden(way: str) -> None:
    engine = RobustRAGQueryEngine.from_args(INDEX.as_retriever(), llm=FactReader())
    hidden = WAYS[way](engine)
    assert found(as_tool(hidden)) == []
    assert found(Keeping(hidden)) == []


def test_what_the_user_vouches_for_is_left_alone() -> None:
    retriever = INDEX.as_retriever()
    for name, way in WAYS.items():
        assert find_undefended(as_tool(way(retriever)), trusted=[retriever]) == [], name


def test_an_index_of_a_tool_is_found_in_its_arguments_and_callbacks() -> None:
    function = by_closure(Data("nothing"))
    assert found(FunctionTool.from_defaults(function, partial_params={"held": INDEX})) == ["retrieving-function"]
    assert found(FunctionTool.from_defaults(function, callback=by_closure(INDEX))) == ["retrieving-function"]


def test_no_code_of_the_users_runs() -> None:
    class Watchful:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

        def __iter__(self) -> Any:
            raise AssertionError("iterated")

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    assert found(as_tool(by_closure(Watchful()))) == []
    assert found(Keeping([Watchful(), VectorStoreIndex])) == []


def test_a_walk_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llamaindex_robustrag.wiring.walk.MOST", 500)
    assert found(as_tool(_behind([object() for _ in range(1000)]))) == ["too-large"]
