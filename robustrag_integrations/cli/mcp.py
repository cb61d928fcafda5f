"""`robustrag mcp`: serves your own documents as a tool of the Model Context Protocol, by its official SDK."""

from __future__ import annotations

import argparse
import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from robustrag_integrations import __version__
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.answers.answer import WITHHELD
from robustrag_integrations.cli import serve
from robustrag_integrations.cli.options import Answering, add_answering, open_methods
from robustrag_integrations.cli.output import EXIT_ANSWERED
from robustrag_integrations.corpus.retrieval import Found

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from robustrag_integrations.answers.answer import RobustAnswer

DESCRIPTION = """\
Serve one MCP tool, ask_documents: it asks the model about each source alone, and answers
with what enough of them agree on. An agent reads the answer and how much it is worth, and
never a document or its name, nor what was outvoted.
"""

EPILOG = """\
The tool gives the answer as text, and as structured content answer, abstained, withheld (what one
source alone says is, unless --set allow_sole_source=true), decided_by, radius, sources, supporting
(how many of these sources give the answer), holds_for and model. Let an agent act on an answer that
"trusted" documents decided or whose radius is >= 1; --min-radius 1 gives it no other.

examples:
  robustrag mcp --trusted handbook/ --docs uploads/

exit codes: 0 the client has gone, 2 wrong usage, 1 failure
"""


BASIC = frozenset({"docs", "trusted", "task", "model", "base_url", "embedding", "top_k", "min_radius", "set"})


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_answering(parser, open_methods())
    serve.add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the client disconnects; see the module's help text."""
    server_of(args).run("stdio")
    return EXIT_ANSWERED


def server_of(args: argparse.Namespace) -> MCPServer:
    """Return the server with its one tool, documents read and model loaded."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import CallToolResult, TextContent, ToolAnnotations

        from robustrag_integrations.serve.endpoint import Admission, RequestError, request_error
    except ImportError as error:
        raise serve.needs("mcp") from error
    documents = Answering(args)
    documents.read()
    documents.load()
    defense, limits = documents.built(), serve.limits_of(args)
    told = "Answers from documents that a few planted ones cannot decide."
    admission = Admission(limits)
    server = MCPServer("robustrag", instructions=told, version=__version__, log_level="WARNING")

    async def answered(question: str) -> RobustAnswer:
        async with admission.turn():
            found = await asyncio.to_thread(Found, documents.library, question)
            return await defense.aanswer(question, **found.of(defense))

    async def ask_documents(question: str) -> Any:
        """Answer a question from the documents. The radius says how many sources could lie without changing it."""
        try:
            if not question.strip():
                raise RequestError(400, "the question is empty; ask something")
            if len(question) > limits.question_chars:
                most = f"at most {limits.question_chars:,} are read"
                raise RequestError(400, f"{len(question):,} characters in the question: {most}")
            answer = await asyncio.wait_for(answered(valid_text(question)), limits.seconds)
        except Exception as error:
            said = request_error(error)
            words = str(said.body["error"]["message"])
            if said.status == HTTPStatus.BAD_REQUEST and not isinstance(error, RequestError):
                words = "the documents could not be read as this server is set up"  # names in them may be orders
            raise ToolError(words) from None
        told = answer.for_prompt()
        report = {
            "answer": told.text,
            "abstained": told.abstained,
            "withheld": told.is_withheld,
            "decided_by": told.decided_by,
            "radius": told.radius,
            "sources": len(answer.sources),
            "supporting": len(told.citations),
            "holds_for": answer.determinism.scope,
            "model": documents.model.description,
        }
        text = WITHHELD if told.is_withheld else told.text
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=report)

    server.add_tool(ask_documents, annotations=ToolAnnotations(read_only_hint=True))
    return server
