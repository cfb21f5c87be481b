import pytest

from calida.report import render


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a results in the browser; its console must stay silent and nothing may be fetched."""
    pages = []

    def open_(results, **context):
        (tmp_path / "report.html").write_text(render(results), encoding="utf-8")
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
