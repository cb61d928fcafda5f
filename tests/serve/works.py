"""What processes do in tests of `run_workers`, in place of an endpoint; as a command, it runs them."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from robustrag_integrations.serve import workers


@dataclass(frozen=True)
class Work:
    """Leaves a file named by its process in `folder`; what it does next stands there in the file `do`."""

    folder: Path

    def __call__(self, serving: workers.Serving) -> None:
        (self.folder / f"{os.getpid()}.started").touch()
        do = (self.folder / "do").read_text()
        if do == "cannot start":
            raise workers.WorkerError("usage", "no such model")
        if do == "crash":
            os._exit(3)
        if do == "load":
            time.sleep(600)
        if do == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            workers._LAST_SECONDS = 0.2
        (self.folder / f"{os.getpid()}.serving").touch()
        serving()
        if do == "end":
            return
        while True:
            time.sleep(600)


def main(folder: Path, count: int) -> None:
    """Serve in so many processes, with short pauses, and everything that is said in a line on standard error."""
    workers._PAUSES = (0.0, 0.01, 0.02, 0.04)
    workers.run_workers(
        Work(folder),
        count,
        serving=lambda: print("serving", file=sys.stderr, flush=True),
        replaced=lambda why, pause: print(f"{why}; {pause}", file=sys.stderr, flush=True),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

if __name__ == "__mp_main__" and "SLOW_START" in os.environ:  # in a process that is starting
    (Path(sys.argv[1]) / f"{os.getpid()}.starting").touch()
    time.sleep(0.3)
