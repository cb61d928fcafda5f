"""`robustrag mcp`: serves your own documents as a tool of the Model Context Protocol, by its official SDK."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.cli import serve
from robustrag_integrations.cli.options import Answering, add_answering, open_methods
from robustrag_integrations.cli.output import EXIT_ANSWERED

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from robustrag_integrations.answers.answer import RobustAnswer

DESCRIPTION = """\
Serve one MCP tool, ask_documents: it asks the model about each source alone, and answers
with what enough of them agree on. An agent reads the answer and how much it is worth, and
never a document, nor what was outvoted.
"""

EPILOG = """\
The tool gives the answer as text, and as structured content answer, abstained, withheld (what one
source alone says is, unless --set allow_sole_source=true), radius, groups, origins, holds_for and
model. Let an agent act on an answer with radius >= 1, or start the server with --min-radius 1.

examples:
  robustrag mcp --docs notes/

exit codes: 0 the client has gone, 2 wrong usage, 1 failure
"""


BASIC = frozenset({"docs", "task", "model", "base_url", "embedding", "top_k", "min_radius", "set"})


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
            return await defense.aanswer(question, await asyncio.to_thread(documents.library.search, question))

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
            raise ToolError(request_error(error).body["error"]["message"]) from None
        told = answer.for_prompt()
        report = {
            "answer": told.text,
            "abstained": told.abstained,
            "withheld": "one source alone says it" if told is not answer else None,
            "radius": told.radius,
            "groups": len(answer.groups),
            "origins": sorted({printable(origin, 80) for cited in told.citations for origin in cited.origins}),
            "holds_for": answer.determinism.scope,
            "model": documents.model.description,
        }
        return CallToolResult(content=[TextContent(type="text", text=told.text)], structured_content=report)

    server.add_tool(ask_documents, annotations=ToolAnnotations(read_only_hint=True))
    return server
