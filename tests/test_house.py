"""The house rules that code can check: data flows one way, nothing is unpickled, the documents are true."""

import ast
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import succeed
from pictures import class_folders

import calida

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "calida"
# A module imports only from modules that stand above it (or beside it, in its own folder).
FLOORS = [
    "version",
    "errors",
    "files",
    "allocator",
    "seeds",
    "uncertainty",
    "data",
    "model",
    "shift",
    "selection",
    "objective",
    "validation",
    "estimation",
    "training",
    "recipes",
    "adaptation",
    "estimator",
    "report",
    "runs",
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


def test_nothing_is_ever_unpickled():
    forbidden = re.compile(r"\bpickle\b|torch\.load|allow_pickle=True|joblib\.load")
    assert not [path for path in FILES if forbidden.search(path.read_text())]


def test_the_version_is_one():
    assert f'version = "{calida.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {calida.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_module_is_in_the_repository():
    """What a pattern of .gitignore hides is there for its author and missing for everybody else."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    hidden = subprocess.run(
        ["git", "status", "--ignored", "--porcelain", "src", "tests", "examples", "benchmarks", "reproduction", "docs"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert not [line for line in hidden if line.startswith("!!") and "__pycache__" not in line]


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


WITH_CODE = [path for path in DOCUMENTS if blocks(path, "python")]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_python_blocks_run(path, tmp_path):
    code = "\n".join(blocks(path, "python"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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


def test_the_readmes_make_commands_exist():
    (commands,) = [block for block in blocks(ROOT / "README.md", "sh") if "make " in block]
    for command in commands.splitlines():
        words = command.split("#")[0].split()
        done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert words[0] == "make"
        assert done.returncode == 0, done.stderr
        assert "calida demo" in done.stdout or "pytest" in done.stdout


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


def test_method_page_names_things_that_exist():
    """Every `module.path.name` in the table of equations can be imported."""
    names = re.findall(r"`(calida(?:\.\w+)+)`", (ROOT / "docs" / "method.md").read_text())
    assert len(names) > 25
    for name in set(names):
        module, _, attribute = name.rpartition(".")
        target = sys.modules.get(module) or __import__(module, fromlist=[attribute])
        assert hasattr(target, attribute), name


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_the_page_of_settings_is_that_of_the_code():
    assert (ROOT / "docs" / "settings.md").read_text() == succeed("recipes", "--markdown").stdout
