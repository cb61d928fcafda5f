"""The paper's code from a checkout that the user names, adapted to the bundled reader and current libraries.

The checkout is one of github.com/inspire-group/RobustRAG at `COMMIT`. Its files are read and not changed. What has to
be patched is `DEFENSE` and `MODELS`, on the text in memory, and `reader`; no line of the paper's code stands here
beyond what finds the place to patch.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations.evaluation.data.questions import EvalQuestion
from robustrag_integrations.text.prompts import NO_INFORMATION, format_choices, option_label, prompts_for
from robustrag_integrations.text.spacy_keywords import SHIPPED_FOLDER

COMMIT = "9bc35b2fa5fa7d1088383b2789ec19a512d316b1"
HOW = f"git clone https://github.com/inspire-group/RobustRAG && git -C RobustRAG checkout {COMMIT[:7]}"
NEW_TOKENS = 24  # of an answer, as the bundled reader's own setting says
CONTEXT_TOKENS = 2048  # that it was trained for

Patch = tuple[str, str, str]  # original, replacement, and reason
DEFENSE: tuple[Patch, ...] = (
    ('.to("cuda")', ".to('cpu')", "no GPU"),
    ('["input_ids"][0][1]', '["input_ids"][0][0]', "this tokenizer adds no token at the beginning"),
    ("range(start_index,", "range(start_index - 1,", "so the refusal's first token is scored as well"),
    ('"en_core_web_sm"', repr(str(SHIPPED_FOLDER)), "the pipeline that ships with this project, which is there"),
)
MODELS: tuple[Patch, ...] = (('.to("cuda")', ".to('cpu')", "no GPU"),)
EVICTED = "ab_record[:-corruption_size]"
MENDED = "ab_record[:-corruption_size - 1]"  # the last of the k + 1 records belongs to the prompt without passages


@dataclass(frozen=True)
class PaperCode:
    """Two modules of a checkout, patched in memory.

    Attributes:
        defense: `src/defense.py`: the methods and their certificates.
        models: `src/models.py`: what they ask.
    """

    defense: Any
    models: Any


def sources(path: Path, *, mend: bool = False) -> tuple[str, str]:
    """Return the patched text of `src/defense.py` and `src/models.py`; arguments and errors as for `paper_code`."""
    mended = [(EVICTED, MENDED, "evict k' passages, not k' - 1")] if mend else []
    return _patched(path, "defense", [*DEFENSE, *mended]), _patched(path, "models", MODELS)


def paper_code(path: Path, *, mend: bool = False) -> PaperCode:
    """Load the paper's code from a checkout.

    Args:
        path: the checkout.
        mend: whether the decoding certificate evicts as many passages as the attacker injects.

    Raises:
        SystemExit: it is not a checkout, or of another commit.
    """
    defense, models = sources(path, mend=mend)
    package = types.ModuleType("paper_code")
    package.__path__ = [str(path / "src")]  # for its own helper modules
    sys.modules["paper_code"] = package
    with _stand_ins():
        code = PaperCode(_module("defense", path, defense), _module("models", path, models))
    vars(code.defense)["StopOnTokens"] = StopAtEnd
    return code


def _patched(path: Path, name: str, patches: Sequence[Patch]) -> str:
    try:
        source = (path / "src" / f"{name}.py").read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path} is no checkout of github.com/inspire-group/RobustRAG ({error}): {HOW}") from error
    for old, new, why in patches:
        if old not in source:
            raise SystemExit(f"src/{name}.py has no {old} to replace ({why}); check out the right commit: {HOW}")
        source = source.replace(old, new)
    return source


def _module(name: str, path: Path, source: str) -> Any:
    module = types.ModuleType(f"paper_code.{name}")
    module.__package__ = "paper_code"
    exec(compile(source, str(path / "src" / f"{name}.py"), "exec"), vars(module))  # noqa: S102 - what the user named
    return module


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Stand in for modules that the paper's code imports and does not need here, or that transformers dropped; only
    while that code is loaded."""
    from spacy.lang.en.stop_words import STOP_WORDS

    made = {
        "nltk": {},
        "nltk.corpus": {"stopwords": types.SimpleNamespace(words=lambda language: sorted(STOP_WORDS))},
        "litellm": {"batch_completion": None},
        "openai": {"OpenAI": None},
        "joblib": {},
    }
    before = {name: sys.modules.get(name) for name in made}
    for name, held in made.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(held)
    vars(importlib.import_module("transformers.generation.utils"))["_crop_past_key_values"] = _cropped
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _cropped(model: Any, past: Any, length: int) -> Any:
    if past.get_seq_length() > length:
        past.crop(length - past.get_seq_length())
    return past


