"""How users ask: the project's own prompts, the frameworks' stock prompts, and random wordings of the same request."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from robustrag_integrations.text.prompts import ABSTENTION, PromptTemplate, prompts_for


@dataclass(frozen=True)
class Wording:
    """A prompt cut where the varying parts go: before the context, between context and question, after the question.

    A row is cut after the space-less end of `between`, so that what all questions have in common is read only once; the
    tokenizer gives the same tokens for the two parts as for the whole.
    """

    before: str
    between: str
    after: str

    def prefix(self, context: str) -> str:
        """What all questions about one context share."""
        return (self.before + context + self.between).rstrip(" ")

    def tail(self, question: str, options: str = "") -> str:
        """The question and what follows, up to where the answer starts."""
        return f" {question}" + (f"\n{options}" if options else "") + self.after

    def keyword_tail(self, keywords: str, question: str) -> str:
        """What follows `before` when every question has a context (keywords) of its own."""
        return f" {keywords}{self.between}{question}{self.after}"


def of_template(template: PromptTemplate) -> Wording:
    """The wording of one of the project's own prompts."""
    body = template.body.replace("\n{choices}", "")
    before, found, rest = body.replace("{keywords}", "{context}").partition("{context}")
    if not found:
        before, rest = "", body
    between, _, after = rest.partition("{query}")
    return Wording(template.instruction + before, between, after)


_SHORT = prompts_for("short_answer")
_CHOICE = prompts_for("multiple_choice", options="letters")
_LONG = prompts_for("long_form")

LANGCHAIN = Wording(
    "Use the following pieces of context to answer the question at the end. If you don't know the answer, just say "
    "that you don't know, don't try to make up an answer.\n\n",
    "\n\nQuestion: ",
    "\nHelpful Answer:",
)
LLAMAINDEX = Wording(
    "Context information is below.\n---------------------\n",
    "\n---------------------\nGiven the context information and not prior knowledge, answer the query.\nQuery: ",
    "\nAnswer: ",
)
PROJECT = {
    "answer": of_template(_SHORT.isolated),
    "closed": of_template(_SHORT.no_retrieval),
    "keywords": of_template(_SHORT.keyword or _SHORT.isolated),
    "choice": of_template(_CHOICE.isolated),
    "closed_choice": of_template(_CHOICE.no_retrieval),
    "long": of_template(_LONG.isolated),
    "closed_long": of_template(_LONG.no_retrieval),
    "long_keywords": of_template(_LONG.keyword or _LONG.isolated),
    "phrases": of_template(_LONG.phrases or _LONG.isolated),
}

_VERBS = ("Answer", "Reply to", "Respond to", "Please answer", "Find the answer to", "Give an answer to")
_OBJECTS = ("the question", "the query", "the user's question", "the question below", "this question")
_SOURCES = (
    "using only the {}", "from the {} alone", "based on the {}", "with the help of the {}", "using the {} below",
    "given the {}", "according to the {}", "relying only on the {}",
)  # fmt: skip
_NOUNS = ("text", "context", "passage", "passages", "documents", "information", "sources", "search results")
_STYLES = (
    "Be brief.", "Use a few words.", "Reply with the answer only.", "Keep the answer short.", "Do not explain.",
    "Answer with keywords only.", "Write nothing else.", "One short phrase is enough.",
)  # fmt: skip
_ABSTAIN = (
    f'If the answer is not there, say "{ABSTENTION}".', f'Say "{ABSTENTION}" if you cannot find it.',
    f"If there is no relevant information, just say {ABSTENTION}.", "Do not make up an answer.",
    f'When the {{}} does not tell, reply "{ABSTENTION}".',
)  # fmt: skip
_ROLES = ("You are a helpful assistant.", "You are a careful reader.", "You answer questions about documents.")
_CONTEXT_LABELS = ("{}:\n", "{}:\n", "{}: ", "{} information:\n", "### {}\n", "Here is the {}:\n", "{}\n---\n", "")
_QUESTION_LABELS = ("Question: ", "Question: ", "Query: ", "Q: ", "User question: ", "### Question\n", "")
_ANSWER_LABELS = (
    "\nAnswer:",
    "\nAnswer:",
    "\nA:",
    "\nResponse:",
    "\nShort answer:",
    "\nFinal answer:",
    "\nYour answer:",
)
_BREAKS = ("\n\n", "\n\n", "\n", "\n---\n")


