"""The encoders of a table in scikit-learn's own tools."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from people import people
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import calida
from calida.data import ColumnChoice, TablePreparation, as_frame

SOURCE, TARGET = people(160, 1), people(120, 2, 3.0)
STATE, TRUTH = SOURCE.pop("state"), TARGET.pop("state")


@parametrize_with_checks([calida.TableEncoder(), calida.TableEncoder(leave_out=False)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_it_is_the_preparation_of_a_table(library):
    source, target = (one if library == "pandas" else pl.from_pandas(one) for one in (SOURCE, TARGET))
    table = TablePreparation.fit(as_frame(SOURCE, "X"), STATE.tolist(), ColumnChoice(), "X")
    encoder = calida.TableEncoder().fit(source, STATE)
    assert encoder.table_ == table
    assert np.array_equal(encoder.transform(target), table.apply(as_frame(TARGET, "X"), "X").numpy())
    named = calida.TableEncoder().set_output(transform=library).fit(source, STATE).transform(target)
    assert list(named.columns) == list(encoder.get_feature_names_out()) == list(table.features)


def test_columns_that_are_asked_for():
    assert calida.TableEncoder(columns=["age", "code"]).fit(SOURCE, STATE).table_.columns == ("age", "code")
    assert "code" in calida.TableEncoder().fit(SOURCE).table_.columns  # without labels nothing gives them away
    kept = calida.TableEncoder(drop=["note"], leave_out=False).fit(SOURCE, STATE).table_.columns
    assert kept == ("patient", "age", "city", "smokes", "seen", "site", "code")


def test_any_classifier_can_follow():
    pipeline = make_pipeline(calida.TableEncoder(), HistGradientBoostingClassifier()).fit(SOURCE, STATE)
    assert pipeline.score(TARGET, TRUTH) > 0.8


def test_arrays_of_objects_are_tables_too():
    mixed = np.array([[1, "a", None], [2.5, "b", True], [None, "a", False], [4, "b", True]], dtype=object)
    encoded = calida.TableEncoder().fit_transform(mixed)
    share = pytest.approx(2 / 3)
    expected = [[1, 0, 1, 0, share, 1], [2.5, 0, 0, 1, 1, 0], [2.5, 1, 1, 0, 0, 0], [4, 0, 0, 1, 1, 0]]
    assert encoded.tolist() == expected
    assert np.array_equal(calida.TableEncoder().fit_transform(pd.DataFrame(mixed)), encoded)
