"""Models of the core as LLMs of LlamaIndex."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW, DEFAULT_NUM_OUTPUTS
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.text.prompts import Prompt


def decoding_model(llm: LLM) -> DecodingModel:
    """Return the model behind an LLM that gives next-token probabilities; TypeError for any other."""
    if isinstance(llm, TextModelLLM) and isinstance(llm.model, DecodingModel):
        return llm.model
    raise TypeError(
        f"decoding aggregation needs next-token probabilities, which {type(llm).__name__} does not give. Use "
        "method='keyword', which works with any model, or llm=LocalModel(model, tokenizer)"
    )


class TextModelLLM(CustomLLM):
    """A core model, such as `LocalModel.bundled()`, as a LlamaIndex LLM: greedy, one BOS, chat template applied.

    Args:
        model: any `TextModel` of the core.
        **fields: `context_window`, the model's window in tokens, and `num_output`, the tokens kept for the answer, for
            a model that does not know them.
    """

    context_window: int | None = Field(default=None, gt=0)
    num_output: int | None = Field(default=None, gt=0)
    _model_of_core: TextModel = PrivateAttr()

    def __init__(self, model: TextModel, **fields: Any) -> None:
        super().__init__(**fields)
        self._model_of_core = model

    @property
    def model(self) -> TextModel:
        """The core's model."""
        return self._model_of_core

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return "robustrag_text_model_llm"

    @property
    def metadata(self) -> LLMMetadata:
        """The context window, the output length and the model's name."""
        return LLMMetadata(
            context_window=self.context_window or self.model.window or DEFAULT_CONTEXT_WINDOW,
            num_output=self.num_output or self.model.longest_reply or DEFAULT_NUM_OUTPUTS,
            model_name=self.model.description,
            is_chat_model=False,
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Return the model's greedy answer."""
        [response] = self.model.generate([Prompt(prompt)], "final")
        if response.text is None:
            raise ModelError(response.error or "the model gave no text")
        return CompletionResponse(text=response.text, raw=response)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Yield the model's greedy answer in pieces."""

        def parts() -> CompletionResponseGen:
            text = ""
            for piece in self.model.stream(Prompt(prompt)):
                delta = piece if isinstance(piece, str) else ""  # else how it ended
                text += delta
                yield CompletionResponse(text=text, delta=delta, raw=None if piece is delta else piece)

        return parts()
