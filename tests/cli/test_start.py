"""The first seconds: what an import loads, and what Ctrl-C does before there is anything to save."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.pool import ThreadPool

import pytest

import calida
from calida.adaptation import MODELS
from calida.cli import options
from calida.estimation import CALIBRATIONS
from calida.uncertainty import SCORES

HEAVY = ("torch", "numpy", "scipy", "sklearn", "polars", "pandas", "PIL")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def loaded(code):
    """The heavy modules that a fresh process has loaded after this code."""
    told = f"import json, sys\n{code}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", told], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def help_of(*words):
    return (
        f"from calida.cli import main\nsys.argv = {['calida', *words, '--help']}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )


def test_nothing_heavy_is_loaded_before_it_is_used():
    assert loaded("import calida; calida.__version__; dir(calida); calida.InputError") == []
    assert "torch" in loaded("import calida; calida.get_recipe")


@pytest.mark.parametrize("words", [(), ("adapt",), ("predict",), ("data", "get")])
def test_help_loads_nothing_heavy(words):
    assert loaded(help_of(*words)) == []


def test_every_public_name_is_there_and_listed():
    assert set(calida.__all__) <= set(dir(calida))
    assert {name for names in calida._HOMES.values() for name in names} == set(calida.__all__) - {"__version__"}
    for name in calida.__all__:
        assert getattr(calida, name) is getattr(calida, name)
    assert calida.training.print_rounds is calida.print_rounds
    with pytest.raises(AttributeError, match="no attribute 'adept'"):
        calida.adept  # noqa: B018


def test_help_names_what_there_is_to_choose_from():
    assert options.MODELS == MODELS
    assert tuple(CALIBRATIONS) == options.CALIBRATIONS
    assert options.SCORES == SCORES


# From the first line of `main` on: imports of typer and rich, of torch and all else, reading, training.
MOMENTS = (0.02, 0.1, 0.3, 0.7, 1.2, 2.0, 3.0)


def test_ctrl_c_is_quiet_at_any_moment(tmp_path):
    for seconds in MOMENTS:
        (tmp_path / str(seconds)).mkdir()
    words = ["adapt", "--source", "mnist-5k", "--target", "uci-digits", "--out", "run"]
    with ThreadPool(4) as threads:
        ends = threads.map(lambda seconds: interrupted(words, seconds, tmp_path / str(seconds)), MOMENTS)
    for seconds, (code, told) in zip(MOMENTS, ends, strict=True):
        assert code in (130, -signal.SIGINT), told
        assert "Traceback" not in told
        assert "KeyboardInterrupt" not in told
        if not (tmp_path / str(seconds) / "run" / "config.toml").exists():
            assert not list((tmp_path / str(seconds)).rglob("*.*"))


def test_commands_that_keep_nothing_are_quiet_too(place, tmp_path):
    words = ["predict", str(place / "run"), str(place / "camera"), "--samples", "100000", "--out", "predictions.csv"]
    assert interrupted(words, 1.5, tmp_path) in [(130, ""), (-signal.SIGINT, "")]
    assert not list(tmp_path.iterdir())


def interrupted(words, seconds, folder):
    """The command in a process group of its own, as a terminal has it, ended so long after `main` was called."""
    start = "import sys\nfrom calida.__main__ import main\nprint(flush=True)\nmain()"
    command = [sys.executable, "-c", start, *words]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        process.stdout.readline()
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    return process.returncode, told
