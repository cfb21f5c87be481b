"""The page of the reproduction: its figures are those of the records."""

import re
import statistics
import xml.etree.ElementTree as ElementTree

import pytest
from markdown_it import MarkdownIt
from records import records

from reproduction.page import write_page
from reproduction.study import STUDIES
from reproduction.tables import MNIST_USPS, SVHN_MNIST, TABLES
from reproduction.tasks import PROTOCOLS

TASKS = PROTOCOLS["main"]
SEEDS = dict.fromkeys(STUDIES, range(4))
SVG = "{http://www.w3.org/2000/svg}"
# Values by seed, none of them a figure of the paper.
VALUES = {
    "Source-DTN": (0.81, 0.80, 0.83, 0.79),
    "RER-1": (0.905, 0.911, 0.9, 0.893),
    "BRER-inf": (0.95, 0.94, 0.96, 0.955),
}


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """A page of three rows of Table 2a."""
    docs = tmp_path_factory.mktemp("some")
    return write_page(docs, TASKS, SEEDS, records(TASKS[MNIST_USPS], VALUES))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A page on which every row of both digit tables has four seeds around the paper's figure."""
    known = {}
    for name in (MNIST_USPS, SVHN_MNIST):
        table = next(table for table in TABLES.values() if table.task == name)
        around = {
            row.name: [(row.paper or 90) / 100 + change for change in (0.001, -0.002, 0.003, 0)] for row in table.rows
        }
        around |= {f"BDTN-M{count}": [0.8 + count / 1000] * 4 for count in (1, 5, 20, 100)}
        known |= records(TASKS[name], around | {"dual": [0.9, 0.91, 0.92, 0.9]})
    return write_page(tmp_path_factory.mktemp("full"), TASKS, SEEDS, known)


def row(page, name):
    (line,) = [line for line in page.read_text().splitlines() if line.startswith(f"| {name}")][:1]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_cells_are_the_means_and_spreads_of_the_records(some):
    cells = row(some, "RER-1 (4 seeds)")
    accuracies = [100 * value for value in VALUES["RER-1"]]
    mean = statistics.fmean(accuracies)
    assert cells[1:3] == ["91.57 ± 0.13", f"{mean:.2f} ± {statistics.stdev(accuracies):.2f}"]
    assert cells[5] == f"{mean - 91.57:+.2f}"
    gains = [100 * (a - b) for a, b in zip(VALUES["RER-1"], VALUES["Source-DTN"], strict=True)]
    assert cells[6] == f"{statistics.fmean(gains):+.2f}"
    assert cells[8:] == ["2.50 ± 0.00", "5.00 ± 0.00"]


def test_rows_without_runs_say_so(some):
    assert row(some, "RER-inf-GVR")[2] == "not run"
    assert row(some, "GTA-Res152")[1:3] == ["77.10", "another method, not run"]


def test_every_table_has_its_command_and_what_it_was_made_with(full):
    text = full.read_text()
    for name in STUDIES:
        assert f"python -m reproduction {name}" in text
    assert "seeds 0, 1, 2 and 3; Plan9 abacus, one thread, bf16; calida 0.1.0, torch 2.0" in text
    assert len(re.findall("Not run", text)) == 5  # table 3, and PACS with its settings


def test_claims_are_counted(full):
    text = full.read_text()
    held, failed, open_ = map(
        int, re.search(r"(\d+) hold, (\d+) do not hold, and (\d+) are not settled", text).groups()
    )
    total = int(re.search(r"Of (\d+) findings", text)[1])
    assert held + failed + open_ == total
    verdicts = re.findall(r"\| (holds|does not hold|not settled) \|\n", f"{text}\n")
    assert len(verdicts) == total
    assert verdicts.count("holds") == held


def test_settings_are_those_of_the_records(full):
    text = full.read_text().split("### Settings, svhn-mnist")[1]
    line = next(line for line in text.splitlines() if line.startswith("| BRER-inf-GVR"))
    assert [cell.strip() for cell in line.strip("|").split("|")][1:3] == ["10", "top"]
    assert "uniform" in line
    assert "| 1 | 10 | 0.02 | 1 |" in line
    source = next(line for line in text.splitlines() if line.startswith("| Source-DTN"))
    assert source.count("| -") >= 8


def test_the_page_is_markdown_with_whole_tables(full):
    html = MarkdownIt("commonmark").enable("table").render(full.read_text())
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        widths = {len(re.findall("<t[hd]", line)) for line in re.findall("<tr>.*?</tr>", table, re.DOTALL)}
        assert len(widths) == 1


def test_figures_are_there_and_have_a_mark_for_every_row(full):
    linked = re.findall(r"\]\((figures/[\w-]+\.svg)\)", full.read_text())
    assert len(linked) == 6
    for link in linked:
        root = ElementTree.parse(full.parent / link).getroot()
        assert root.find(f"{SVG}title").text
    root = ElementTree.parse(full.parent / "figures/table2a.svg").getroot()
    marks = [one.get("class") for one in root.iter() if (one.get("class") or "").startswith("mark ")]
    rows = len(TABLES["table2a"].rows)
    assert marks.count("mark ours") == rows + 1  # and one in the legend
    assert marks.count("mark paper") == sum(row.paper is not None for row in TABLES["table2a"].rows) + 1


def test_the_same_records_give_the_same_bytes(some, tmp_path):
    again = write_page(tmp_path, TASKS, SEEDS, records(TASKS[MNIST_USPS], VALUES))
    assert again.read_bytes() == some.read_bytes()


def test_nothing_run_is_a_page_too(tmp_path):
    text = write_page(tmp_path, TASKS, SEEDS, {}).read_text()
    assert "no run so far" in text
    assert "Not run: no claim has the runs that it takes." in text
