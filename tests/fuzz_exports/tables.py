"""Random models of tables: scikit-learn, XGBoost, LightGBM and CatBoost, with random options, exported by skl2onnx,
onnxmltools and CatBoost itself."""

import os
import tempfile
import warnings

import numpy as np
import onnx

from exports import Case, NotExported

ROWS = 160


class Data:
    def __init__(self, r):
        random = np.random.default_rng(r.getrandbits(32))
        self.features = r.choice([1, 2, 4, 7, 12])
        signal = random.normal(size=(ROWS, self.features))
        if r.random() < 0.3:
            signal = np.round(signal * 2) / 2
        values = signal @ random.normal(size=(self.features, 3)) + 0.3 * random.normal(size=(ROWS, 3))
        self.x = (signal * random.uniform(0.5, 4, self.features) + random.uniform(-2, 2, self.features)).astype(np.float32)
        self.real = values[:, 0].astype(np.float32)
        self.two = (values[:, 0] > 0).astype(np.int64)
        self.several = np.argmax(values, axis=1)
        self.several[:3] = [0, 1, 2]
        self.missing = np.where(random.uniform(size=self.x.shape) < 0.1, np.float32(np.nan), self.x)
        self.positive = np.abs(self.x)
        self.counts = random.poisson(2, ROWS).astype(np.float32) + 1
        self.names = np.array(["ash", "oak", "yew"])[self.several]
        self.numbers = np.array([5, -3, 10])[self.several]
        self.whole = random.integers(0, 4, size=(ROWS, self.features)).astype(np.float32)

    def classes(self, r):
        return r.choice([self.two, self.several, self.several, self.numbers])


def depth(r):
    return {"max_depth": r.choice([None, 1, 3, 6]), "random_state": r.randrange(1000)}


def estimator(r, d):
    """(estimator, rows, targets)"""
    from sklearn import (calibration, cluster, decomposition, discriminant_analysis, ensemble, linear_model, mixture, multiclass,
                         naive_bayes, neighbors, neural_network, svm, tree)  # fmt: skip

    c, s = d.classes(r), r.randrange(1000)
    n = r.choice([1, 3, 10])
    fit = {"max_iter": r.choice([20, 60]), "random_state": s}
    kernel = r.choice(["linear", "poly", "rbf", "sigmoid"])
    few = r.choice([None, 1, min(2, d.features)])
    options = [
        lambda: (linear_model.LogisticRegression(C=r.choice([0.1, 1, 10]), fit_intercept=r.random() < 0.8), d.x, c),
        lambda: (r.choice([linear_model.LinearRegression, linear_model.Ridge, linear_model.Lasso, linear_model.ElasticNet,
                           linear_model.BayesianRidge, linear_model.HuberRegressor, linear_model.ARDRegression,
                           linear_model.Lars, linear_model.LassoLars, linear_model.TheilSenRegressor])(), d.x, d.real),
        lambda: (r.choice([linear_model.PoissonRegressor, linear_model.TweedieRegressor, linear_model.GammaRegressor])(), d.x, d.counts),
        lambda: (r.choice([linear_model.Perceptron, linear_model.RidgeClassifier, svm.LinearSVC])(), d.x, c),
        lambda: (linear_model.SGDClassifier(loss=r.choice(["hinge", "log_loss", "modified_huber", "perceptron"]), random_state=s), d.x, c),
        lambda: (svm.SVC(kernel=kernel, C=r.choice([0.5, 5]), gamma=r.choice(["scale", "auto", 0.3]),
                         decision_function_shape=r.choice(["ovr", "ovo"]), probability=r.random() < 0.4, random_state=s), d.x, c),
        lambda: (r.choice([svm.SVR, svm.NuSVR])(kernel=kernel, gamma="scale"), d.x, d.real),
        lambda: (svm.OneClassSVM(kernel=r.choice(["rbf", "linear"])), d.x, None),
        lambda: (r.choice([tree.DecisionTreeClassifier, tree.ExtraTreeClassifier])(**depth(r)), d.x, c),
        lambda: (r.choice([tree.DecisionTreeRegressor, tree.ExtraTreeRegressor])(**depth(r)), d.x, d.real),
        lambda: (r.choice([ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier])(n_estimators=n, **depth(r)), d.x, c),
        lambda: (r.choice([ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor])(n_estimators=n, **depth(r)), d.x, d.real),
        lambda: (ensemble.GradientBoostingClassifier(n_estimators=n, subsample=r.choice([1.0, 0.7]), random_state=s), d.x, c),
        lambda: (ensemble.GradientBoostingRegressor(n_estimators=n, loss=r.choice(["squared_error", "huber", "quantile"])), d.x, d.real),
        lambda: (ensemble.HistGradientBoostingClassifier(max_iter=n, max_leaf_nodes=r.choice([None, 4, 31])), d.missing, c),
        lambda: (ensemble.HistGradientBoostingRegressor(max_iter=n, loss=r.choice(["squared_error", "absolute_error"])), d.missing, d.real),
        lambda: (ensemble.AdaBoostClassifier(n_estimators=n, random_state=s), d.x, c),
        lambda: (ensemble.AdaBoostRegressor(n_estimators=n, random_state=s), d.x, d.real),
        lambda: (ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=3), n_estimators=n, random_state=s), d.x, c),
        lambda: (ensemble.BaggingRegressor(linear_model.Ridge(), n_estimators=n, random_state=s), d.x, d.real),
        lambda: (ensemble.IsolationForest(n_estimators=n, random_state=s), d.x, None),
        lambda: (ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=2))],
                                           voting=r.choice(["soft", "hard"])), d.x, d.several),
        lambda: (ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=2))]), d.x, d.real),
        lambda: (neighbors.KNeighborsClassifier(r.choice([1, 3, 5]), weights=r.choice(["uniform", "distance"]), p=r.choice([1, 2])), d.x, c),
        lambda: (neighbors.KNeighborsRegressor(r.choice([1, 4]), weights=r.choice(["uniform", "distance"])), d.x, d.real),
        lambda: (naive_bayes.GaussianNB(), d.x, c),
        lambda: (r.choice([naive_bayes.BernoulliNB, naive_bayes.MultinomialNB, naive_bayes.ComplementNB])(), d.positive, c),
        lambda: (neural_network.MLPClassifier((r.choice([3, 16]),) * r.choice([1, 2]), activation=r.choice(["relu", "tanh", "logistic", "identity"]),
                                              **fit), d.x, c),
        lambda: (neural_network.MLPRegressor((8,), activation=r.choice(["relu", "tanh", "logistic"]), **fit), d.x, d.real),
        lambda: (r.choice([discriminant_analysis.LinearDiscriminantAnalysis, discriminant_analysis.QuadraticDiscriminantAnalysis])(), d.x, c),
        lambda: (r.choice([cluster.KMeans, cluster.MiniBatchKMeans])(r.choice([2, 4]), n_init=1, random_state=s), d.x, None),
        lambda: (mixture.GaussianMixture(2, covariance_type=r.choice(["full", "tied", "diag", "spherical"]), random_state=s), d.x, None),
        lambda: (mixture.BayesianGaussianMixture(n_components=2, random_state=s), d.x, None),
        lambda: (r.choice([decomposition.PCA, decomposition.FastICA, decomposition.IncrementalPCA])(few, whiten=True) if few else
                 decomposition.PCA(), d.x, None),
        lambda: (multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), d.x, d.several),
        lambda: (multiclass.OneVsOneClassifier(linear_model.LogisticRegression()), d.x, d.several),
        lambda: (calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), method=r.choice(["sigmoid", "isotonic"]), cv=2), d.x, d.several),
        lambda: (linear_model.QuantileRegressor(quantile=0.3, alpha=0), d.x, d.real),
        lambda: (linear_model.RANSACRegressor(random_state=s), d.x, d.real),
    ]  # fmt: skip
    return r.choice(options)()