class StopAtEnd:
    """Stops where the row ends with one of the stop texts; the original counts a token that this tokenizer lacks."""

    def __init__(self, stop_token_ids: Sequence[Any]) -> None:
        self._stops = [tuple(map(int, ids[0])) for ids in stop_token_ids]

    def __call__(self, input_ids: Any, scores: Any, **more: Any) -> bool:
        """True if the first row ends with a stop sequence."""
        row = tuple(map(int, input_ids[0]))
        return any(stop and row[-len(stop) :] == stop for stop in self._stops)


def reader(code: PaperCode, network: Any = None, folder: str = "", new_tokens: int = NEW_TOKENS) -> Any:
    """Return a model in the form that the paper's code calls, with this project's prompts as templates.

    Args:
        code: the paper's.
        network: a model that is loaded already; None for the bundled reader.
        folder: where the model's tokenizer is; the bundled reader's without a network.
        new_tokens: of an answer.
    """
    from transformers import AutoModelForCausalLM

    from robustrag_integrations.reader import reader_path

    def loaded(name: str, **ignored: Any) -> PositionedModel:
        return PositionedModel(network or AutoModelForCausalLM.from_pretrained(name, dtype="float32").eval())

    class Reader(code.models.HFModel):  # type: ignore[misc]  # known when the checkout is read
        """The model for code that names options by letter. Its keywords are sorted, in lower case."""

        choices: Sequence[str] = ()

        def wrap_prompt(self, data_item: Any, as_multi_choice: bool = True, **how: Any) -> Any:
            self.choices = data_item["choices"] if as_multi_choice else ()
            if how.get("hints") is not None:
                how["hints"] = ", ".join(sorted(set(how["hints"].lower().split(", "))))
            return super().wrap_prompt(data_item, as_multi_choice=as_multi_choice, **how)

        def _batch_query(self, prompt_list: Any) -> list[str]:
            said: list[str] = super()._batch_query(prompt_list)
            return [lettered(text, self.choices) for text in said] if self.choices else said

    vars(code.models)["AutoModelForCausalLM"] = types.SimpleNamespace(from_pretrained=loaded)
    path = folder or str(reader_path())
    code.models.CONTEXT_MAX_TOKENS[path] = CONTEXT_TOKENS if network is None else network.config.max_position_embeddings
    return Reader(path, templates(), max_output_tokens=new_tokens)


def templates() -> Mapping[str, str]:
    """Return this reader's prompts in the form of the paper's own."""
    short, choice = prompts_for("short_answer"), prompts_for("multiple_choice", options="letters")
    assert short.keyword is not None  # noqa: S101 - short answers have one
    options = format_choices(["{A}", "{B}", "{C}", "{D}", NO_INFORMATION])
    asked = {"context": "{context_str}", "query": "{query_str}"}
    return {
        "qa": short.isolated.render(**asked).text,
        "qa-long-zero": short.no_retrieval.render(query="{query_str}").text,
        "qa-hint": short.keyword.render(keywords="{hints}", query="{query_str}").text,
        "qa-mc": choice.isolated.render(**asked, choices=options).text,
    }


def lettered(reply: str, choices: Sequence[str]) -> str:
    """Return the letter of the option that a reply names, "E." for none."""
    named = [at for at, choice in enumerate(choices) if choice.casefold() in reply.casefold()]
    return f"{option_label(named[0] if named else len(choices))}."


def item_of(question: EvalQuestion, texts: Sequence[str]) -> dict[str, Any]:
    """Return a question with passages in the form of the paper's code, without options."""
    return {"question": question.question, "answer": list(question.answers), "topk_content": list(texts)}


class PositionedModel:
    """A model whose rows count their positions from the first token that is no padding."""

    def __init__(self, model: Any) -> None:
        self._model, self.generation_config = model, model.generation_config

    def generate(self, **inputs: Any) -> Any:
        """Call the library's own method, which counts positions in that way."""
        return self._model.generate(**inputs)

    def prepare_inputs_for_generation(
        self, input_ids: Any, *, attention_mask: Any, past_key_values: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Return the tokens that are not in the cache, and their positions."""
        seen = 0 if past_key_values is None else past_key_values.get_seq_length()
        fed = {"input_ids": input_ids[:, seen:], "attention_mask": attention_mask, "use_cache": True}
        return fed if past_key_values is None else {**fed, "past_key_values": past_key_values}

    def __call__(self, input_ids: Any, attention_mask: Any, **more: Any) -> Any:
        """Run one forward pass."""
        positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -input_ids.shape[1] :]
        return self._model(input_ids, attention_mask=attention_mask, position_ids=positions, **more)
