"""One self-contained page about a run: what came out, and for each question how.

`page` fills the template `page.html`, `listing` draws its rows. The page's own script and style are the
two files beside this one; nothing is loaded from anywhere else.
"""

from robustrag_integrations.evaluation.score.run_file import NotARunError, Run, read_run
from robustrag_integrations.evaluation.show.report.page import ReportError, write_report

__all__ = ["NotARunError", "ReportError", "Run", "read_run", "write_report"]
