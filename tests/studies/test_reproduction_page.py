"""The page of the reproduction: its figures are those of the records, and no name in a record can break it."""

import re
import shlex
import statistics
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

from calida.studies import MNIST_USPS, PROTOCOLS, SVHN_MNIST, TABLES, write_page
from calida.studies.wording import safe

TASKS = PROTOCOLS["paper"]
SEEDS, ONE = range(4), range(1)
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "a|b <script>alert(1)</script> `x` [y](http://z) ![i](j) **k** _l_ </title>]]>\n\n# m\x00\u202e\ud800 \\| &amp;"
)
# Values by seed, none of them a figure of the paper.
LABEL_FREE = {
    "source": (0.81, 0.80, 0.83, 0.79),
    "rer-1": (0.905, 0.911, 0.9, 0.893),
    "brer-inf": (0.95, 0.94, 0.96, 0.955),
}


def one_round(phase, number, accuracy):
    oracle = {"accuracy": accuracy, "mean_class_accuracy": accuracy - 0.05, "ece": 0.04}
    variance = {"source": 2e-3, "target": 1e-3}
    certainty = {"source": {"entropy": 0.1}, "target": {"entropy": 0.2}}
    return {"phase": phase, "round": number, "oracle": oracle, "gradient_variance": variance, **certainty}


def record(job, accuracy, seconds=1800.0, **changes):
    """A finished run whose best round is a point above the label-free one, and whose last is a point below."""
    start = job.start
    rounds = [one_round("pretrain", 0, accuracy - 0.08 if start else accuracy)]
    if start:
        rounds += [one_round("adapt", index, accuracy + gain) for index, gain in enumerate((0.0, 0.01, -0.01))]
    scores = {"accuracy": accuracy, "mean_class_accuracy": accuracy - 0.05}
    table1 = {name: {"accuracy": accuracy, "ece": 0.1} for name in ("source_trained_on", "source_held_out", "oracle")}
    return {
        "key": job.key,
        **job.identity(),
        "start": start.key if start else None,
        "returned": {"oracle": {**scores, "ece": 0.02}, "oracle_uncalibrated": {**scores, "ece": 0.07}},
        "by_samples": {} if start else {str(count): table1 for count in (1, 5, 10, 20, 100)},
        "rounds": rounds,
        "machine": "Plan9 abacus, one thread",
        "versions": {"calida": "0.1.0", "torch": "2.0"},
        "seconds": seconds,
        **changes,
    }


def by_key(records):
    return {one["key"]: one for one in records}


def some_records():
    task = TASKS[MNIST_USPS]
    return by_key(record(task.job(name, seed), LABEL_FREE[name][seed]) for name in LABEL_FREE for seed in SEEDS)


def full_records():
    tables = [TABLES["table2a"], TABLES["table2b"]]
    return by_key(
        record(TASKS[table.task].job(row.recipe, seed), row.paper / 100 + (0.001, -0.002, 0.003, 0.0)[seed])
        for table in tables
        for row in table.rows
        for seed in SEEDS
    )


def other_records(task="photo-art_painting", recipe="rer-inf", count=2, **changes):
    jobs = [TASKS["visda17"].job("rer-inf", seed) for seed in range(count)]
    return by_key(
        record(job, 0.7 + 0.02 * seed, **{"key": f"{task}{seed}{changes}", "task": task, "recipe": recipe, **changes})
        for seed, job in enumerate(jobs)
    )


class Page(NamedTuple):
    text: str
    figures: Path


def written(docs, records, seeds=SEEDS, tasks=TASKS):
    return Page(write_page(docs, tasks, seeds, records).read_text(encoding="utf-8"), docs / "figures")


@pytest.fixture
def write(tmp_path):
    return partial(written, tmp_path)


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Three rows of Table 2a."""
    return written(tmp_path_factory.mktemp("some"), some_records())


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Both digit tables, and images that the paper has not."""
    return written(tmp_path_factory.mktemp("full"), {**full_records(), **other_records()})


def section(page, title):
    return page.split(f"## {title}", 1)[1].split("\n## ", 1)[0]