def steps_before(r, d, rows):
    from sklearn import feature_selection, impute, preprocessing

    if rows is d.missing:
        return [impute.SimpleImputer(strategy=r.choice(["mean", "median"]))] if r.random() < 0.2 else []
    if rows is d.positive or r.random() < 0.5:
        return []
    return [r.choice([
        preprocessing.StandardScaler(with_mean=r.random() < 0.7), preprocessing.MinMaxScaler(clip=r.random() < 0.5), preprocessing.MaxAbsScaler(),
        preprocessing.RobustScaler(), preprocessing.Normalizer(norm=r.choice(["l1", "l2", "max"])), preprocessing.Binarizer(threshold=0.2),
        preprocessing.PolynomialFeatures(2, include_bias=r.random() < 0.5, interaction_only=r.random() < 0.3),
        preprocessing.PowerTransformer(), preprocessing.KBinsDiscretizer(3, encode=r.choice(["onehot-dense", "ordinal"]), quantile_method="averaged_inverted_cdf"),
        feature_selection.VarianceThreshold(), feature_selection.SelectKBest(k=1)])]  # fmt: skip


def scikit(r, d):
    import sklearn
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.pipeline import make_pipeline

    model, rows, targets = estimator(r, d)
    name = type(model).__name__
    steps = steps_before(r, d, rows)
    if "Distribution" in str(steps):
        steps = []
    pipeline = make_pipeline(*steps, model) if steps else model
    if "SelectKBest" in str(steps) and targets is None:
        pipeline = model
    pipeline.fit(rows, targets) if targets is not None else pipeline.fit(rows)
    double = r.random() < 0.2
    options = None
    if sklearn.base.is_classifier(model):
        options = {id(pipeline): {"zipmap": r.choice([True, False, False])}}
    kind = DoubleTensorType if double else FloatTensorType
    exported = to_onnx(pipeline, initial_types=[("x", kind([None, rows.shape[1]]))], options=options,
                       target_opset={"": r.choice([12, 15, 17, 18, 20, 21]), "ai.onnx.ml": r.choice([1, 2, 3])})  # fmt: skip
    return f"scikit-learn {name} {'double' if double else ''} after {[type(s).__name__ for s in steps]}", exported, pipeline, rows.astype(np.float64) if double else rows


