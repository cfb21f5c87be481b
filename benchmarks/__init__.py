"""What it costs and what it reaches: `python -m benchmarks.speed` and others, from a clone."""
