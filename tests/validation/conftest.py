import pytest
import sklearn
import torch

from calida.data import Labeled
from calida.model import Network, Prediction, build_classifier
from calida.seeds import Seeds


@pytest.fixture
def skada_metrics():
    """skada switches metadata routing on for good; here it ends with the test."""
    with sklearn.config_context():
        module = pytest.importorskip("skada.metrics")
        sklearn.set_config(enable_metadata_routing=True)
        yield module


@pytest.fixture
def random_log_probs():
    def make(rows, classes, seed=0, sharpness=2.0):
        generator = torch.Generator().manual_seed(seed)
        return torch.log_softmax(sharpness * torch.randn(rows, classes, generator=generator, dtype=torch.float64), -1)

    return make


@pytest.fixture
def as_prediction():
    def make(log_probs, features):
        nothing = log_probs.new_zeros(len(log_probs))
        return Prediction(log_probs, nothing, nothing, nothing, features)

    return make


@pytest.fixture
def classifier():
    def make(shape=(5,), gaussian=True, classes=3, seed=0):
        return build_classifier(Network(shape, classes, "auto", gaussian), Seeds(seed))

    return make


@pytest.fixture
def labeled():
    generator = torch.Generator().manual_seed(4)
    return Labeled(torch.randn(20, 5, generator=generator), torch.randint(3, (20,), generator=generator))
