"""The bundled reader: a two-million-parameter language model for demonstrations and tests.

It reads simple English facts and knows nothing. How it was made and how well it does is in `model/README.md`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["reader_path"]


def reader_path() -> Path:
    """The folder of the bundled model, in the format of `transformers`.

    Raises:
        FileNotFoundError: the package was installed without its model.
    """
    folder = Path(__file__).resolve().parent / "model"
    if not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"the bundled reader is missing from {folder}; reinstall robustrag-integrations, or train one with "
            "`python -m training.reader.train`"
        )
    return folder
