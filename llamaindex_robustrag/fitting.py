"""Truncates a group's passages to the context window, independently of other groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.utils import get_tokenizer

from llamaindex_robustrag.message_text import MessageText
from robustrag_integrations.prompts import Prompt

_LONGEST_TOKEN = 8  # characters read per token of room: twice the need of English


@dataclass(frozen=True)
class Fitter:
    """Fits prompts into the context window of a `PromptHelper`.

    The room depends on the question and on what surrounds the passages, never on another group; and nothing is ever
    joined or split across groups, which is what `PromptHelper.repack` does.

    Attributes:
        helper: knows window, reserved output and tokenizer.
        llm: whose system prompt takes room as well.
        around: other text that goes out with every prompt.
    """

    helper: PromptHelper
    llm: LLM
    around: str = ""

    def fit(self, prompt: Prompt) -> tuple[Prompt, bool]:
        """Truncate a prompt's passages at the end if need be; return the prompt, and whether it was truncated.

        Raises:
            ValueError: question and instructions leave no room for passages.
        """
        if prompt.context is None:
            return prompt, False
        start, end = prompt.context
        before, context, after = prompt.text[:start], prompt.text[start:end], prompt.text[end:]
        splitter = self._splitter(before + after + self.around)
        if len(context.encode(errors="replace")) <= splitter.chunk_size:  # no token is shorter than a byte
            return prompt, False
        kept = _longest_fitting(context[: splitter.chunk_size * _LONGEST_TOKEN], splitter)
        if len(kept) == len(context):
            return prompt, False
        text = prompt.text
        cut = text.replaced(start, end, kept) if isinstance(text, MessageText) else before + kept + after
        return replace(prompt, text=cut, context=(start, start + len(kept))), True

    def _splitter(self, frame: str) -> TokenTextSplitter:
        try:
            return self.helper.get_text_splitter_given_prompt(PromptTemplate("{frame}", frame=frame), llm=self.llm)
        except ValueError as error:
            raise ValueError(
                f"question and instructions leave no room for passages in the model's window of "
                f"{self.helper.context_window} tokens, of which {self.helper.num_output} are kept for the answer: "
                "shorten the question or the conversation, or pass a larger context window"
            ) from error


def _longest_fitting(text: str, splitter: TokenTextSplitter) -> str:
    """Return the longest prefix of a text that fits a chunk, by bisection.

    The splitter itself would count a text without spaces letter by letter, which makes a hostile one expensive.
    """
    tokenize = getattr(splitter, "_tokenizer", None) or get_tokenizer()
    fits, too_long = 0, len(text) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if len(tokenize(text[:middle])) <= splitter.chunk_size:
            fits = middle
        else:
            too_long = middle
    return text[:fits]
