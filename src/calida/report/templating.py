"""Pages from templates: whatever came from the user's disk is escaped, and a page needs no other file."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

_ENVIRONMENT = Environment(
    loader=PackageLoader("calida.report", "template"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters["last_part"] = lambda origin: origin.rstrip("/").rsplit("/", 1)[-1] or origin
_SMALL = 64  # pixels; larger pictures are photographs, for which PNG takes ten times the bytes


def render_template(name: str, **values: Any) -> str:
    """A page as text."""
    return _ENVIRONMENT.get_template(name).render(**values)


def asset(name: str) -> Markup:
    """A style sheet or script to be put into a page as it is."""
    assert _ENVIRONMENT.loader is not None
    return Markup(_ENVIRONMENT.loader.get_source(_ENVIRONMENT, name)[0])


def picture(pixels: np.ndarray, most: int | None = None) -> str:
    """An image, bytes [C, H, W], as a data address, made smaller where a side has more pixels than `most`."""
    array = pixels[0] if pixels.shape[0] == 1 else pixels[:3].transpose(1, 2, 0)
    image = Image.fromarray(np.ascontiguousarray(array))
    if most is not None:
        image.thumbnail((most, most))
    kind, options = ("PNG", {"optimize": True}) if max(image.size) <= _SMALL or most is None else ("JPEG", {})
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
