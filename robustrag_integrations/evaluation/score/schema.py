"""The shape of a row, as pydantic checks it: a file is not trusted.

Everything drawn must be there, of its type and within its range. Other keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, FailFast, Field, TypeAdapter, ValidationError, create_model

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.answer import STATUSES
from robustrag_integrations.evaluation.score.rows import ROW_SCHEMA

LARGEST = 1e15  # a larger number is not a count, a score or a time of ours, and formatting it may fail


class _FirstAlone(FailFast):
    """A list that reports its first bad item alone, however many there are."""

    def __hash__(self) -> int:  # unions need it
        return 0


def _rank(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or abs(isinstance(value, int) and value) > LARGEST:
        raise ValueError("be a text or a whole number")
    return value


def _numbers(value: dict[str, Any]) -> dict[str, Any]:
    """Check numbers here, since pydantic would list every one of a million bad ones."""
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) or abs(v) >= LARGEST for v in value.values()):
        raise ValueError("have numbers alone")
    return value


def _status(value: str) -> str:
    if value not in STATUSES:
        raise ValueError(f"be one of {', '.join(STATUSES)}")
    return value


Whole = Annotated[int, Field(gt=-LARGEST, lt=LARGEST)]
Number = Annotated[float, Field(gt=-LARGEST, lt=LARGEST)]
Share = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]
Rank = Annotated[Any, AfterValidator(_rank)]
Counts = Annotated[dict[str, Any], AfterValidator(_numbers)]


def _object(title: str, /, **fields: Any) -> Any:
    """An object with these fields, each a type, or `_maybe` one."""
    config = ConfigDict(strict=True, protected_namespaces=())
    named: Any = {key: kind if isinstance(kind, tuple) else (kind, ...) for key, kind in fields.items()}
    return create_model(title, __config__=config, **named)


def _many(kind: Any) -> Any:
    return Annotated[list[kind], _FirstAlone()]


def _maybe(kind: Any) -> tuple[Any, None]:
    """A value that may be null or missing."""
    return kind | None, None


_TEXT, _NUMBER, _WHOLE = _maybe(str), _maybe(Number), _maybe(Whole)
_CLAIM = _object("Claim", text=str, support=Whole, radius=Whole | None, origins=_many(str), groups=_many(Whole))
_EVIDENCE = _object(
    "Evidence",
    counts=_maybe(Counts),
    rule=_TEXT,
    **dict.fromkeys(("threshold", "distinct_keywords", "answering", "indecisive_steps"), _NUMBER),
    **dict.fromkeys(("corrupted_groups", "untouched_groups"), _NUMBER),
    **dict.fromkeys(("retained", "shown", "always_retained", "always_kept", "words", "rivals"), _maybe(_many(str))),
    **dict.fromkeys(("tokens", "fallback_steps"), _maybe(_many(Whole))),
    left_out=_maybe(_many(_CLAIM)),
    gaps=_maybe(_many(Number)),
)
_GROUP = _object(
    "Group",
    index=Whole,
    status=Annotated[str, AfterValidator(_status)],
    choice=Whole | None,
    margin=Number | None,
    truncated=bool,
    positions=_many(Whole),
    note=_TEXT,
    confidence=_maybe(Share),
    **dict.fromkeys(("passage_ids", "origins", "keywords", "words"), _many(str)),
    **dict.fromkeys(("response", "error"), str | None),
)
_DETERMINISM = _object(
    "Determinism",
    model=Literal["deterministic", "samples", "unknown"],
    why=str,
    scope=Literal["every_run", "this_run", "final_prompt", "nothing"],
    promise=str,
)
_TOKENS = _object("Tokens", **dict.fromkeys(("prompt", "cached", "completion", "reasoning"), _NUMBER))
_SPENDING = _object(
    "Spending",
    silent=Whole,
    told=_TOKENS,
)
_ANSWER = _object(
    "Answer",
    **dict.fromkeys(("text", "query", "defense", "margin_unit"), str),
    **dict.fromkeys(("radius", "model_calls"), Whole),
    abstained=bool,
    warnings=_many(str),
    settings=_object("Settings", eta=_NUMBER),
    evidence=_EVIDENCE,
    determinism=_maybe(_DETERMINISM),
    spending=_maybe(_SPENDING),
    groups=_many(_GROUP),
    claims=_maybe(_many(_CLAIM)),
    dissent=_maybe(_many(_object("Dissent", text=str, support=Whole, groups=_many(Whole), origins=_many(str)))),
)
_CERTIFICATE = _object(
    "Certificate",
    tau=Percent,
    **dict.fromkeys(("certified", "complete"), bool),
    **dict.fromkeys(("corruption_size", "cases", "model_calls"), Whole),
    **dict.fromkeys(("attack", "query", "metric", "defense"), str),
    **dict.fromkeys(("references", "warnings"), _many(str)),
    responses=_many(_object("Response", text=str | None, score=Number, cause=str)),
    stopped=str | None,
    estimate=_object("Estimate", value=Percent, sample_size=Whole) | None,
    evidence=_EVIDENCE,
)
_ATTACK = _object(
    "Attack", name=str, mode=_TEXT, rank=_maybe(Rank), **dict.fromkeys(("corruption_size", "seed", "repeat"), _WHOLE)
)
_PASSAGE = _object("Passage", id=_TEXT, text=str, source=_TEXT, planted=_maybe(bool))
_SCORES = _object(
    "Scores",
    correct=Share | None,
    hijacked=bool | None,
    both=bool,
    abstained=bool,
    judge=_maybe(Percent),
    unreadable=_maybe(bool),
    failure=_TEXT,
    found=_maybe(Share),
    told=_maybe(bool),
)
_COSTS = ("model_calls", "rounds", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
_TIMING = _object(
    "Timing",
    seconds=Annotated[float, Field(ge=0, lt=LARGEST)],
    cached_calls=_NUMBER,
    first=_maybe(bool),
)

EVIDENCE: TypeAdapter[Any] = TypeAdapter(_EVIDENCE)
_ROW: TypeAdapter[Any] = TypeAdapter(
    _object(
        "Row",
        **dict.fromkeys(("key", "question_id", "question", "dataset", "task", "model", "setup", "defense"), str),
        settings=dict[str, Any],
        top_k=_WHOLE,
        attack=_ATTACK,
        **dict.fromkeys(("incorrect", "target", "metric"), _TEXT),
        answers=_many(str),
        passages=_many(_PASSAGE),
        certificates=_maybe(_many(_CERTIFICATE)),
        error=_object("Failure", type=str, message=str) | None,
    )
)
_ANSWERED: TypeAdapter[Any] = TypeAdapter(
    _object(
        "Answered",
        answer=_ANSWER,
        scores=_SCORES,
        cost=_object("Cost", **dict.fromkeys(_COSTS, _NUMBER)),
        timing=_TIMING,
    )
)
_ATTACKED: TypeAdapter[Any] = TypeAdapter(_object("Attacked", rank=Rank, corruption_size=Whole))
_WORDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


def misfit_in_row(row: Any) -> str | None:
    """Describe what is wrong with a row; None when it has everything that is drawn."""
    if isinstance(row, Mapping) and row.get("schema") != ROW_SCHEMA:
        return f"its schema is {printable(repr(row.get('schema'))[:80], 40)}, not {ROW_SCHEMA!r}"
    if problem := misfit(row, _ROW):
        return problem
    if row["attack"]["name"] != "none" and (problem := misfit(row["attack"], _ATTACKED, "attack")):
        return problem
    if row.get("error") is not None:
        return None
    if row["task"] != "long" and any(c["tau"] > 1 for c in row.get("certificates") or ()):
        return "certificates.tau must be at most 1"
    return misfit(row, _ANSWERED)


def misfit(value: Any, shape: TypeAdapter[Any], place: str = "") -> str | None:
    """Describe what is wrong with a value, named by its place; None when it fits."""
    try:
        shape.validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    else:
        return None
    at = (place + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])).lstrip(".")
    if first["type"] == "missing":
        return f"there is no {at!r}"
    said = first["msg"].removeprefix("Input should ").removeprefix("Value error, ")
    wanted = f"be {_WORDS[first['type']]}" if first["type"] in _WORDS else said
    return f"{at or 'the row'} must {wanted}, got {printable(repr(first['input'])[:80], 40)}"