def instruction(r: Random, noun: str) -> str:
    """A random instruction of one to four sentences."""
    core = f"{r.choice(_VERBS)} {r.choice(_OBJECTS)} {r.choice(_SOURCES).format(noun)}."
    if r.random() < 0.3:
        source = r.choice(_SOURCES).format(noun)
        verb = r.choice(_VERBS)
        core = f"{source[:1].upper()}{source[1:]}, {verb[:1].lower()}{verb[1:]} {r.choice(_OBJECTS)}."
    parts = [core]
    if r.random() < 0.6:
        parts.append(r.choice(_STYLES))
    if r.random() < 0.6:
        parts.append(r.choice(_ABSTAIN).format(noun))
    if r.random() < 0.2:
        r.shuffle(parts)
    if r.random() < 0.2:
        parts.insert(0, r.choice(_ROLES))
    return " ".join(parts)


def short(r: Random) -> Wording:
    """A bare wording: labels and no instruction."""
    label = r.choice(_CONTEXT_LABELS).format(r.choice(_NOUNS).capitalize())
    return Wording(label, r.choice(_BREAKS) + r.choice(_QUESTION_LABELS), r.choice(_ANSWER_LABELS))


def composed(r: Random) -> Wording:
    """An instruction in random words, before or after the context."""
    noun = r.choice(_NOUNS)
    label = r.choice(_CONTEXT_LABELS).format(noun.capitalize())
    said, gap = instruction(r, noun), r.choice(_BREAKS)
    question, answer = r.choice(_QUESTION_LABELS), r.choice(_ANSWER_LABELS)
    if r.random() < 0.65:
        return Wording(f"{said}{gap}{label}", gap + question, answer)
    return Wording(label, f"{gap}{said}\n{question}", answer)


def reading(r: Random, task: str = "answer") -> Wording:
    """The wording of a training row: mostly short, often the project's own, sometimes a framework's."""
    pick = r.random()
    if pick < 0.4:
        return short(r)
    if pick < 0.65:
        return composed(r)
    if pick < 0.9:
        return PROJECT[task]
    return LANGCHAIN if pick < 0.95 else LLAMAINDEX


_TAGS = ("text", "passage", "document", "source", "doc", "search_results")
_ANSWER_NAMES = ("Answer", "Reply", "Response", "Result", "Output", "Solution")
_REMARKS = (" (short)", " (brief)", " (one phrase)", " (from the text)", " (no explanation)", " in brief", " in short")


def varied(r: Random) -> Wording:
    """Any wording, often with tags around the context or an unusual label before the answer."""
    said = short(r) if r.random() < 0.5 else composed(r)
    before, between, after = said.before, said.between, said.after
    if r.random() < 0.3:
        tag = r.choice(_TAGS)
        before, between = f"<{tag}>\n", f"\n</{tag}>{r.choice(_BREAKS)}{r.choice(_QUESTION_LABELS)}"
    if r.random() < 0.5:
        after = f"\n{r.choice(_ANSWER_NAMES)}{r.choice(_REMARKS)}:"
    return Wording(before, between, after)


# Never used in training: what an unseen paraphrase of the instructions costs is measured on these.
UNSEEN = (
    Wording("Read the article and then tell me what I want to know, as tersely as you can.\n\nArticle:\n",
            "\n\nWhat I want to know: ", "\nAnswer:"),
    Wording("Background material follows.\n\n",
            "\n\nBearing only this material in mind, solve the task. Should the material be silent about it, admit "
            "that you don't know.\nQuestion: ", "\nAnswer:"),
    Wording("You will be shown an extract from an encyclopedia. Extract the requested fact.\n\nExtract: ",
            "\n\nQuestion: ", "\nFact:"),
    Wording("<context>\n", "\n</context>\n\nQ: ", "\nAnswer (few words):"),
    Wording("Consult these notes before you speak; guessing is forbidden.\nNotes:\n",
            "\nQuestion: ", "\nReply:"),
)  # fmt: skip
