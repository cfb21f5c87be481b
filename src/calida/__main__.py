"""The command `calida`, and `python -m calida`: quiet about Ctrl-C from the first line on."""

import sys

TYPE_CHECKING = False  # as typing has it, which is not imported before Ctrl-C is seen to
if TYPE_CHECKING:
    from types import TracebackType


def _hook(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _hook  # for the moment that the next line takes

from calida.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
