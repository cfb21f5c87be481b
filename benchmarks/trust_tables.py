"""The tables of reproduction/notes/trust.md, from the lines that benchmarks/trust.py wrote.

    python -m benchmarks.trust_tables [--runs results/trust.jsonl] [--work runs/trust] [--page PAGE.md]

Everything is decided by the functions that a run uses; target labels are read as oracle figures alone. With --work, the
kept predictions of all runs of a task and seed are compared by `choose_candidate`, and what it says goes to
results/trust-choices.json, from which the tables can be made again without the runs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks.trust import SETTINGS, TASKS, TUNED_ON
from calida.adaptation import AUTO_RECIPES
from calida.estimation import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    DEFAULT_ESTIMATE,
    ESTIMATES,
    name_calibration,
    with_interval,
)
from calida.validation import (
    DECIDING,
    DEFAULT_RULE,
    ENSV,
    VALIDATORS,
    Candidate,
    LabeledSummary,
    PredictionSummary,
    RoundRecord,
    agreement_with_others,
    choose_candidate,
    collapse,
    prefers,
    turned,
)

Run = dict[str, Any]
MARKS = ("<!-- tables -->", "<!-- end of tables -->")
UNCHANGED = [name for name, setting in SETTINGS.items() if setting.change == "none"]


def kept_round(run: Run, rule: str, guard: bool) -> int:
    """The candidate that a run with this rule returns: 0 is the source-only classifier."""
    history: list[RoundRecord] = []
    for index, values in enumerate(run["candidates"]):
        candidate = _as_record(values)
        stopped = index > 0 and guard and collapse(candidate, history) is not None
        kept = index == 0 or (not stopped and prefers(rule, candidate, history, guard))
        history.append(replace(candidate, kept=kept))
        if stopped:
            break
    return [index for index, record in enumerate(history) if record.kept][-1]


def _as_record(values: Mapping[str, Any]) -> RoundRecord:
    """A candidate's line as the record of a round; figures that are younger than the line are not known."""
    source = LabeledSummary(**{"mean_class_accuracy": math.nan, "brier": math.nan, **values["source"]})
    target = PredictionSummary(**values["target"])
    place = (values["phase"], values["round"], values["rounds"])
    return RoundRecord(*place, source, target=target, validators=values["validators"])


def accuracies(run: Run) -> np.ndarray:
    return 100 * np.array([candidate["oracle_accuracy"] for candidate in run["candidates"]])


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in line) + " |"
        for line in lines
    )


def rounds_table(runs: list[Run]) -> str:
    """Regret of choosing among a run's rounds, the source-only classifier among them, and rank correlation."""
    rules: dict[str, Callable[[Run], int]] = {
        "**default rule, guard on**": lambda run: kept_round(run, DEFAULT_RULE, True),
        "default rule, guard off": lambda run: kept_round(run, DEFAULT_RULE, False),
        "last round": lambda run: len(run["candidates"]) - 1,
        "source only": lambda run: 0,
    }
    for name in VALIDATORS:
        rules[name] = lambda run, name=name: int(np.argmax(keys(run, name)))  # type: ignore[misc]
    rows = []
    for name, choose in rules.items():
        regrets = {group: [] for group in ("tuned", "held", "all")}  # type: dict[str, list[float]]
        for run in runs:
            regret = float(accuracies(run).max() - accuracies(run)[choose(run)])
            regrets["all"].append(regret)
            regrets["tuned" if run["task"] in TUNED_ON else "held"].append(regret)
        ranks = [spearmanr(keys(run, name), accuracies(run))[0] for run in runs] if name in VALIDATORS else []
        cells = [f"{np.mean(values):.2f} / {np.max(values):.1f}" if values else "" for values in regrets.values()]
        rows.append([name, *cells, f"{np.nanmean(ranks):.2f}" if ranks else ""])
    return table(["rule", "two tuning tasks", "two other tasks", "all: mean / worst regret", "rank correlation"], rows)


def keys(run: Run, name: str) -> list[float]:
    return [VALIDATORS[name].key(candidate["validators"][name]) for candidate in run["candidates"]]


def choose_runs(runs: list[Run], work: Path) -> list[dict[str, Any]]:
    """For every task and seed: which of the runs on the unchanged target each validator, and calida, would choose."""
    groups = defaultdict(list)
    for run in runs:
        if run["setting"] in UNCHANGED:
            groups[run["task"], run["seed"]].append(run)
    return [
        {"task": task, "seed": seed, **_choose(members, work), "auto": _choose(some, work)}
        for (task, seed), members in groups.items()
        if len(some := [run for run in members if run["setting"] in AUTO_RECIPES]) == len(AUTO_RECIPES)
    ]


