"""The command line."""

from calida.cli.app import main

__all__ = ["main"]
