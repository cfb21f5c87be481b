"""Which runs a table needs, and which of them share a source-only network."""

import pytest
from documents import ROOT

from calida.errors import InputError
from calida.recipes import get_recipe
from calida.studies import Results
from calida.studies.engine import starts_first
from reproduction.older_records import FLAT_NAMES
from reproduction.page import RESULTS
from reproduction.study import plan_study
from reproduction.tables import MNIST_USPS, NUM_SAMPLES, TABLES
from reproduction.tasks import PROTOCOLS


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_of_one_kind_share_their_pretraining(table):
    """So differences between rows are differences of adaptation, and the source rows are those very networks."""
    rows = [row for row in table.rows if row.recipe not in (None, "features")]  # ours has a start of its own
    jobs = plan_study(table.study, PROTOCOLS["main"], range(2), [row.name for row in rows]).jobs
    ordered = starts_first([job for job in jobs if job.task == table.task])
    assert {one.key for one in ordered} == {one.key for one in jobs if one.task == table.task}
    assert len(ordered) == 2 * len(rows)
    assert [one.start for one in ordered[:4]] == [None] * 4  # point and Bayesian, two seeds
    for one in ordered[4:]:
        assert one.start.key in {first.key for first in ordered[:4]}
        assert one.start.recipe.posterior == one.recipe.posterior == get_recipe(one.config.recipe).posterior


def test_the_papers_weight_and_its_control():
    """Weight 1 on every target step; the control has the same groups, and the same selection."""
    rows = {row.name: row for row in TABLES["table2b"].rows}
    jobs = {name: PROTOCOLS["main"]["svhn-mnist"].job(row.recipe, 0, row.settings).recipe for name, row in rows.items()}
    for name in ("RER-inf", "BRER-inf", "RER-1", "BRER-1"):
        term, control = jobs[f"{name}-GVR"], jobs[f"{name}, groups alone"]
        assert (term.gradient_variance.weight, term.gradient_variance.share) == (1.0, 1.0)
        assert (control.gradient_variance.weight, control.gradient_variance.grouped) == (0.0, True)
        assert term.with_settings(weight=0.0, groups_only=True).settings() == control.settings()
    assert jobs["BRER-inf"].pseudo_labels.class_shares == "predicted"
    assert jobs["BRER-inf, expected shares"].pseudo_labels.class_shares == "uniform"


def test_table_1_trains_a_network_for_every_number_of_samples():
    jobs = [job for job in plan_study("table1", PROTOCOLS["main"], [0]).jobs if job.task == MNIST_USPS]
    assert [job.recipe.posterior.num_samples for job in jobs] == [1, *NUM_SAMPLES]
    assert len({job.key for job in jobs}) == len(jobs)


def test_rows_can_be_chosen_by_name():
    chosen = plan_study("table2a", PROTOCOLS["main"], range(3), ["RER-1", "BRER-inf-GVR"]).jobs
    assert {job.config.recipe for job in chosen} == {"rer-1", "brer-inf-gvr"}
    with pytest.raises(InputError, match="table2a has no row 'RER-7'"):
        plan_study("table2a", PROTOCOLS["main"], [0], ["RER-7"])


def test_another_papers_method_is_named_and_not_run():
    gta = next(row for row in TABLES["table3"].rows if row.name.startswith("GTA"))
    assert (gta.recipe, gta.paper) == (None, 77.1)
    assert len(plan_study("table3", PROTOCOLS["main"], [0]).jobs) == len(TABLES["table3"].rows) - 1


def test_records_that_are_committed_are_those_of_todays_jobs():
    """Settings and options get company over time; what a finished run did is still found under today's key."""
    known = Results(ROOT / RESULTS, FLAT_NAMES).records
    wanted = {job.key for job in plan_study("table2b", PROTOCOLS["main"], range(4)).jobs}
    assert len(known.keys() & wanted) >= 12
