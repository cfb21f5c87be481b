import os
import shutil
import tempfile

import pytest
import torch
from playwright.sync_api import sync_playwright

# Embeddings that tests compute are not to mix with the user's own.
os.environ.setdefault("CALIDA_CACHE", tempfile.mkdtemp(prefix="calida-test-cache-"))

# Small tensors gain nothing from threads, two processes may share the cores, and sums must be cut in the same places
# for runs to be compared bit for bit: one thread from the first fixture on.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, or another one on the path, without a window."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    assert path is not None, "report and site are tested in a browser: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
