"""The documents are true: their code runs, pictures are drawn by scripts, the site builds and works offline.

What every change can break at once, links, names and long sentences, is among the house rules.
"""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import quick, succeed
from documents import DOCS, DOCUMENTS, ROOT, blocks, name_of
from pictures import class_folders

import calida
from calida.objective import Step

PICTURES = DOCS / "pictures"


def run_python(code, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


IMAGES = DOCS / "tutorials" / "images.md"
WITH_CODE = [path for path in DOCUMENTS if blocks(path, "python") and path != IMAGES]


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_python_blocks_run_and_print_what_the_page_shows(path, tmp_path):
    """Words as on the page; figures within twelve, as percentages of a training move from processor to processor."""
    made = run_python("\n".join(blocks(path, "python")), tmp_path).splitlines()
    shown = re.findall(r"```python\n(?:(?!```).)*?```\s+```text\n(.*?)```", path.read_text(), re.DOTALL)
    lines = [line for block in shown for line in block.splitlines()]
    if lines:
        assert len(made) == len(lines)
    for ours, theirs in zip(made, lines, strict=False):
        number = r"-?\d+(?:\.\d+)?"
        assert re.sub(number, "#", ours) == re.sub(number, "#", theirs)
        assert [float(one) for one in re.findall(number, ours)] == pytest.approx(
            [float(one) for one in re.findall(number, theirs)], abs=12
        )


def test_the_commands_of_the_tutorial_with_images_run(tmp_path):
    """On a run of the same folder and data as the demo's, but of seconds."""
    data = ("--source", "mnist-5k:400", "--target", "uci-digits:300", "--size", "20")
    succeed("adapt", *data, "--out", "runs/demo", *quick(rounds=1), cwd=tmp_path)
    commands = [line for block in blocks(IMAGES, "sh") for line in block.splitlines() if "runs/demo" in line]
    for command in commands:
        succeed(*shlex.split(command)[1:], cwd=tmp_path)
    assert (tmp_path / "new.csv").read_text().count("\n") == 201
    assert (tmp_path / "surest.csv").read_text().count(",no\n") == 180
    assert "(1, 20, 20)" in run_python("\n".join(blocks(IMAGES, "python")), tmp_path)


def test_the_readmes_commands_run_on_own_folders(tmp_path):
    """The block of commands as it stands, on small folders of the names that it uses."""
    class_folders(tmp_path / "photos", 24, 0)
    for name, seed in (("camera", 1), ("more", 2)):
        class_folders(tmp_path / name, 16, seed, low=40, high=200)
    found = sorted((tmp_path / "camera").rglob("*.png"))
    rows = [f"{path.relative_to(tmp_path / 'camera')},{path.parent.name}" for path in found]
    (tmp_path / "truth.csv").write_text("path,label\n" + "\n".join(rows))
    (commands,) = [block for block in blocks(ROOT / "README.md", "sh") if "calida adapt" in block]
    for command in commands.splitlines():
        words = shlex.split(command, comments=True)
        assert words[0] == "calida"
        succeed(*words[1:], cwd=tmp_path)
    assert (tmp_path / "more.csv").read_text().count("\n") == 17
    assert '"oracle"' in (tmp_path / "run" / "metrics.json").read_text()


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_make_commands_exist(path):
    (commands,) = [block for block in blocks(path, "sh") if "make " in block]
    for command in commands.splitlines():
        words = command.split("#")[0].split()
        done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert words[0] == "make"
        assert done.returncode == 0, done.stderr


def test_every_command_on_a_page_has_a_help():
    """Options are left to the tests of the command line; here a name that went is found."""
    used = {line.split()[1] for path in DOCUMENTS for block in blocks(path, "sh") for line in block.splitlines()
            if line.startswith("calida ")}  # fmt: skip
    assert {"adapt", "predict", "evaluate", "select", "study", "recipes", "demo"} <= used
    for command in used:
        succeed(command, "--help")


def test_all_that_a_term_may_use_is_on_the_page():
    step = Step(None, {}, None)
    public = {name for name in (*vars(step), *dir(Step)) if not name.startswith("_")}
    page = (DOCS / "guides" / "extending.md").read_text()
    assert set(re.findall(r"^\| `(\w+)", page, re.MULTILINE)) == public


def test_pictures_are_drawn_by_scripts_and_used():
    used = {Path(link).name for path in DOCUMENTS for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text())}
    scripts = "".join(path.read_text() for path in (DOCS / "draw").glob("*.py"))
    for picture in PICTURES.iterdir():
        assert picture.name in used
        assert f'"{picture.stem}"' in scripts or f'"{picture.name}"' in scripts


@pytest.mark.parametrize("name", ["label_shift", "choosing"])
def test_pages_repeat_the_figures_of_their_pictures(name, monkeypatch):
    """What a script computes for its picture, from a closed form or from committed records, is what the page says."""
    monkeypatch.syspath_prepend(DOCS / "draw")
    monkeypatch.chdir(ROOT)
    page = (DOCS / "concepts" / f"{name.replace('_', '-')}.md").read_text()
    for figure in importlib.import_module(name).quoted():
        assert figure in page


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == calida.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert f"version = {{{calida.__version__}}}" in (DOCS / "citing.md").read_text()


# What a newcomer asks, in the words of a search, and the page that answers.
QUESTIONS = {
    "loss of order 2": "method.html",
    "min_batches_per_round": "settings.html",
    "validator of your own": "guides/extending.html",
    "predict on new images": "quick-start.html",
    "metrics.json": "files.html",
    "exit codes": "commands.html",
    "resume": "quick-start.html",
    "recipe for a table": "guides/recipes.html",
    "how the estimate is made": "concepts/estimating.html",
    "how to cite": "citing.html",
}


def test_the_site_builds_without_a_warning_and_answers_offline(browser, tmp_path):
    """Built as `make docs` does, opened as a file: no request leaves the machine, and search finds the answers."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rooms = {path.parent.name for path in (ROOT / "src" / "calida").glob("*/__init__.py")}
    assert rooms <= {path.stem for path in (tmp_path / "api").glob("*.html")}
    assert all(f"{room}/" in (DOCS / "api" / "index.md").read_text() for room in rooms)
    assert "renyi_entropy" in (tmp_path / "api" / "uncertainty.html").read_text()
    assert "--max-risk" in (tmp_path / "commands.html").read_text()
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "index.html").as_uri())
    for words, answer in QUESTIONS.items():
        page.click(".md-search__input", click_count=3)  # what is written is replaced
        page.keyboard.type(words)
        found = page.locator(f".md-search-result__link[href*='{answer}']")
        found.first.wait_for(state="attached", timeout=20_000)
        links = page.locator(".md-search-result__link").evaluate_all("all => all.map(one => one.href)")
        pages = list(dict.fromkeys(link.removeprefix(tmp_path.as_uri()).split("?")[0] for link in links))
        assert f"/{answer}" in pages[:5], words
    page.close()
    assert asked
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
