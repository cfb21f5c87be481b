"""The paper's tables as values: rows, the recipes they stand for, and the figures it prints, in percent."""

from __future__ import annotations

from dataclasses import dataclass

MNIST_USPS, SVHN_MNIST, VISDA17 = "mnist-usps", "svhn-mnist", "visda17"


@dataclass(frozen=True)
class Row:
    """A line of a table; `spread` is the standard deviation over the paper's seeds."""

    name: str
    recipe: str
    paper: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class Table:
    """One table of adaptation results on one task."""

    name: str
    title: str
    task: str
    rows: tuple[Row, ...]
    seeds: int = 4


TABLES = {
    table.name: table
    for table in (
        Table(
            "table2a",
            "Table 2a: MNIST -> USPS",
            MNIST_USPS,
            (
                Row("Source-DTN", "source", 83.94),
                Row("Source-BDTN", "bsource", 84.89),
                Row("RER-1", "rer-1", 91.57, 0.13),
                Row("RER-1-GVR", "rer-1-gvr", 91.97, 0.26),
                Row("RER-inf", "rer-inf", 93.57, 0.30),
                Row("RER-inf-GVR", "rer-inf-gvr", 93.88, 0.14),
                Row("BRER-1", "brer-1", 92.78, 0.42),
                Row("BRER-1-GVR", "brer-1-gvr", 93.07, 0.72),
                Row("BRER-inf", "brer-inf", 94.42, 0.12),
                Row("BRER-inf-GVR", "brer-inf-gvr", 94.53, 0.23),
            ),
        ),
        Table(
            "table2b",
            "Table 2b: SVHN -> MNIST",
            SVHN_MNIST,
            (
                Row("Source-DTN", "source", 64.48),
                Row("Source-BDTN", "bsource", 70.98),
                Row("RER-1", "rer-1", 88.46, 0.90),
                Row("RER-1-GVR", "rer-1-gvr", 85.48, 4.71),
                Row("RER-inf", "rer-inf", 88.16, 1.19),
                Row("RER-inf-GVR", "rer-inf-gvr", 90.31, 2.31),
                Row("BRER-1", "brer-1", 92.49, 4.73),
                Row("BRER-1-GVR", "brer-1-gvr", 92.37, 4.76),
                Row("BRER-inf", "brer-inf", 96.06, 0.68),
                Row("BRER-inf-GVR", "brer-inf-gvr", 96.38, 0.05),
            ),
        ),
        Table(
            "table3",
            "Table 3: VisDA17, mean class accuracy",
            VISDA17,
            (
                Row("Source-Res101", "source", 48.02),
                Row("Source-BRes101", "bsource", 46.03),
                Row("MMD", "mmd", 61.1),
                Row("RER-inf", "rer-inf", 76.81, 2.73),
                Row("RER-inf-GVR", "rer-inf-gvr"),  # what did not fit into the authors' memory
                Row("BRER-inf", "brer-inf", 80.59, 1.39),
                Row("BRER-inf-GVR", "brer-inf-gvr"),
            ),
            seeds=5,
        ),
    )
}


@dataclass(frozen=True)
class BaseRow:
    """A line of Table 1: the base network, and accuracy on source and target; M is None for the point network."""

    name: str
    num_samples: int | None
    source: float
    target: float


NUM_SAMPLES = (1, 5, 10, 20, 100)
TABLE1 = {
    MNIST_USPS: (
        BaseRow("DTN", None, 100.00, 83.94),
        BaseRow("BDTN-M1", 1, 100.00, 83.78),
        BaseRow("BDTN-M5", 5, 100.00, 86.83),
        BaseRow("BDTN-M10", 10, 100.00, 86.28),
        BaseRow("BDTN-M20", 20, 100.00, 86.78),
        BaseRow("BDTN-M100", 100, 100.00, 87.06),
    ),
    SVHN_MNIST: (
        BaseRow("DTN", None, 97.42, 72.91),
        BaseRow("BDTN-M1", 1, 95.91, 65.51),
        BaseRow("BDTN-M5", 5, 99.16, 71.12),
        BaseRow("BDTN-M10", 10, 99.42, 71.38),
        BaseRow("BDTN-M20", 20, 99.50, 73.64),
        BaseRow("BDTN-M100", 100, 99.33, 74.91),
    ),
}
