"""The sheet of samples to label, in a real browser."""

import csv

import numpy as np
import pytest

from calida.report import SheetItem, picture, render_sheet

NAMES = ["a.png", '=SUM("x"),y.png', "<img src=x onerror=alert(1)>.png", "d,e.png"]


@pytest.fixture
def sheet(browser, tmp_path):
    """The page of four pictures; the same browser opens it again with what it kept."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 300, 200), dtype=np.uint8)
    items = [SheetItem(n + 1, name, picture(pixels[n], 224)) for n, name in enumerate(NAMES)]
    page = render_sheet(items, ["cat", "-1", "<b>"], "(none)", "path", "data/camera", "key")
    (tmp_path / "sheet.html").write_text(page, encoding="utf-8")
    context = browser.new_context(accept_downloads=True)
    noise = []

    def open_():
        page = context.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda request: noise.append(request.url) if request.url.startswith("http") else None)
        page.goto((tmp_path / "sheet.html").as_uri())
        return page

    yield open_
    context.close()
    assert noise == []


def test_choices_are_saved_as_the_file_that_evaluate_reads(sheet, tmp_path):
    page = sheet()
    choices = page.locator("select")
    for number, answer in enumerate(("cat", "-1", "", "(none)")):
        choices.nth(number).select_option(answer)
    assert page.locator("#count").inner_text() == "3 of 4"
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "labels.csv"
    saved.value.save_as(tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["number", "path", "label"]
    assert [row[0] for row in rows[1:]] == ["1", "2", "3", "4"]
    assert [row[1] for row in rows[1:]] == [NAMES[0], f"'{NAMES[1]}", NAMES[2], NAMES[3]]
    assert [row[2] for row in rows[1:]] == ["cat", "'-1", "", "(none)"]


def test_answers_outlast_the_page_and_pictures_are_small(sheet):
    page = sheet()
    page.locator("select").nth(2).select_option("<b>")
    page.close()
    again = sheet()
    assert again.locator("select").nth(2).input_value() == "<b>"
    assert again.locator("#count").inner_text() == "1 of 4"
    assert (
        again.evaluate("[...document.images].map((one) => [one.naturalWidth, one.naturalHeight])") == [[149, 224]] * 4
    )
    assert again.evaluate("document.querySelectorAll('[onerror]').length") == 0
