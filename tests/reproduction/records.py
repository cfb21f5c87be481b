"""Records of runs with known numbers, as a finished study would leave them."""

from reproduction.study import base_job, row_job
from reproduction.tables import TABLE1, TABLES


def _oracle(accuracy, ece=0.05):
    return {"accuracy": accuracy, "mean_class_accuracy": accuracy - 0.01, "ece": ece}


def record(job, rounds, chosen=-1, ece=0.05, variances=(2.0, 1.0), entropies=(0.1, 0.4), by_samples=None):
    """A run whose target accuracy went through `rounds`, the first of them before adaptation."""
    parts = [
        {
            "phase": "adapt" if index else "pretrain",
            "round": max(index - 1, 0),
            "oracle": _oracle(value, ece),
            "source": {"entropy": entropies[0]},
            "target": {"entropy": entropies[1]},
            "gradient_variance": {"source": variances[0], "target": variances[1]},
        }
        for index, value in enumerate(rounds)
    ]
    figures = ("source_trained_on", "source_held_out", "oracle")
    known = by_samples or ({} if job.start else dict.fromkeys(job.measured_with, rounds[-1]))
    return {
        "key": job.key,
        **job.identity(),
        "start": None if job.start is None else job.start.key,
        "rounds": parts,
        "returned": {"oracle": _oracle(rounds[chosen], ece / 2), "oracle_uncalibrated": _oracle(rounds[chosen], ece)},
        "by_samples": {str(count): {name: _oracle(value) for name in figures} for count, value in known.items()},
        "machine": "Plan9 abacus, one thread",
        "versions": {"calida": "0.1.0", "torch": "2.0"},
        "training_seconds": 1700.0,
        "seconds": 1800.0,
    }


def by_key(records):
    return {one["key"]: one for one in records}


def rows_of(task):
    """Makers of jobs by the name of a row: table 2's, table 1's, and dual ascent."""
    table = next(table for table in TABLES.values() if table.task == task.name)
    makers = {row.name: lambda seed, row=row: row_job(task, row, seed) for row in table.rows if row.recipe}
    makers |= {row.name: lambda seed, row=row: base_job(task, row, seed) for row in TABLE1[task.name]}
    return {**makers, "dual": lambda seed: task.job("dual", seed)}


def records(task, values, **options):
    """Records by key from last-round accuracies {row: [one a seed]}; adaptation began at 0.8."""
    makers = rows_of(task)
    made = []
    for name, some in values.items():
        for seed, value in enumerate(some):
            job = makers[name](seed)
            made.append(record(job, [0.8, value] if job.start else [value], **options.get(name, {})))
    return by_key(made)
