"""The documents: which there are, the code on them, their sentences."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def sentences(text):
    """Sentences of a page in words; code, tables, headings and marks are none."""
    text = re.sub(
        r"```.*?```|^\|[^\n]*$|^#[^\n]*$|<!--.*?-->|^!!![^\n]*$|^ {4}\S[^\n]*$", "\n", text, flags=re.S | re.M
    )
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for part in re.split(r"(?<=[.!?])[*\"]*\s+|\n\s*\n|\n\s*(?:-|\d+\.) ", text):
        yield part.split()
