"""`python -m robustrag_integrations` is the `robustrag` command."""

import sys

from robustrag_integrations.cli import main

if __name__ == "__main__":
    sys.exit(main())
