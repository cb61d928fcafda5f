"""Questions with passages and reference answers, read from a file or from the fictional world."""

from __future__ import annotations

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.evaluation.data.datasets import DatasetError, EvalQuestion, load_dataset


def read_answered(data: str, top_k: int | None, limit: int | None) -> tuple[EvalQuestion, ...]:
    """The questions of a file, or of the fictional world for `demo`.

    Args:
        data: `demo`, or a file in one of the layouts that `evaluation.data.load_dataset` reads.
        top_k: how many passages each question gets; None for all that a file gives, 10 for `demo`.
        limit: how many questions are read; None for all.

    Raises:
        UsageError: the file cannot be read, or a row is no question; the message says which.
    """
    try:
        return load_dataset(data, top_k=top_k, limit=limit, strict=True).questions
    except DatasetError as error:
        raise UsageError(str(error)) from error
