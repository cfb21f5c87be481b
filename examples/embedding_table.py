"""A table of embeddings and scikit-learn habits: fit, predict, uncertainties, and a search without target labels.

    python examples/embedding_table.py

The table is made here: two clouds a class in ten dimensions for the source; for the target they have drifted.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import calida


def make_table(rows: int, drift: float, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    middles = 4 * np.random.default_rng(7).normal(size=(6, 10))
    cloud = rng.integers(0, 6, rows)
    values = middles[cloud] + rng.normal(size=(rows, 10)) + drift * np.linspace(-1, 1, 10)
    names = np.array(["cat", "dog", "owl"])
    return pd.DataFrame(values, columns=[f"feature_{index}" for index in range(10)]), names[cloud % 3]


def main() -> None:
    x, y = make_table(600, drift=0.0, seed=0)
    x_target, truth = make_table(600, drift=6.0, seed=1)  # the truth is only looked at in the last lines

    adapter = calida.CalibratedAdapter(settings={"epochs": 10, "rounds": 5})
    search = GridSearchCV(
        adapter,
        {"settings__diversity": [0.0, 4.0]},
        scoring=calida.label_free_score,  # how well predictions tell the target's classes apart: no label is read
        cv=2,
    )
    search.fit(x, y, X_target=x_target)
    best = search.best_estimator_
    print("chosen without a target label:", search.best_params_)

    uncertainty = pd.DataFrame(best.predict_uncertainty(x_target), index=x_target.index)
    print(uncertainty.assign(label=best.predict(x_target)).sort_values("entropy").tail(3).round(3))

    plain = LogisticRegression(max_iter=1000).fit(x, y).score(x_target, truth)
    print(f"oracle accuracy: logistic regression {plain:.1%}, adapted {best.score(x_target, truth):.1%}")


if __name__ == "__main__":
    main()