def rows(text):
    """Cells of every line of a table, by its first one."""
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return {line[0]: line[1:] for line in found}


def spread(values, shift=0.0):
    return f"{100 * (statistics.mean(values) + shift):.2f} ± {100 * statistics.stdev(values):.2f}"


def marks(path, kind):
    """Marks of one kind; those of the legend are in groups of their own."""
    root = ElementTree.parse(path).getroot()
    legend = {id(mark) for group in root.iter(f"{SVG}g") if group.get("class") == "legend" for mark in group}
    return [one for one in root.iter() if one.get("class") == f"mark {kind}" and id(one) not in legend]


def test_cells_are_means_and_deviations_over_seeds(some):
    table = rows(section(some.text, "Table 2a"))
    values = LABEL_FREE["rer-1"]
    paper, free, last, best, gain, ece, raw = table["RER-1"]
    assert (paper, free) == ("91.57 ± 0.13", spread(values))
    assert (last, best) == (spread(values, -0.01), spread(values, 0.01))
    assert gain == f"{100 * (statistics.mean(values) - statistics.mean(LABEL_FREE['source'])):+.2f}"
    assert (ece, raw) == ("2.00 ± 0.00", "7.00 ± 0.00")
    assert table["BRER-inf"][1] == spread(LABEL_FREE["brer-inf"])
    assert table["BRER-inf"][4] == "-"  # its source-only runs are not among the records
    assert table["Source-DTN"][4] == "-"


def test_table_1_has_both_tasks(some):
    text = section(some.text, "Table 1")
    ours, theirs = (rows(part) for part in text.split("### ")[1:])
    assert ours["DTN"] == ["100.00", "83.94", *[spread(LABEL_FREE["source"])] * 3, "10.00 ± 0.00"]
    assert ours["BDTN-M5"][2:] == ["not run"] * 4
    assert theirs["DTN"] == ["97.42", "72.91", *["not run"] * 4]


def test_rows_are_judged_against_the_papers_figure_less_half_a_point(some):
    text = section(some.text, "Table 2a")
    (free,) = [line for line in text.splitlines() if line.startswith("By the label-free")]
    reached, below = free.split("Below it: ")
    assert "BRER-inf" in reached
    assert "RER-1 (90.22 against 91.57)" in below
    assert "Source-DTN (80.75 against 83.94)" in below
    (own,) = [line for line in text.splitlines() if line.startswith("By the paper's own")]
    assert "RER-1" in own.split("Below it: ")[0]  # its best round is at 91.22
    assert "Not run: Source-BDTN, RER-1-GVR, RER-inf, " in text


def test_exactly_half_a_point_under_is_reached(write):
    job = TASKS[MNIST_USPS].job("rer-1", 0)
    text = section(write(by_key([record(job, 0.9107)]), ONE).text, "Table 2a")
    assert "point: RER-1. Below it: no row." in text


def test_rows_without_runs_say_so(some):
    table = rows(section(some.text, "Table 2a"))
    assert table["RER-inf"] == ["93.57 ± 0.30", *["not run"] * 6]
    assert set(rows(section(some.text, "Table 3"))["MMD"][1:]) == {"not run here"}


def test_a_page_of_nothing(write):
    page, figures = write({}, ONE)
    assert "no run so far" in page
    assert "Not run: no claim" in page
    assert "](figures/" not in page
    assert not list(figures.iterdir())


def test_a_row_with_fewer_seeds_says_so(write):
    records = some_records()
    for seed in (2, 3):
        del records[TASKS[MNIST_USPS].job("rer-1", seed).key]
    table = rows(section(write(records).text, "Table 2a"))
    first = LABEL_FREE["rer-1"][:2]
    assert table["RER-1 (2 of 4 seeds)"][1] == spread(first)
    gain = statistics.mean(first) - statistics.mean(LABEL_FREE["source"][:2])  # over the same seeds
    assert table["RER-1 (2 of 4 seeds)"][4] == f"{100 * gain:+.2f}"


