import pytest
import torch

from calida.estimation import CalibrationData
from calida.model import Prediction
from calida.validation import DomainPredictions, Mixed


@pytest.fixture
def drawn():
    """Logits and labels drawn from their softmax: at these logits, and at no others, probabilities are right."""

    def draw(rows, classes=4, seed=0, spread=2.0):
        generator = torch.Generator().manual_seed(seed)
        logits = spread * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
        return logits, torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)

    return draw


@pytest.fixture
def as_grounds():
    """CalibrationData of log-probabilities; features of both domains are alike unless given."""

    def make(validation, labels, target, mixed=None, first=None, features=None):
        def prediction(log_probs, values):
            nothing = log_probs.new_zeros(len(log_probs))
            values = log_probs.new_zeros(len(log_probs), 3) if values is None else values
            return Prediction(log_probs, nothing, nothing, nothing, values)

        pairs = target if mixed is None else mixed
        first = pairs.argmax(-1) if first is None else first
        source, other = (None, None) if features is None else features
        predictions = DomainPredictions(
            prediction(validation, source), labels, prediction(target, other), Mixed(pairs, first, first.roll(1))
        )
        return CalibrationData(predictions, Mixed(pairs, first, first.roll(1)))

    return make


@pytest.fixture
def data(drawn, as_grounds):
    """A classifier that is too sure, twofold on source and threefold on mixed pairs, and a little lost on target."""

    def make(validation=300, target=400, seed=0, classes=4):
        source, labels = drawn(validation, classes, seed)
        unlabeled, _ = drawn(target, classes, seed + 1, spread=1.2)
        pairs, first = drawn(target, classes, seed + 2)
        generator = torch.Generator().manual_seed(seed)
        features = [torch.randn(rows, 3, generator=generator) + place for rows, place in ((validation, 0), (target, 1))]
        parts = (torch.log_softmax(part, -1) for part in (2 * source, 2 * unlabeled, 3 * pairs))
        validation, target, mixed = parts
        return as_grounds(validation, labels, target, mixed, first, features)

    return make
