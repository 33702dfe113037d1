"""Rows that try a model, and what its container answers of them: of many scales, at and beside the thresholds of trees, known
and unknown categories, missing, infinite and too large ones. They are the same each time."""

import struct

import numpy as np

from foliot.description import DATATYPES, ModelError

SEED = 57
ORDINARY, SCALED, WHOLE, KNOWN = 320, 128, 96, 128
SPLITS_MAX, SPECIAL_COLUMNS_MAX = 128, 16
SPECIAL = (np.nan, np.inf, -np.inf, 1e39, -1e39, 1e300, np.finfo(np.float32).max, -0.0)


def answers_of(model, inputs, splits):
    """The content of model.onnx.answers. `inputs`: Inputs. `splits`: (feature, threshold) of trees. Raises ModelError."""
    outputs = model.description.outputs
    rows = inputs.fitted(rows_for(inputs.features, model.source, splits))
    batch = inputs.batch(rows)
    fails = np.zeros(len(rows), np.uint8)
    found = {output.name: np.zeros((len(rows), *output.shape), DATATYPES[output.datatype]) for output in outputs}

    def answer(begin, end):
        part = {name: values[begin:end] for name, values in batch.items()}
        for values in part.values():
            values.flags.writeable = False
        try:
            with np.errstate(all="ignore"):
                answers = model.predict(part)
                for name, stored in found.items():
                    np.copyto(stored[begin:end], answers[name], "same_kind")
        except Exception:  # noqa: BLE001: of the library, for rows that it refuses
            if end - begin == 1:
                fails[begin] = 1
                return
            middle = (begin + end) // 2
            answer(begin, middle)
            answer(middle, end)

    for begin in range(0, len(rows), 256):
        answer(begin, min(begin + 256, len(rows)))
    if fails.mean() > 0.9:
        raise ModelError(f"it fails on {int(fails.sum())} of {len(rows)} rows that were tried, which are too many to compare")
    parts = [fails, *(batch[tensor.name] for tensor in inputs.tensors), *found.values()]
    return struct.pack("<I", len(rows)) + b"".join(part.tobytes() for part in parts)


def rows_for(features, source, splits):
    random = np.random.default_rng(SEED)
    known = known_values(source, features)
    encoded = {feature: list(values) for feature, values in encoded_values(source, features).items()}
    for feature, threshold in splits:
        known[feature].append(threshold)
    centre, spread = np.zeros(features), np.ones(features)
    for feature, values in enumerate(known):
        finite = [value for value in values if np.isfinite(value)]
        if finite:
            centre[feature], spread[feature] = np.mean(finite), np.std(finite) + 1e-3 * abs(np.mean(finite)) + 1e-6

    def ordinary(count):
        return centre + spread * random.normal(size=(count, features)) * random.choice([0.3, 1, 3], size=(count, 1))

    parts = [ordinary(ORDINARY),
             random.choice([-1, 1], size=(SCALED, features)) * 10.0 ** random.uniform(-6, 6, size=(SCALED, features)),
             random.integers(-3, 11, size=(WHOLE, features)).astype(float),
             at_known(random, ordinary(KNOWN), known),
             beside_splits(random, ordinary, splits),
             special(ordinary, random.permutation(features)[:SPECIAL_COLUMNS_MAX], known)]
    for rows in parts[:-1]:
        at_categories(random, rows, encoded)
    return np.concatenate(parts)


def at_categories(random, rows, encoded):
    """Nine of ten rows have values in these columns that their encoders know."""
    few = random.random(len(rows)) < 0.9
    for feature, values in encoded.items():
        rows[few, feature] = random.choice(values, int(few.sum()))


def at_known(random, rows, known):
    for feature, values in enumerate(known):
        if values:
            rows[:, feature] = np.where(random.random(len(rows)) < 0.9, random.choice(values, len(rows)), rows[:, feature])
    return rows


def beside_splits(random, ordinary, splits):
    chosen = [splits[i] for i in random.permutation(len(splits))[:SPLITS_MAX]]
    rows = []
    for feature, threshold in chosen:
        narrow = np.float32(threshold)
        for value in (threshold, np.nextafter(threshold, -np.inf), np.nextafter(threshold, np.inf), float(narrow),
                      float(np.nextafter(narrow, np.float32(-np.inf))), float(np.nextafter(narrow, np.float32(np.inf)))):
            row = ordinary(1)
            row[0, feature] = value
            rows.append(row)
    return np.concatenate([ordinary(1), *rows])


def special(ordinary, columns, known):
    rows = []
    for column in columns:
        for value in SPECIAL:
            row = ordinary(1)
            for feature, values in enumerate(known):  # which encoders know
                if values:
                    row[0, feature] = values[0]
            row[0, column] = value
            rows.append(row)
    whole = ordinary(len(SPECIAL))
    whole[:] = np.reshape(SPECIAL, (-1, 1))
    return np.concatenate([*rows, whole])


def known_values(source, features):
    """Of each column what its encoders and scalers have learned, as far as that is found."""
    known = [[] for _ in range(features)]
    for column, values in encoded_values(source, features).items():
        known[column].extend(values)
    for part, columns in learned(source, features):
        for centre, scale in (("mean_", "scale_"), ("center_", "scale_"), ("data_min_", "data_range_")):
            centres, scales = getattr(part, centre, None), getattr(part, scale, None)
            if centres is None or scales is None:
                continue
            for column, middle, width in zip(columns, np.ravel(centres), np.ravel(scales)):
                known[column].extend([float(middle), float(middle + width), float(middle - width)])
    return known


def encoded_values(source, features):
    """{column: its categories}"""
    return {column: [float(value) for value in values if isinstance(value, int | float | np.number)]
            for part, columns in learned(source, features) for column, values in zip(columns, getattr(part, "categories_", ()))}


def learned(source, features):
    """(part of an estimator, the columns of the rows that it gets), of those that get them unchanged."""
    from foliot.adapters import estimator_columns

    found = []

    def visit(part, columns):
        found.append((part, columns))
        for step in estimator_columns.steps_of(part)[:1]:
            visit(step, columns)
        names = [str(name) for name in getattr(part, "feature_names_in_", ())]
        for _, each, chosen in getattr(part, "transformers_", ()):
            if hasattr(each, "get_params"):
                visit(each, [columns[i] for i in estimator_columns.positions(chosen, names, len(columns))])

    if hasattr(source, "get_params"):
        visit(source, list(range(features)))
    return found
