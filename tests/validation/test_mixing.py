"""Mixed pairs against a loop over samples, and their accuracy against skada."""

import numpy as np
import pytest
import torch
from PIL import Image

from calida.data import ImageFiles
from calida.model import predict
from calida.seeds import Seeds
from calida.validation import MIXVAL_SHARE, Mixed, mixed_accuracy, predict_mixed

SEEDS = Seeds(3)


def samples(rows, seed=0):
    """Wide enough for untrained weights to see several classes in them."""
    return 10 * torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed))


def pictures(rows, size=8):
    return torch.randint(256, (rows, 1, size, size), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("share", [0.55, 0.65, 1.0])
def test_mixing_against_a_loop(classifier, gaussian, share):
    """Row numbers given as labels come back as the pairs."""
    model, x = classifier(gaussian=gaussian), samples(23)
    mixed = predict_mixed(model, x, torch.arange(23), share, 5, SEEDS, batch_size=8)
    for row, (first, second) in enumerate(zip(mixed.first, mixed.second, strict=True)):
        alone = predict(model, (share * x[first] + (1 - share) * x[second])[None], 5, SEEDS)
        torch.testing.assert_close(mixed.log_probs[row], alone.log_probs[0])


def test_every_sample_stands_once_on_either_side_and_never_with_itself(classifier):
    mixed = predict_mixed(classifier(), samples(50), torch.arange(50), 0.55, 1, SEEDS, 16)
    assert sorted(mixed.first.tolist()) == sorted(mixed.second.tolist()) == list(range(50))
    assert (mixed.first != mixed.second).all()
    again = predict_mixed(classifier(), samples(50), torch.arange(50), 0.55, 1, SEEDS, 16)
    assert all(torch.equal(a, b) for a, b in zip(mixed, again, strict=True))
    other = predict_mixed(classifier(), samples(50), torch.arange(50), 0.55, 1, Seeds(4), 16)
    assert not torch.equal(mixed.first, other.first)


def test_no_more_than_two_thousand_pairs(classifier):
    mixed = predict_mixed(classifier(), samples(2300), torch.arange(2300), 0.55, 1, SEEDS, 500)
    assert len(mixed.log_probs) == len(mixed.first) == len(set(mixed.first.tolist())) == 2000
    assert set(mixed.first.tolist()) == set(mixed.second.tolist())
    assert int(mixed.first.max()) >= 2000  # drawn from all, not from the first of them


@pytest.mark.parametrize("batch_size", [1, 7, 29, 100])
def test_the_batch_does_not_matter(classifier, batch_size):
    model, x = classifier(), samples(29)
    whole, parts = (predict_mixed(model, x, torch.arange(29), 0.55, 4, SEEDS, size) for size in (29, batch_size))
    assert torch.equal(parts.first, whole.first)
    torch.testing.assert_close(parts.log_probs, whole.log_probs, atol=1e-5, rtol=0)


def test_bytes_are_mixed_as_numbers_from_0_to_1(classifier):
    model, x = classifier((1, 8, 8)), pictures(9)
    model.standardize.fit(x)
    as_bytes = predict_mixed(model, x, torch.arange(9), 0.55, 3, SEEDS, 4)
    as_floats = predict_mixed(model, x.float() / 255, torch.arange(9), 0.55, 3, SEEDS, 4)
    torch.testing.assert_close(as_bytes.log_probs, as_floats.log_probs)
    assert not torch.equal(as_bytes.log_probs[0], predict(model, x[as_bytes.first[:1]], 3, SEEDS).log_probs[0])


def test_files_are_mixed_as_arrays_are(classifier, tmp_path):
    model, x = classifier((1, 8, 8)), pictures(6)
    paths = [tmp_path / f"{row}.png" for row in range(6)]
    for path, picture in zip(paths, x, strict=True):
        Image.fromarray(picture[0].numpy()).save(path)
    files = ImageFiles(paths, lambda picture: picture, (1, 8, 8))
    from_files, from_arrays = (predict_mixed(model, kind, torch.arange(6), 0.55, 2, SEEDS, 4) for kind in (files, x))
    assert torch.equal(from_files.log_probs, from_arrays.log_probs)


def test_one_sample_is_mixed_with_itself(classifier):
    model, x = classifier(gaussian=False), samples(1)
    labels = predict(model, x, 4, SEEDS).labels
    mixed = predict_mixed(model, x, labels, 0.55, 4, SEEDS, 8)
    torch.testing.assert_close(mixed.log_probs, predict(model, x, 4, SEEDS).log_probs)
    assert mixed_accuracy(mixed) == 1.0


def mixed_of(predicted, first, second):
    return Mixed(torch.eye(4)[torch.tensor(predicted)].log(), torch.tensor(first), torch.tensor(second))


def test_both_kinds_of_pairs_count_alike():
    """Four pairs of one class, three of them seen right, and one of two classes, seen wrong: (3/4 + 0) / 2."""
    assert mixed_accuracy(mixed_of([0, 1, 2, 0, 1], [0, 1, 2, 3, 0], [0, 1, 2, 3, 1])) == pytest.approx(3 / 8)


def test_pairs_of_one_kind_stand_alone():
    assert mixed_accuracy(mixed_of([0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 2, 3])) == pytest.approx(3 / 4)
    assert mixed_accuracy(mixed_of([0, 2, 3], [0, 1, 2], [1, 2, 3])) == pytest.approx(1 / 3)


@pytest.mark.parametrize("classes", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_accuracy_agrees_with_skada(skada_metrics, classifier, classes, seed):
    """skada's own scorer on the same pairs: its permutation is handed the partners that were drawn here."""
    model, x = classifier(classes=classes, seed=seed), samples(150, seed)
    pairs = predict_mixed(model, x, torch.arange(150), MIXVAL_SHARE, 1, SEEDS, 64)
    partners = pairs.second[pairs.first.argsort()].numpy()
    labels = predict(model, x, 1, SEEDS).labels
    ours = mixed_accuracy(predict_mixed(model, x, labels, MIXVAL_SHARE, 1, SEEDS, 64))

    class Drawn(np.random.RandomState):
        def permutation(self, count):
            assert count == 150
            return partners

    class Estimator:
        def fit(self, x, y):
            return self

        def predict(self, x, sample_domain=None):
            return predict(model, torch.as_tensor(x).float(), 1, SEEDS).labels.numpy()

        def score(self, x, y, sample_domain=None):
            return np.mean(self.predict(x) == y)

    masked, domain = np.arange(150) % 2 - 1, np.full(150, -2)
    theirs = skada_metrics.MixValScorer(random_state=Drawn(0))(Estimator(), x.numpy(), masked, sample_domain=domain)
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert (ours == 1.0) == (classes == 1)