def test_what_it_took_is_said_beside_the_command(some):
    text = section(some.text, "Table 2a")
    assert "calida reproduce table2a --results results/reproduction" in text
    assert "12 runs, seeds 0, 1, 2 and 3; Plan9 abacus, one thread; calida 0.1.0, torch 2.0; 6.0 hours" in text
    assert "3.0 hours on 2 cores" in text


def test_what_differs_from_the_paper_is_taken_from_tasks_and_records(write):
    task = replace(TASKS[SVHN_MNIST], source="svhn:train:12345", target="mnist:train:6789")
    one = record(task.job("rer-inf-gvr", 0), 0.9)
    one["settings"]["gvr_share"] = 0.125
    text = section(write(by_key([one]), ONE, {**TASKS, SVHN_MNIST: task}).text, "What is not the paper's setting")
    assert "12,345 train images of svhn" in text
    assert "6,789 train images of mnist" in text
    assert "trained with M = 10" in text
    assert "(svhn-mnist) regularise gradient variance in a share of 0.125 " in text


def test_settings_come_from_records(write):
    one = record(TASKS[MNIST_USPS].job("rer-inf-gvr", 0), 0.9)
    one["settings"] |= {"learning_rate": 0.004, "final_rate": 0.5, "portion": [0.2, 0.1, 0.7], "gvr_groups": 7}
    cells = rows(section(write(by_key([one]), ONE).text, "Settings"))["rer-inf-gvr"]
    assert "0.004 to 0.002" in cells
    assert "0.2, 0.1 more a round, up to 0.7" in cells
    assert "7 groups" in cells[-1]


def test_settings_that_a_task_has_of_its_own_are_named(write):
    task = replace(TASKS[SVHN_MNIST], settings={"pretrain_epochs": 6, "source_portion": 0.15})
    one = record(task.job("rer-1", 0), 0.9)
    text = section(write(by_key([one]), ONE, {**TASKS, SVHN_MNIST: task}).text, "Settings")
    assert "svhn-mnist has values of its own for pretrain_epochs and source_portion." in text
    assert rows(text)["rer-1"][3] == "6"
    assert "0.15" in rows(text)["rer-1"]


def test_claims_are_counted(full):
    text = section(full.text, "What the paper claims")
    verdicts = [cells[-1] for line in text.splitlines() for cells in rows(line).values() if line.startswith("|")][2:]
    assert len(verdicts) > 10
    counts = [verdicts.count(verdict) for verdict in ("holds", "does not hold", "not settled")]
    said = "Of {} findings, hold: {}; do not hold: {}; are not settled: {}.".format(len(verdicts), *counts)
    assert said in text


def test_other_images_have_a_table_of_their_own(full):
    text = full.text.split("### Beside Table 3: photo-art_painting", 1)[1].split("\n## ", 1)[0]
    assert rows(text)["rer-inf"][0] == spread([0.65, 0.67])  # mean class accuracy
    assert (full.figures / "rounds-photo-art_painting.svg").exists()
    assert "photo-art_painting" in section(full.text, "Settings")


def test_other_images_come_with_the_command_that_made_them(write):
    records = other_records(size=48)
    for one in records.values():
        one["settings"] |= {"rounds": 6, "optimizer": "adam"}
    text = write(records, ONE).text.split("### Beside Table 3: photo-art_painting", 1)[1].split("\n## ", 1)[0]
    words = shlex.split(text.split("```")[1])
    assert words[:3] == ["calida", "reproduce", "table3"]
    said = list(zip(words[3::2], words[4::2], strict=True))
    assert said[:2] == [("--source", one["source"]), ("--target", one["target"])]
    assert ("--size", "48") in said
    assert said[-3:] == [("--seeds", "2"), ("--set", "optimizer=adam"), ("--set", "rounds=6")]


def test_runs_of_other_settings_are_rows_of_their_own(write):
    records = {**other_records(), **other_records(size=64, count=1)}
    text = write(records, ONE).text.split("### Beside Table 3", 1)[1].split("\n## ", 1)[0]
    assert len([name for name in rows(text) if name.startswith("rer-inf")]) == 2


