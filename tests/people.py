"""A table as its owner has it: words, dates, gaps, identifiers; drawn so that half of its columns tell the label."""

import numpy as np
import pandas as pd


def people(rows, seed, older=0.0, cities=("Rome", "Oslo", "Bern")):
    """Who is ill is older, lives rather in the last city and writes of pain; `older` moves everybody."""
    random = np.random.default_rng(seed)
    ill = random.random(rows) < 0.5
    age = random.normal(40, 6, rows) + 14 * ill + older
    first = pd.Timestamp("2021-01-01") if not older else pd.Timestamp("2024-01-01")
    shares = np.linspace(1, 3, len(cities))
    city = np.where(ill, random.choice(cities, rows, p=shares / shares.sum()), random.choice(cities, rows))
    notes = np.where(ill, "sharp pain in the", "came for the")
    parts = random.choice(["knee", "hip", "back", "arm"], rows)
    return pd.DataFrame(
        {
            "patient": [f"P{1000 * seed + row:06d}" for row in range(rows)],
            "age": np.where(random.random(rows) < 0.1, np.nan, age).round(1),
            "city": np.where(random.random(rows) < 0.05, None, city),
            "smokes": random.random(rows) < 0.3 + 0.3 * ill,
            "seen": (first + pd.to_timedelta(random.integers(0, 700, rows), "D")).strftime("%Y-%m-%d"),
            "note": [f"{words} {part} {row}" for row, (words, part) in enumerate(zip(notes, parts, strict=True))],
            "site": "main",
            "code": np.where(ill, "D1", "D0"),
            "state": np.where(ill, "ill", "well"),
        }
    )