def columns(types, rows):
    return [("x", types.FloatTensorType([None, rows.shape[1]]))]


def xgboost(r, d):
    from onnxmltools.convert import convert_xgboost
    from onnxmltools.convert.common import data_types
    from xgboost import XGBClassifier, XGBRegressor

    options = {"n_estimators": r.choice([1, 5, 20]), "max_depth": r.choice([1, 3, 6, 0]), "learning_rate": r.choice([0.1, 0.5, 1]),
               "tree_method": "hist", "grow_policy": r.choice(["depthwise", "lossguide"]), "num_parallel_tree": r.choice([1, 1, 2]),
               "random_state": r.randrange(100), "subsample": r.choice([1, 0.7]), "reg_lambda": r.choice([0, 1]), "max_leaves": r.choice([0, 5]),
               "n_jobs": 1}  # fmt: skip
    rows = r.choice([d.x, d.missing])
    if r.random() < 0.3:
        options["base_score"] = 0.3
    if r.random() < 0.5:
        model = XGBRegressor(objective=r.choice(["reg:squarederror", "count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror",
                                                 "reg:pseudohubererror", "reg:squaredlogerror"]), **options)  # fmt: skip
        targets = d.counts
    else:
        model, targets = XGBClassifier(**options), r.choice([d.two, d.several])
        if targets is d.several:
            options.pop("base_score", None)
            model = XGBClassifier(**options)
    model.fit(rows, targets)
    exported = convert_xgboost(model, initial_types=columns(data_types, rows), target_opset=r.choice([12, 15]))
    return f"xgboost {type(model).__name__} {getattr(model, 'objective', '')}", exported, model, rows


def lightgbm(r, d):
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools.convert import convert_lightgbm
    from onnxmltools.convert.common import data_types

    options = {"n_estimators": r.choice([1, 5, 20]), "num_leaves": r.choice([2, 7, 31]), "boosting_type": r.choice(["gbdt", "gbdt", "dart", "rf"]),
               "min_child_samples": r.choice([2, 20]), "max_depth": r.choice([-1, 3]), "random_state": r.randrange(100), "verbose": -1,
               "zero_as_missing": r.random() < 0.15, "use_missing": r.random() < 0.9, "n_jobs": 1}  # fmt: skip
    if options["boosting_type"] == "rf":
        options.update(subsample=0.7, subsample_freq=1)
    rows, categories = r.choice([d.x, d.missing]), "auto"
    if r.random() < 0.3:
        rows, categories = d.whole, [0]
    if r.random() < 0.5:
        model = LGBMRegressor(objective=r.choice(["regression", "regression_l1", "huber", "poisson", "quantile", "mape", "gamma", "tweedie", "fair"]),
                              **options)
        targets = d.counts
    else:
        targets = r.choice([d.two, d.several])
        objective = r.choice([None, "multiclassova"]) if targets is d.several else None
        model = LGBMClassifier(objective=objective, **options)
    model.fit(rows, targets, categorical_feature=categories)
    exported = convert_lightgbm(model, initial_types=columns(data_types, rows), zipmap=r.random() < 0.5, target_opset=r.choice([12, 15]))
    return f"lightgbm {type(model).__name__} {model.objective} {options['boosting_type']} {categories}", exported, model, rows


def catboost(r, d):
    from catboost import CatBoostClassifier, CatBoostRegressor

    options = {"iterations": r.choice([1, 5, 20]), "depth": r.choice([1, 3, 6]), "verbose": False, "allow_writing_files": False,
               "random_seed": r.randrange(100), "thread_count": 1, "boost_from_average": False}  # fmt: skip
    if r.random() < 0.5:
        model = CatBoostRegressor(loss_function=r.choice(["RMSE", "MAE", "Quantile"]), **options)
        targets = d.real
    else:
        targets = r.choice([d.two, d.several])
        if targets is d.several:
            options.pop("boost_from_average")
        model = CatBoostClassifier(**options)
    model.fit(d.x, targets)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        model.save_model(path, format="onnx")
        exported = onnx.load(path)
    return f"catboost {type(model).__name__}", exported, model, d.x


def make(r, framework):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            name, model, trained, rows = {"scikit-learn": scikit, "xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost}[framework](r, Data(r))
        except Exception as error:  # what a trainer or a converter does not do is of many types
            raise NotExported(f"{framework}: {type(error).__name__} {str(error)[:100]}") from error

    def answers(values):
        """By the framework; None where an output of the file has no counterpart."""
        given = next(iter(values.values()))
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for output in model.graph.output:
                called = output.name.lower()
                if "label" in called or (called.startswith("variable") and not hasattr(trained, "predict_proba")) or called in ("predictions",):
                    found.append(np.asarray(trained.predict(given)))
                elif "probabilit" in called and hasattr(trained, "predict_proba"):
                    found.append(np.asarray(trained.predict_proba(given)))
                else:
                    found.append(None)
        return found

    chosen = np.random.default_rng(r.getrandbits(32)).permutation(len(rows))[:18]
    return Case(name, model, {model.graph.input[0].name: np.ascontiguousarray(rows[chosen])}, answers, True)