def _choose(members: list[Run], work: Path) -> dict[str, Any]:
    kept = {run["setting"]: kept_round(run, DEFAULT_RULE, True) for run in members}
    candidates = {}
    for run in members:
        name, index = run["setting"], kept[run["setting"]]
        with np.load(work / f"{run['task']}.{name}.{run['seed']}" / "target.npz") as arrays:
            log_probs = torch.from_numpy(arrays[f"arr_{index}"])
        candidates[name] = Candidate(run["candidates"][index]["validators"], log_probs)
    selection = choose_candidate(candidates)
    agreement = agreement_with_others(selection.chosen, candidates)
    oracle = {run["setting"]: float(accuracies(run)[kept[run["setting"]]]) for run in members}
    found = {"chosen": selection.chosen, "agreement": agreement, "picks": selection.picks, "table": selection.table}
    return {**found, "oracle_accuracy": oracle}


def selection_table(choices: list[dict[str, Any]]) -> str:
    rows = []
    for name in ("**calida select**", *VALIDATORS, ENSV):
        regrets, ranks = [], []
        for choice in choices:
            oracle = choice["oracle_accuracy"]
            pick = choice["chosen"] if name not in choice["picks"] else choice["picks"][name]
            regrets.append(max(oracle.values()) - oracle[pick])
            column = name if name in choice["picks"] else DECIDING
            values = [turned(column, choice["table"][run][column]) for run in oracle]
            ranks.append(spearmanr(values, list(oracle.values()))[0])
        tuned = [regret for regret, choice in zip(regrets, choices, strict=True) if choice["task"] in TUNED_ON]
        held = [regret for regret, choice in zip(regrets, choices, strict=True) if choice["task"] not in TUNED_ON]
        cells = [f"{np.mean(values):.2f} / {np.max(values):.1f}" if values else "" for values in (tuned, held, regrets)]
        rows.append([name, *cells, f"{np.nanmean(ranks):.2f}"])
    auto = [choice["auto"] for choice in choices]
    regrets = [max(one["oracle_accuracy"].values()) - one["oracle_accuracy"][one["chosen"]] for one in auto]
    rows.append(
        [f"`--recipe auto` ({', '.join(AUTO_RECIPES)})", "", "", f"{np.mean(regrets):.2f} / {np.max(regrets):.1f}", ""]
    )
    return table(["rule", "two tuning tasks", "two other tasks", "all: mean / worst regret", "rank correlation"], rows)


def returned(run: Run) -> dict[str, Any]:
    return run["candidates"][kept_round(run, DEFAULT_RULE, True)]  # type: ignore[no-any-return]


def calibration_table(runs: list[Run]) -> str:
    """Target ECE of the returned classifiers, by task."""
    names = [*CALIBRATIONS, "oracle"]
    rows = []
    for task in (*TASKS, "all"):
        mine = [returned(run)["oracle_ece"] for run in runs if task in (run["task"], "all")]
        if mine:
            rows.append([_task(task), *(f"{100 * np.mean([ece[name] for ece in mine]):.1f}" for name in names)])
    default = name_calibration(DEFAULT_CALIBRATION, images=True, checked=False)
    header = [f"**{name}** (default)" if name == default else name for name in names]
    return table(["task", *header[:-1], "oracle temperature"], rows)


def default_runs(runs: list[Run], choices: list[dict[str, Any]]) -> list[Run]:
    """The runs that `--recipe auto` returns."""
    chosen = {(choice["task"], choice["seed"], choice["auto"]["chosen"]) for choice in choices}
    return [run for run in runs if (run["task"], run["seed"], run["setting"]) in chosen]


def estimate_table(runs: list[Run], agreements: Mapping[tuple[str, int], float] | None = None) -> str:
    """Mean distance, in points, of estimated and true accuracy of the returned classifiers.

    Where several recipes were tried, their agreement, by task and seed, widens the interval.
    """
    rows = []
    for task in (*TASKS, "all"):
        members = [run for run in runs if task in (run["task"], "all")]
        mine = [(returned(run), run["target_samples"]) for run in members]
        if not mine:
            continue
        distances = [
            float(np.mean([100 * abs(one["estimate"][name] - one["oracle_accuracy"]) for one, _ in mine]))
            for name in ESTIMATES
        ]
        intervals = [(with_interval(one["estimate"], count), one["oracle_accuracy"]) for one, count in mine]
        if agreements is not None:
            reach = [agreements[run["task"], run["seed"]] for run in members]
            distances.append(
                float(np.mean([100 * abs(a - truth) for a, (_, truth) in zip(reach, intervals, strict=True)]))
            )
            intervals = [(known.reaching(a), truth) for a, (known, truth) in zip(reach, intervals, strict=True)]
        inside = np.mean([estimate.low <= truth <= estimate.high for estimate, truth in intervals])
        width = 100 * np.mean([estimate.high - estimate.low for estimate, _ in intervals])
        rows.append([_task(task), *distances, f"{inside:.0%}", f"{width:.0f}"])
    names = [f"**{name}** (default)" if name == DEFAULT_ESTIMATE else name for name in ESTIMATES]
    names += [] if agreements is None else ["agreement of recipes"]
    return table(["task", *names, "true value inside the interval", "width of the interval"], rows)