def test_records_that_no_table_shows_are_counted(write):
    stray = record(TASKS[MNIST_USPS].job("rer-1", 9), 0.9)
    assert "which are not on this page: 1." in write(by_key([stray]), ONE).text


def test_hostile_names_stay_names(write):
    """A task, a recipe and a setting that hold every sign of Markdown and HTML."""
    records = other_records(HOSTILE, HOSTILE, source=HOSTILE, machine=HOSTILE, versions={HOSTILE: HOSTILE})
    for one in records.values():
        one["settings"]["optimizer"] = HOSTILE
    page, figures = write(records, ONE)
    tame, _ = write(other_records("tame", "tame"), ONE)
    shapes = [[token.type for token in MarkdownIt().enable("table").parse(text)] for text in (page, tame)]
    assert shapes[0] == shapes[1]  # the same headings, rows and cells, whatever the names
    inner = [child for token in MarkdownIt().enable("table").parse(page) for child in token.children or ()]
    assert not [child for child in inner if child.type.startswith("html")]
    assert {child.attrs["href"] for child in inner if child.type == "link_open"} == {"trust.md#choose"}
    assert all(child.attrs["src"].startswith("figures/") for child in inner if child.type == "image")
    shown = "".join(child.content for child in inner if child.type in ("text", "text_special"))
    assert "a|b <script>alert(1)</script> `x` [y](http://z) ![i](j) **k** _l_ </title>]]>" in shown
    for path in figures.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text
        ElementTree.fromstring(text)
        assert re.fullmatch(r"[\w.-]+\.svg", path.name)


def test_safe_leaves_plain_names_as_they_are():
    assert (
        safe("photo-art_painting, 90.1 ± 0.2 (mnist:train:2000)") == "photo-art_painting, 90.1 ± 0.2 (mnist:train:2000)"
    )
    assert safe("_a_|<") == "&#95;a&#95;&#124;&#60;"


def test_figures_have_a_mark_for_every_row(full):
    for name in ("table2a", "table2b"):
        path = full.figures / f"{name}.svg"
        assert len(marks(path, "paper")) == len(marks(path, "ours")) == len(marks(path, "best")) == 10
        assert f"](figures/{name}.svg)" in full.text
    assert len(marks(full.figures / f"table1-{MNIST_USPS}.svg", "ours")) == 6
    tips = [mark.find(f"{SVG}title").text for mark in marks(full.figures / "table2a.svg", "paper")]
    assert tips[2] == "RER-1, the paper: 91.57 ± 0.13"


def test_rows_without_runs_have_the_papers_mark_alone(some):
    path = some.figures / "table2a.svg"
    assert len(marks(path, "paper")) == 10
    assert len(marks(path, "ours")) == 3
    assert path.read_text().count("(not run)") == 7


def test_courses_have_a_panel_for_every_recipe_and_a_line_for_every_seed(full):
    root = ElementTree.parse(full.figures / f"rounds-{MNIST_USPS}.svg").getroot()
    panels = [group for group in root.iter(f"{SVG}g") if group.get("class") == "panel"]
    assert len(panels) == 8
    for panel in panels:
        kinds = [line.get("class") for line in panel.iter(f"{SVG}polyline")]
        assert sorted(kinds) == ["line mean", "line paper", *["line seed"] * 4]
        (mean,) = [line for line in panel.iter(f"{SVG}polyline") if line.get("class") == "line mean"]
        assert len(mean.get("points").split()) == 4  # source only, and three rounds


def test_every_figure_says_oracle_and_has_a_title(full):
    assert "**oracle** figure" in full.text
    paths = list(full.figures.iterdir())
    assert len(paths) == 7
    for path in paths:
        root = ElementTree.parse(path).getroot()
        assert "oracle" in root[0].text
        assert root[0].tag == f"{SVG}title"
        assert any("oracle" in (text.text or "") for text in root.iter(f"{SVG}text"))


def test_the_same_records_give_the_same_bytes(write, full):
    records = {**full_records(), **other_records()}
    again = write(dict(reversed(records.items())))
    assert again.text == full.text
    first, second = ({path.name: path.read_bytes() for path in page.figures.iterdir()} for page in (full, again))
    assert first == second
