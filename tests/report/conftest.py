import shutil

import pytest
from playwright.sync_api import sync_playwright

from calida.report import render


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, or another one on the path, without a window."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    assert path is not None, "the report's tests need a browser: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a finding in the browser; its console must stay silent and nothing may be fetched."""
    pages = []

    def open_(finding, **context):
        (tmp_path / "report.html").write_text(render(finding), encoding="utf-8")
        page = browser.new_context(**context).new_page()
        page.noise = []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("request", lambda request: page.noise.append(request.url) if "http" in request.url[:5] else None)
        page.goto((tmp_path / "report.html").as_uri())
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.noise == []
        page.context.close()