def guard_table(runs: list[Run]) -> str:
    """By setting: mean oracle accuracy of source only, last round and returned, and the worst change."""
    rows = []
    for name in SETTINGS:
        mine = [run for run in runs if run["setting"] == name]
        if not mine:
            continue
        first, last = ([accuracies(run)[index] for run in mine] for index in (0, -1))
        back = [100 * returned(run)["oracle_accuracy"] for run in mine]
        fell = sum(kept_round(run, DEFAULT_RULE, True) == 0 for run in mine)
        losses = [float(min(two - one for one, two in zip(first, values, strict=True))) for values in (last, back)]
        means = [float(np.mean(values)) for values in (first, last, back)]
        rows.append(
            [
                name,
                *(f"{value:.1f}" for value in means),
                f"{losses[0]:+.1f}",
                f"{losses[1]:+.1f}",
                f"{fell} of {len(mine)}",
            ]
        )
    header = ["setting", "source only", "last round", "returned", "worst change, last round", "worst change, returned"]
    return table([*header, "source only returned"], rows)


def aurc_table(runs: list[Run]) -> str:
    """Area under the risk-coverage curve, in thousandths, of the returned classifiers."""
    rows = []
    for kind, members in {
        "point networks": [run for run in runs if run["setting"] != "brer-inf"],
        "Bayesian networks (brer-inf)": [run for run in runs if run["setting"] == "brer-inf"],
    }.items():
        for task in (*TASKS, "all"):
            mine = [returned(run)["oracle_aurc"] for run in members if task in (run["task"], "all")]
            if mine:
                rows.append(
                    [kind, _task(task), *(f"{1000 * np.mean([one[score] for one in mine]):.1f}" for score in mine[0])]
                )
    return table(
        [
            "networks",
            "task",
            "confidence (softmax maximum)",
            "entropy",
            "mutual information",
            "entropy + mutual information",
        ],
        rows,
    )


def _task(name: str) -> str:
    return f"{name} (tuned on)" if name in TUNED_ON else name


def render(runs: list[Run], choices: list[dict[str, Any]]) -> str:
    hours = sum(run["train_seconds"] for run in runs) / 3600
    parts = {
        "Choosing a round": rounds_table(runs),
        "Choosing among runs": selection_table(choices),
        "Calibration of what `--recipe auto` returns: target ECE in %": calibration_table(default_runs(runs, choices)),
        "Calibration of all settings": calibration_table(runs),
        "Estimated accuracy of what `--recipe auto` returns: mean distance in points": estimate_table(
            default_runs(runs, choices),
            {(choice["task"], choice["seed"]): choice["auto"]["agreement"] for choice in choices},
        ),
        "Estimated accuracy of all settings": estimate_table(runs),
        "The guard: oracle accuracy in %": guard_table(runs),
        "Abstention: AURC, in thousandths": aurc_table(runs),
    }
    seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in runs}))
    first = (
        f"{len(runs)} runs, seeds {seeds}, {hours:.1f} hours of one thread in all; {runs[0]['machine']}, "
        f"torch {runs[0]['torch']}."
    )
    return "\n\n".join([first, *(f"### {title}\n\n{text}" for title, text in parts.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("results/trust.jsonl"))
    parser.add_argument("--choices", type=Path, default=Path("results/trust-choices.json"))
    parser.add_argument("--work", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    runs = [json.loads(line) for line in options.runs.read_text().splitlines()]
    if options.work:
        options.choices.write_text(json.dumps(choose_runs(runs, options.work), indent=1) + "\n")
    text = render(runs, json.loads(options.choices.read_text()))
    if options.page:
        before, _, rest = options.page.read_text().partition(MARKS[0])
        options.page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")
    else:
        print(text)


if __name__ == "__main__":
    main()
