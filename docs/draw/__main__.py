"""Draw the pictures of the pages: `python docs/draw [NAME ...]` writes docs/pictures/NAME.svg (or .png).

`findings` is a page of its own, docs/findings.md, made of the code.

Most are made of committed records or of a few seconds of training. Those of the demo are made of its run folder,
runs/demo, which `calida demo` leaves behind.
"""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NAMES = ("domain_shift", "label_shift", "calibration", "choosing", "digits", "table", "shifts", "report", "findings")


def main() -> None:
    sys.path.append(str(ROOT))
    for name in sys.argv[1:] or NAMES:
        import_module(name).draw(ROOT / "docs" / "pictures")
        print(name)


if __name__ == "__main__":
    main()
