"""The top of the demo's report, as a browser shows it."""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright
from style import RUN


def draw(folder: Path) -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme="light")
        page.goto((RUN / "report.html").resolve().as_uri())
        page.screenshot(path=folder / "report.png")
        browser.close()
