import numpy as np
import pytest
import shift
from working import QUICK

from calida.studies import StudyTask


@pytest.fixture
def task(tmp_path):
    """Blobs in the plane as a task of a study: a run takes a second."""
    (x, y), target, truth = shift.make(rows=120)
    np.savez(tmp_path / "source.npz", x=x.numpy(), y=y.numpy())
    np.savez(tmp_path / "target.npz", x=target.numpy(), y=truth.numpy())
    return StudyTask("blobs", str(tmp_path / "source.npz"), str(tmp_path / "target.npz"), "mlp", settings=QUICK)
