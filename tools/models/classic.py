"""Classic machine-learning models: trained by scikit-learn, XGBoost and LightGBM on small
generated data and exported with the converters' default options.

Needs python/requirements-classic.txt beside the other packages.
"""

import dataclasses
import warnings

import numpy as np
import onnx

FEATURES = 12
ROWS = 600


@dataclasses.dataclass
class ClassicModel:
    """What was exported, with rows to ask it."""

    name: str
    model: onnx.ModelProto
    rows: np.ndarray


class Data:
    """Rows with features of different scales, and targets that depend on them."""

    def __init__(self, seed=0):
        random = np.random.default_rng(seed)
        signal = random.normal(size=(2 * ROWS, FEATURES))
        values = signal @ random.normal(size=(FEATURES, 3)) + np.sin(2 * signal[:, :3])
        self.x = (signal * random.uniform(0.5, 4, FEATURES) + random.uniform(-2, 2, FEATURES)).astype(np.float32)
        self.real = values[:, 0].astype(np.float32)
        self.two = (values[:, 0] > 0).astype(np.int64)
        self.three = np.argmax(values, axis=1)
        self.names = np.array(["setosa", "versicolor", "virginica"])[self.three]
        self.missing = np.where(random.uniform(size=self.x.shape) < 0.1, np.float32(np.nan), self.x)
        self.whole = random.integers(0, 5, size=(2 * ROWS, 4)).astype(np.int64)
        self.counted = (self.whole.sum(axis=1) > 8).astype(np.int64)
        self.positive = np.abs(self.x)


def _scikit(estimator, data, x="x", y="three"):
    from skl2onnx import to_onnx

    rows, targets = getattr(data, x), getattr(data, y)
    estimator.fit(rows[:ROWS], targets[:ROWS]) if y else estimator.fit(rows[:ROWS])
    return to_onnx(estimator, rows[:1]), rows[ROWS:]


def _xgboost(estimator, data, x="x", y="three"):
    from onnxmltools.convert import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    rows, targets = getattr(data, x), getattr(data, y)
    estimator.fit(rows[:ROWS], targets[:ROWS])
    return convert_xgboost(estimator, initial_types=[("x", FloatTensorType([None, rows.shape[1]]))]), rows[ROWS:]


def _lightgbm(estimator, data, x="x", y="three"):
    from onnxmltools.convert import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    rows, targets = getattr(data, x), getattr(data, y)
    estimator.fit(rows[:ROWS], targets[:ROWS])
    return convert_lightgbm(estimator, initial_types=[("x", FloatTensorType([None, rows.shape[1]]))]), rows[ROWS:]


def _recipes():
    """Name -> what trains and exports it."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from sklearn.decomposition import PCA
    from sklearn.ensemble import (AdaBoostClassifier, ExtraTreesRegressor, GradientBoostingClassifier,
                                  GradientBoostingRegressor, HistGradientBoostingClassifier,
                                  HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor)
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, SVR, LinearSVC
    from sklearn.tree import DecisionTreeClassifier
    from xgboost import XGBClassifier, XGBRegressor

    few = {"n_estimators": 50, "random_state": 0}
    return {
        "logistic_regression_binary": lambda d: _scikit(LogisticRegression(), d, y="two"),
        "logistic_regression_names": lambda d: _scikit(LogisticRegression(max_iter=1000), d, y="names"),
        "linear_regression": lambda d: _scikit(make_pipeline(PCA(6), LinearRegression()), d, y="real"),
        "linear_svc": lambda d: _scikit(LinearSVC(), d),
        "svc_probability": lambda d: _scikit(SVC(probability=True, random_state=0), d),
        "svr": lambda d: _scikit(make_pipeline(StandardScaler(), SVR()), d, y="real"),
        "decision_tree": lambda d: _scikit(DecisionTreeClassifier(random_state=0), d),
        "random_forest_classifier": lambda d: _scikit(RandomForestClassifier(**few), d),
        "random_forest_regressor": lambda d: _scikit(RandomForestRegressor(**few), d, y="real"),
        "extra_trees_regressor": lambda d: _scikit(ExtraTreesRegressor(**few), d, y="real"),
        "gradient_boosting_classifier": lambda d: _scikit(GradientBoostingClassifier(**few), d),
        "gradient_boosting_regressor": lambda d: _scikit(GradientBoostingRegressor(**few), d, y="real"),
        "hist_gradient_boosting_classifier": lambda d: _scikit(HistGradientBoostingClassifier(max_iter=50), d, "missing"),
        "hist_gradient_boosting_regressor": lambda d: _scikit(HistGradientBoostingRegressor(max_iter=50), d, "missing",
                                                              "real"),
        "ada_boost": lambda d: _scikit(AdaBoostClassifier(**few), d),
        "k_neighbors": lambda d: _scikit(KNeighborsClassifier(), d),
        "gaussian_nb": lambda d: _scikit(GaussianNB(), d),
        "mlp": lambda d: _scikit(make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=100, random_state=0)), d),
        "imputed_normalized": lambda d: _scikit(make_pipeline(SimpleImputer(), Normalizer(), LogisticRegression()), d,
                                                "missing", "two"),
        "one_hot": lambda d: _scikit(make_pipeline(OneHotEncoder(), LogisticRegression()), d, "whole",
                                               "counted"),
        "binarized": lambda d: _scikit(make_pipeline(Binarizer(threshold=0.5), LogisticRegression()), d),
        "xgboost_classifier": lambda d: _xgboost(XGBClassifier(**few), d, "missing"),
        "xgboost_regressor": lambda d: _xgboost(XGBRegressor(**few), d, "missing", "real"),
        "lightgbm_classifier": lambda d: _lightgbm(LGBMClassifier(verbose=-1, **few), d, "missing"),
        "lightgbm_regressor": lambda d: _lightgbm(LGBMRegressor(verbose=-1, **few), d, "missing", "real"),
    }


def build_all(names=()):
    """The models one after the other, or those named."""
    recipes, data = _recipes(), Data()
    for name in names or recipes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, rows = recipes[name](data)
        yield ClassicModel(name, model, rows)


def large_ensembles(trees):
    """So many trees over 100 features, for measuring: boosted ones of depth 6, with missing values
    in the rows of the second, and a forest of depth 10. Each gives one real number."""
    from sklearn.ensemble import RandomForestRegressor
    from xgboost import XGBRegressor

    random = np.random.default_rng(0)
    data = Data()
    data.x = random.normal(size=(4000, 100)).astype(np.float32)
    data.missing = np.where(random.uniform(size=data.x.shape) < 0.01, np.float32(np.nan), data.x)
    data.real = ((data.x[:, :10] ** 2).sum(axis=1) + random.normal(size=4000)).astype(np.float32)
    boosted = XGBRegressor(n_estimators=trees, max_depth=6, random_state=0)
    forest = RandomForestRegressor(trees, max_depth=10, max_features=0.3, random_state=0)
    for name, (model, rows) in {
        "boosted": _xgboost(boosted, data, y="real"),
        "boosted, values missing": _xgboost(boosted, data, "missing", "real"),
        "forest": _scikit(forest, data, y="real"),
    }.items():
        yield ClassicModel(name, model, rows)
