"""Can a classifier tell the two domains apart, and by which features?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from calida.seeds import Seeds
from calida.threads import threads_for

_MOST = 2000  # rows of each domain
_FOLDS = 3
_FEWEST = 40
_TREES = 50


@dataclass(frozen=True)
class DomainGap:
    """How well held-out samples are told apart, and by what.

    `auc` is the chance that a target sample looks more like the target than a source sample does: 0.5 for domains that
    mix, 1 for domains that never meet.
    """

    auc: float
    rows: int  # of the two domains together, as if they were equally many
    scores: Tensor = field(repr=False)  # [T] how much each target sample looks like the target, 0 to 1; nan if not seen
    importance: Tensor = field(repr=False)  # [D] of each feature for telling them apart; they sum to one

    @property
    def separation(self) -> float | None:
        """The area in standard deviations from domains that mix (Mann and Whitney, 1947); None: too few to tell."""
        return (self.auc - 0.5) * math.sqrt(3 * self.rows) if self.rows >= _FEWEST else None

    @property
    def apart(self) -> float:
        """0 for domains that mix, 1 for domains that never meet."""
        return min(max(2 * self.auc - 1, 0.0), 1.0)


def domain_gap(source: Tensor, target: Tensor, seeds: Seeds) -> DomainGap:
    """Trees and a linear classifier, cross-validated on up to 2,000 rows of each domain: [S, D], [T, D].

    A test by nearest neighbors has no power in hundreds of dimensions; a classifier that is trained for it has.
    """
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = [torch.randperm(len(x), generator=seeds.generator(name))[:_MOST] for name, x in
            (("source", source), ("target", target))]  # fmt: skip
    x = torch.cat([source[rows[0]], target[rows[1]]]).float().numpy()
    domain = np.repeat([0, 1], [len(part) for part in rows])
    importance, scores = torch.full((x.shape[1],), 1 / x.shape[1]), torch.full((len(target),), torch.nan)
    folds = min(_FOLDS, *(len(part) for part in rows))
    if folds < 2:
        return DomainGap(0.5, 0, scores, importance)
    number = seeds.integer("domain") % 2**32
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200, class_weight="balanced"))
    trees = ExtraTreesClassifier(_TREES, min_samples_leaf=3, class_weight="balanced", random_state=number)
    said = np.zeros((2, len(x)))
    with threads_for(x.size):
        for fit, held in StratifiedKFold(folds, shuffle=True, random_state=number).split(x, domain):
            for place, model in enumerate((linear, trees)):
                said[place, held] = model.fit(x[fit], domain[fit]).predict_proba(x[held])[:, 1]
    areas = [float(roc_auc_score(domain, row)) for row in said]
    scores[rows[1]] = torch.from_numpy(said[int(np.argmax(areas))][domain == 1]).float()
    importance = torch.from_numpy(trees.feature_importances_).float()
    sizes = [len(part) for part in rows]
    return DomainGap(max(areas), round(4 * sizes[0] * sizes[1] / sum(sizes)), scores, importance)
