"""A finished run that the tests of all commands share."""

import pytest
from commands import QUICK, succeed
from pictures import class_folders


@pytest.fixture(scope="package")
def place(tmp_path_factory):
    """A labeled and an unlabeled folder, and a finished run with oracle labels."""
    folder = tmp_path_factory.mktemp("user")
    class_folders(folder / "photos", 60, 0)
    class_folders(folder / "camera", 48, 1, low=40, high=200)
    options = ["--source", "photos", "--target", "camera", "--target-labels", "inside", "--out", "run", "--json"]
    done = succeed("adapt", *options, *QUICK, cwd=folder)
    (folder / "stdout.json").write_text(done.stdout)
    return folder
