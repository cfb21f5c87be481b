"""The house rules that code can check: data flows one way, nothing is unpickled, documents are in order."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys

import pytest
from commands import succeed
from documents import DOCS, DOCUMENTS, PAGES, ROOT, name_of, sentences

import calida

PACKAGE = ROOT / "src" / "calida"
# A module imports only from modules that stand above it (or beside it, in its own folder).
FLOORS = [
    "version",
    "errors",
    "terminal",
    "json_values",
    "run_warnings",
    "files",
    "spreadsheets",
    "allocator",
    "devices",
    "threads",
    "workers",
    "launch",
    "watch",
    "seeds",
    "processes",
    "uncertainty",
    "data",
    "table_encoder",
    "encoders",
    "model",
    "shift",
    "panel",
    "selection",
    "families",
    "objective",
    "validation",
    "estimation",
    "training",
    "notebook_progress",
    "progress",
    "recipes",
    "adaptation",
    "estimator",
    "report",
    "runs",
    "front",
    "studies",
    "cli",
    "__main__",
]
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 350


def floor(path):
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return len(FLOORS) if part == "__init__" else FLOORS.index(part)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for module in modules:
            if module.split(".")[0] == "calida":
                yield module.split(".")[1] if "." in module else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_imports_upward(path):
    for name in imports(path):
        assert name in FLOORS, f"{path} imports the package's front"
        assert FLOORS.index(name) <= floor(path), f"{path} imports {name}, which stands below it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_sitting(path):
    assert len(path.read_text().splitlines()) <= LONGEST


def public_names():
    """What each package of the house, and its front, offers."""
    for package in sorted(PACKAGE.rglob("__init__.py")):
        parts = package.parent.relative_to(PACKAGE.parent).parts
        module = importlib.import_module(".".join(parts))
        for name in getattr(module, "__all__", ()):
            yield pytest.param(module, name, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize(("module", "name"), public_names())
def test_every_public_name_says_what_it_is(module, name):
    """Classes and functions by a docstring of their own; constants and types need none."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
        assert own, f"{module.__name__}.{name} has no docstring"
        assert not own.startswith(f"{value.__name__}("), f"{module.__name__}.{name} has only a dataclass's docstring"


def test_uncertainty_needs_torch_alone():
    for path in (PACKAGE / "uncertainty").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            roots = {module.split(".")[0] for module in modules}
            assert roots <= {"torch", "math", "typing", "__future__", "calida"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_errors_of_the_library_name_no_flags(path):
    """Python has none: an error names its option, and the command line says how to give it."""
    if floor(path) == FLOORS.index("cli"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)] if "Error" in name else []
        assert not [text for text in words if isinstance(text, str) and re.search(r"(^|[ (])--[a-z]", text)]


def test_nothing_is_ever_unpickled():
    """PyTorch's files are read where packages carry published weights in them, and by its reader that runs no code."""
    safe = 'torch.load(path, map_location="cpu", weights_only=True)'
    forbidden = re.compile(r"\bpickle\b|torch\.load|allow_pickle=True|joblib\.load")
    assert not [path for path in FILES if forbidden.search(path.read_text().replace(safe, ""))]
    assert [path.name for path in FILES if safe in path.read_text()] == ["weights.py"]


def test_the_version_is_one():
    assert f'version = "{calida.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {calida.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_test_files_have_names_of_their_own():
    """Of two with one name, pytest refuses to collect the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(set(names)) == len(names)


def test_every_module_is_in_the_repository():
    """What a pattern of .gitignore hides is there for its author and missing for everybody else."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    hidden = subprocess.run(
        ["git", "status", "--ignored", "--porcelain", "src", "tests", "examples", "benchmarks", "reproduction", "docs"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert not [line for line in hidden if line.startswith("!!") and "__pycache__" not in line]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run_and_adapt(path, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = [line for line in done.stdout.splitlines() if "oracle" in line]
    assert figures
    shares = [float(share) for line in figures for share in re.findall(r"([\d.]+)%", line)]
    counts = [int(a) / int(b) for line in figures for a, b in re.findall(r"(\d+) of (\d+) right", line)]
    assert max([*(share / 100 for share in shares), *counts]) > 0.9  # the last figure of each is the adapted one


def test_every_page_has_a_place_in_the_navigation():
    """Of the site: a page that `nav` in mkdocs.yml leaves out is found by nobody, and ends its build."""
    placed = set(re.findall(r":\s+([\w/.-]+\.md)\b", (ROOT / "mkdocs.yml").read_text()))
    assert {str(path.relative_to(DOCS)) for path in PAGES} == placed


def test_method_page_names_things_that_exist():
    """Every `module.path.name` on the pages that map words to code can be imported."""
    pages = [DOCS / "method.md", DOCS / "default-recipe.md", DOCS / "api" / "index.md"]
    names = {name for page in pages for name in re.findall(r"`(calida(?:\.\w+)+)`", page.read_text())}
    assert len(names) > 40
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_links_between_documents_lead_somewhere():
    for path in [*DOCUMENTS, *(ROOT / "reproduction" / "notes").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text()):
            made_by_the_site = re.fullmatch(r"(?:\.\./)*api/(\w+)\.md", link)
            if made_by_the_site and (ROOT / "src" / "calida" / made_by_the_site[1]).is_dir():
                continue
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_the_page_of_settings_is_that_of_the_code():
    assert (DOCS / "settings.md").read_text() == succeed("recipes", "--markdown").stdout


def test_the_page_of_findings_is_that_of_the_code(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "draw")
    assert (DOCS / "findings.md").read_text() == importlib.import_module("findings").page()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_sentences_can_be_read_aloud(path):
    long = [" ".join(words) for words in sentences(path.read_text()) if len(words) > 30]
    assert not long


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
