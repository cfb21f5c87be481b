"""How long a round is."""

import pytest
import torch

from calida.errors import InputError
from calida.objective import Diversity, Objective, PredictiveLikelihood, Weighted
from calida.recipes import get_recipe
from calida.seeds import Seeds
from calida.training import Phase

BOTH = Objective({"likelihood": Weighted(PredictiveLikelihood()), "diversity": Weighted(Diversity())})


@pytest.mark.parametrize(("longest", "turns"), [(None, 20), (100, 20), (20, 20), (7, 7)])
@pytest.mark.parametrize("schedule", ["joint", "alternate"])
def test_a_round_is_its_passes_or_the_longest_it_may_be(schedule, longest, turns):
    phase = Phase("adapt", BOTH, rounds=1, passes=2, batch_size=10, schedule=schedule, longest=longest)
    plans = phase.plan({"source": torch.arange(100), "target": torch.arange(35)}, Seeds(0))
    assert len(plans) == turns * (1 if schedule == "joint" else 2)
    assert sum(plan.size for plan in plans) == phase.estimate_samples(100, 35) == 2 * 10 * turns


def test_a_round_without_a_batch_is_refused():
    with pytest.raises(InputError, match="longest_round"):
        get_recipe("calida").with_settings(longest_round=0)
