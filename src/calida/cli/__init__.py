"""The command line."""

from __future__ import annotations

import sys

from calida.cli.stopping import end_at_once, stop_quietly


def main() -> None:
    """The command `calida`: a process that Ctrl-C ends without a traceback from here on."""
    stop_quietly()  # before the imports below, which take a moment
    try:
        from calida.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        end_at_once()


__all__ = ["main"]
