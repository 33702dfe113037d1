"""The columns of the table that an estimator of scikit-learn was fitted on: which of them are texts, and for each a value that
it knows. Encoders and imputers keep what they have learned of a column, in attributes that scikit-learn documents."""

import dataclasses

CATEGORIES = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")
VECTORIZERS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
# Each column of their output is made of the one at its place.
KEEP_COLUMNS = ("SimpleImputer", "KNNImputer", "IterativeImputer", "StandardScaler", "MinMaxScaler", "RobustScaler",
                "MaxAbsScaler")
FLOAT32_MAX = 3.4028234663852886e38
SHOWN, VALUE_SHOWN = 6, 40  # of categories, and of the characters of each, in errors
WRAPPED = ("best_estimator_", "regressor_", "estimator_", "estimator")


@dataclasses.dataclass
class Column:
    name: str = ""
    is_text: bool = False
    example: object = None  # None: not known
    is_list: bool = False  # the whole table is this one column, passed as a list of texts
    known: list | None = None  # the only values that its encoder takes


def columns_of(estimator):
    """A list of Column, or None if it is not known how many there are."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if is_vectorizer(first_step(estimator)):
        return [Column(is_text=True, example=word_of(first_step(estimator)), is_list=True)]
    count = len(names) or getattr(estimator, "n_features_in_", None)
    if count is None:
        return None
    columns = [Column(name) for name in names] or [Column() for _ in range(int(count))]
    visit(estimator, columns, names)
    return columns


def first_step(estimator):
    """What gets the table first."""
    while True:
        inner = steps_of(estimator)[:1] or [wrapped(estimator)]
        if inner[0] is None:
            return estimator
        estimator = inner[0]


def last_step(estimator):
    """What predicts at last."""
    while steps_of(estimator):
        estimator = steps_of(estimator)[-1]
    return estimator


def chooses_by_name(estimator):
    """Whether some transformer in it chooses columns by their names, so that it must get a table that has them."""
    if any(names_a_column(chosen) for _, _, chosen in getattr(estimator, "transformers_", ())):
        return True
    inner = [*steps_of(estimator), *(each for _, each in getattr(estimator, "transformer_list", ())), wrapped(estimator)]
    return any(chooses_by_name(each) for each in inner if hasattr(each, "get_params"))


def names_a_column(chosen):
    each = [chosen.start, chosen.stop] if isinstance(chosen, slice) else listed(chosen)
    return any(isinstance(one, str) for one in each)


def steps_of(estimator):
    steps = getattr(estimator, "steps", None)
    if not isinstance(steps, list):
        return []
    return [step for _, step in steps if step is not None and not isinstance(step, str)]


def wrapped(estimator):
    """The fitted estimator that another one, such as a search over its parameters, passes its table to."""
    for name in WRAPPED:
        inner = getattr(estimator, name, None)
        if hasattr(inner, "get_params"):
            return inner
    calibrated = getattr(estimator, "calibrated_classifiers_", None)
    if calibrated:
        return calibrated[0].estimator
    several = getattr(estimator, "estimators_", None)
    several = several if isinstance(several, list) else []  # of voting and stacking, not the trees of a forest
    return several[0] if several and steps_of(several[0]) else None


def visit(estimator, columns, names):
    """Notes at `columns`, which the estimator gets, what it has learned of them. `names`: of the whole table, for those that
    choose columns."""
    kind = type(estimator).__name__
    steps = steps_of(estimator)
    if steps:
        for step in steps:
            visit(step, columns, names)
            if type(step).__name__ not in KEEP_COLUMNS or getattr(step, "add_indicator", False):
                return
    elif hasattr(estimator, "transformers_"):
        for _, transformer, chosen in estimator.transformers_:
            if hasattr(transformer, "get_params"):
                visit(transformer, [columns[i] for i in positions(chosen, names, len(columns))], names)
    elif hasattr(estimator, "transformer_list"):
        for _, transformer in estimator.transformer_list:
            if hasattr(transformer, "get_params"):
                visit(transformer, columns, names)
    elif kind in CATEGORIES:
        for column, categories in zip(columns, estimator.categories_):
            note(column, categories)
            if getattr(estimator, "handle_unknown", "") == "error":
                column.known = list(categories)
    elif kind == "SimpleImputer":
        for column, value in zip(columns, estimator.statistics_):
            note(column, [value])
    elif is_vectorizer(estimator):
        for column in columns:
            column.is_text, column.example = True, word_of(estimator)
    elif wrapped(estimator) is not None:
        visit(wrapped(estimator), columns, names)


def note(column, values):
    known = [value for value in values if value is not None and value == value]  # noqa: PLR0124: without NaN
    if not known:
        return
    column.is_text = column.is_text or isinstance(known[0], str)
    if column.example is None:
        column.example = str(known[0]) if column.is_text else float(known[0])


def with_unknown(error, columns):
    """The exception of a row, behind which stand the values that an encoder does not know, or a float32 cannot hold, with their
    columns. `columns`: {what it is called: (its Column, its values)}."""
    found = []
    for name, (column, values) in columns.items():
        known = None if column.known is None else [plain(each) for each in column.known]
        unknown = [] if known is None else [each for each in map(plain, values) if each == each and each not in known]  # noqa: PLR0124
        if unknown:
            shown = ", ".join(shortened(each) for each in known[:SHOWN])
            found.append(f"{name} has {shortened(unknown[0])}, which is none of {shown}{', ...' if len(known) > SHOWN else ''}")
        beyond = [each for each in map(plain, values) if isinstance(each, float) and abs(each) > FLOAT32_MAX]
        if beyond and "float32" in str(error):
            found.append(f"{name} has {beyond[0]!r}, which is beyond {FLOAT32_MAX:.6g}")
    return ValueError(f"{error}; {'; '.join(found)}") if found else error


def plain(value):
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    return value.item() if hasattr(value, "item") else value


def shortened(value):
    text = repr(value)
    return text if len(text) <= VALUE_SHOWN else text[:VALUE_SHOWN] + "..."


def positions(chosen, names, count):
    """Of what a ColumnTransformer has for a transformer: names, numbers, a slice, or a list of whether."""
    if isinstance(chosen, str):
        return [names.index(chosen)]
    if isinstance(chosen, slice):
        begin, end = (names.index(each) if isinstance(each, str) else each for each in (chosen.start, chosen.stop))
        named = isinstance(chosen.stop, str)  # which is inclusive
        return list(range(count))[begin:end + 1 if named else end:chosen.step]
    each_chosen = listed(chosen)
    if each_chosen and all(isinstance(each, bool) for each in each_chosen):
        return [i for i, is_chosen in enumerate(each_chosen) if is_chosen]
    return [names.index(each) if isinstance(each, str) else range(count)[each] for each in each_chosen]


def listed(chosen):
    import numpy as np  # here, so that a missing numpy can be reported as an error like any other

    elements = np.atleast_1d(np.asarray(chosen, object)).tolist()
    return [bool(each) if isinstance(each, np.bool_) else each for each in elements]


def is_vectorizer(estimator):
    return type(estimator).__name__ in VECTORIZERS


def word_of(vectorizer):
    return str(next(iter(getattr(vectorizer, "vocabulary_", None) or ["text"])))
