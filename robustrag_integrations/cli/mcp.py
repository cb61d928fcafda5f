"""`robustrag mcp`: serves your own documents as a tool of the Model Context Protocol, by its official SDK."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robustrag_integrations import __version__
from robustrag_integrations._util.display import printable
from robustrag_integrations.cli.arguments import add_setting, whole_number
from robustrag_integrations.cli.defending import (
    Documents,
    add_answering,
    built_defense,
    check_defense,
    fill_in,
    open_methods,
)
from robustrag_integrations.cli.output import EXIT_ANSWERED, Progress, complain
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.grouping.votes import RULES

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

DESCRIPTION = """\
Serve one MCP tool, ask_documents: it asks the model about each source alone, and answers
with what enough of them agree on. An agent reads the answer and how much it is worth, and
never a document, nor what was outvoted.
"""

EPILOG = """\
transports:
  stdio (default) talks to the program that started it; streamable-http listens on
  http://127.0.0.1:PORT/mcp, on this machine alone.

what the tool gives:
  The answer as text, and as structured content answer, abstained, radius, groups, origins
  (of the sources that support it), holds_for (every_run, this_run, ...) and the model. Let an agent act on an answer
  with radius >= 1, or start the server with --min-radius 1. What one source alone says is an abstention
  (withheld), unless the server has --allow-sole-source.

examples:
  robustrag mcp --docs notes/
  robustrag mcp --docs news/ --min-radius 1 --model openai:my-model --base-url http://localhost:8000/v1
  robustrag mcp --docs notes/ --transport streamable-http --port 8600

exit codes: 0 the client has gone, 2 wrong usage, 1 failure
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_answering(parser, open_methods())
    parser.add_argument("--transport", choices=("stdio", "streamable-http"), default="stdio", help="default stdio")
    parser.add_argument("--port", default=8600, type=whole_number(1, 65535), metavar="N", help="default 8600")
    add_setting(parser, RULES["allow_sole_source"])


def run(args: argparse.Namespace) -> int:
    """Serve until the client disconnects; see the module's help text."""
    server = server_of(args)
    if args.transport == "stdio":
        server.run("stdio")
    else:
        complain(f"listening on http://127.0.0.1:{args.port}/mcp")
        server.run("streamable-http", host="127.0.0.1", port=args.port)
    return EXIT_ANSWERED


def server_of(args: argparse.Namespace) -> MCPServer:
    """Return the server with its one tool, documents read and model loaded.

    Raises:
        ImportError: the extra `mcp` is missing.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import CallToolResult, TextContent, ToolAnnotations
    except ImportError as error:
        raise ImportError("robustrag mcp needs the MCP SDK: pip install 'robustrag-integrations[cli,mcp]'") from error
    fill_in(args)
    check_defense(args)
    documents = Documents(args, Progress())
    defense = built_defense(args, args.defense, documents.model, args.task or "short_answer")
    told = "Answers from documents that a few planted ones cannot decide."
    server = MCPServer("robustrag", instructions=told, version=__version__, log_level="WARNING")

    async def ask_documents(question: str) -> Any:
        """Answer a question from the documents. The radius says how many sources could lie without changing it."""
        try:
            answer = await defense.aanswer(question, documents.library.search(question))
        except (RobustRAGError, ValueError) as error:  # its message may quote the documents
            raise ToolError(f"the documents could not be read ({type(error).__name__})") from None
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
