"""Pipelines of scikit-learn over tables with columns of texts and numbers, chosen at random from a seed."""

import dataclasses

import numpy as np
import pandas
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (ExtraTreesClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier,
                              RandomForestClassifier, VotingClassifier)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, RobustScaler,
                                   StandardScaler, TargetEncoder)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

ROWS = 300
TOWNS = ("Bern", "Thun", "Biel", "Chur", "Genève", "Zürich")
COLOURS = ("red", "green", "blue", "dark grey")
WORDS = ("late", "broken", "refund", "great", "fast", "cheap", "häßlich", "delivery", "colour", "size", "again", "never")


@dataclasses.dataclass
class Case:
    name: str
    estimator: object
    table: pandas.DataFrame  # rows to ask for
    shape: str  # what is in the pipeline, for people

    @property
    def is_text(self):
        """Whether it takes a list of texts in place of a table."""
        return list(self.table.columns) == ["comment"]


def make_table(random, *, missing):
    table = pandas.DataFrame({
        "town": random.choice(TOWNS, ROWS), "colour": random.choice(COLOURS, ROWS), "age": random.integers(18, 90, ROWS),
        "income": random.lognormal(10, 1, ROWS), "score": random.normal(size=ROWS),
        "comment": [" ".join(random.choice(WORDS, random.integers(1, 9))) for _ in range(ROWS)]})
    if missing:
        table["age"] = table["age"].astype(float)
        table.loc[random.random(ROWS) < 0.1, "age"] = np.nan
        table.loc[random.random(ROWS) < 0.1, "score"] = np.nan
    return table


def labels_of(random, table, kind):
    value = ((table["town"] == "Bern") * 1.0 + table["comment"].str.contains("refund") * 1.0 + table["score"].fillna(0)
             + random.normal(size=ROWS) / 4).to_numpy()
    if kind == "value":
        return value
    if kind == "names":
        return np.where(value > 1, "gold", np.where(value > 0, "silver", "lead"))
    return (value > 0.5).astype(int)


def numbers_step(random, missing):
    steps = []
    if missing:
        steps.append(("impute", [SimpleImputer(strategy="median"), SimpleImputer(add_indicator=True), KNNImputer()][
            random.integers(3)]))
    steps.append(("scale", [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(),
                            KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")][random.integers(5)]))
    return Pipeline(steps) if len(steps) > 1 or random.integers(2) else steps[0][1]


def categories_step(random):
    return [OneHotEncoder(), OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(drop="first", sparse_output=False),
            OrdinalEncoder(), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            Pipeline([("impute", SimpleImputer(strategy="most_frequent")), ("encode", OneHotEncoder())]),
            TargetEncoder(random_state=1)][random.integers(7)]


def text_step(random):
    return [TfidfVectorizer(), CountVectorizer(), TfidfVectorizer(ngram_range=(1, 2), max_features=40),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)), HashingVectorizer(n_features=64),
            FeatureUnion([("words", CountVectorizer(binary=True)), ("letters", TfidfVectorizer(analyzer="char"))])][
        random.integers(6)]


def last_step(random, kind):
    if kind == "value":
        return Ridge()
    return [LogisticRegression(max_iter=300), RandomForestClassifier(20, random_state=1), DecisionTreeClassifier(max_depth=4),
            GradientBoostingClassifier(n_estimators=10, random_state=1), ExtraTreesClassifier(10, random_state=1),
            SGDClassifier(loss="log_loss", random_state=1), KNeighborsClassifier(),
            SVC(), MLPClassifier((8,), max_iter=60, random_state=1),
            CalibratedClassifierCV(LogisticRegression(max_iter=300), cv=2),
            VotingClassifier([("a", LogisticRegression(max_iter=300)), ("b", DecisionTreeClassifier(max_depth=3))], voting="soft"),
            ][random.integers(11)]


def make_cases(seed, count=25):
    """A list of Case, fitted; the first ones are forms that random choices would hardly meet."""
    random = np.random.default_rng(seed)
    cases = []
    for number in range(count):
        missing = bool(random.integers(2))
        table = make_table(random, missing=missing)
        kind = ("labels", "names", "labels", "value")[random.integers(4)]
        target = labels_of(random, table, kind)
        if number == 0:  # texts alone
            estimator, table, target = Pipeline([("text", TfidfVectorizer()), ("last", MultinomialNB())]), table[["comment"]], \
                labels_of(random, table, "names")
            estimator.fit(table["comment"], target)
        elif number == 1:  # columns chosen by their types, and a search around the pipeline
            columns = ColumnTransformer([("texts", OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
                                         ("numbers", SimpleImputer(), make_column_selector(dtype_include="number"))])
            target = labels_of(random, table, "labels")
            estimator = GridSearchCV(Pipeline([("columns", columns), ("best", SelectKBest(k=5)),
                                               ("last", LogisticRegression(max_iter=300))]), {"last__C": [0.1, 1]}, cv=2)
            estimator.fit(table, target)
        else:
            parts = [("towns", categories_step(random), ["town", "colour"]),
                     ("numbers", numbers_step(random, missing), ["age", "income", "score"])]
            if random.integers(2):
                parts.append(("comment", text_step(random), "comment"))
            else:
                table = table.drop(columns="comment")
            columns = ColumnTransformer(parts, remainder=("drop", "passthrough")[int(not missing) * random.integers(2)],
                                        sparse_threshold=0)
            estimator = Pipeline([("columns", columns), ("last", last_step(random, kind))])
            estimator.fit(table, target)
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        middle = estimator.steps[0][1] if isinstance(estimator, Pipeline) else "search"
        inner = [step for _, step, _ in getattr(middle, "transformers", ())] or [middle]
        shape = " + ".join("/".join(type(each).__name__ for _, each in step.steps) if isinstance(step, Pipeline)
                           else type(step).__name__ for step in inner) + f" > {type(last).__name__}"
        cases.append(Case(f"p{number:02}", estimator, table.iloc[:40], shape))
    return cases
