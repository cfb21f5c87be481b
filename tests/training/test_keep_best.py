"""Of epochs on source, the one that knows held-out source clearly best is kept."""

import pytest
import torch
from histories import is_round, without_times

import calida

EPOCHS = 8


def learn(x, y, **options):
    settings = {"batch_size": 20, "epochs": EPOCHS, "pretraining.learning_rate": 0.01, "device": "cpu", "guard": False}
    return calida.adapt((x, y), x, "source", choice="last", **{**settings, **options})


def weights(adapted):
    return adapted.classifier.state_dict()


def same(one, other):
    return all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


@pytest.fixture(scope="module")
def noise():
    """Labels that the columns say nothing of: what can be learned is learned by heart."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(200, 20, generator=generator), torch.randint(2, (200,), generator=generator)


@pytest.fixture(scope="module")
def clear():
    """Labels that a column gives away."""
    x = torch.randn(400, 5, generator=torch.Generator().manual_seed(1))
    return x, (x[:, 0] > 0).long()


def test_what_was_learned_by_heart_is_left_behind(noise):
    plain, best = learn(*noise), learn(*noise, keep_best=True)
    losses = [record.source.nll for record in plain.history]
    assert losses[-1] > 1.5 * min(losses)  # there is something to leave behind
    assert [record.source.nll for record in best.history] == [*losses[:-1], min(losses)]
    assert best.history[-1].kept
    assert not same(plain, best)


def test_where_the_last_epoch_is_about_as_good_it_stays(clear):
    plain, best = learn(*clear), learn(*clear, keep_best=True)
    assert same(plain, best)
    assert best.history[-1].source == plain.history[-1].source


class Stop(Exception):
    """Raised by an observer, as an interrupt would be."""


@pytest.mark.parametrize("after", [1, EPOCHS - 1, EPOCHS])
def test_a_stopped_run_goes_on_to_the_same_epoch(noise, tmp_path, after):
    seen = 0

    def stop(event):
        nonlocal seen
        seen += is_round(event)
        if seen == after:
            raise Stop

    with pytest.raises(Stop):
        learn(*noise, keep_best=True, folder=tmp_path, observe=stop)
    resumed, straight = learn(*noise, keep_best=True, folder=tmp_path, resume=True), learn(*noise, keep_best=True)
    assert same(resumed, straight)
    assert without_times(resumed.history) == without_times(straight.history)
