"""The rivals of bench/personal_rivals.py that have an environment of their own: Vowpal Wabbit and implicit.

    recommenders.py NAME OPTIONS CASE OUTPUT

reads a case and the side's options (JSON), and writes an array with the predictions for the test ratings at each checkpoint.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
from personal_ratings import CHECKPOINTS, Means, load


def vowpal_wabbit(case, options):
    """Trained in several passes over a shuffled file, then each new rating is learned when it comes, `repeats` times.

    Values are differences from the mean of the training, so that nothing has to be learned to predict it.
    """
    from vowpalwabbit import Workspace

    mean = case.train.values.mean()

    def line(value, user, item):
        return f"{value} |u {user} |i {item}"

    crossed = {"rank": f"-q ui --rank {options['rank']}", "lrq": f"--lrq ui{options['rank']}"}[options["kind"]]
    with tempfile.TemporaryDirectory() as folder:
        data, model = pathlib.Path(folder) / "train", pathlib.Path(folder) / "model"
        order = np.random.default_rng(1).permutation(len(case.train.values))
        train = case.train.select(order)
        columns = zip((train.values - mean).tolist(), train.users.tolist(), train.items.tolist())
        data.write_text("\n".join(line(*row) for row in columns) + "\n")
        # holdout_off: else one rating in ten is left out of the training
        Workspace(
            f"-d {data} --cache_file {data}.cache --passes {options['passes']} -b 18 {crossed} --l2 {options['l2']} "
            f"-l {options['rate']} --decay_learning_rate {options['decay']} --power_t {options['power_t']} "
            f"--holdout_off --random_seed 1 -f {model} --save_resume --quiet"
        ).finish()
        online = Workspace(f"-i {model} -l {options['online_rate']} --power_t {options['power_t']} --quiet")
    result = []
    new = list(zip((case.new.values - mean).tolist(), case.new.users.tolist(), case.new.items.tolist()))
    wanted = [line("", *pair) for pair in zip(case.test.users.tolist(), case.test.items.tolist())]
    learned = 0
    for checkpoint in CHECKPOINTS:
        end = int(np.searchsorted(case.steps, checkpoint))
        for row in new[learned:end]:
            for _ in range(options["repeats"]):
                online.learn(line(*row))
        learned = end
        result.append([mean + online.predict(text) for text in wanted])
    online.finish()
    return np.array(result)


def implicit(case, options):
    """Its ALS is for implicit feedback: an entry is a preference of 1 or 0, with a confidence.

    `of` = "rest": what the means of users and items leave of a rating is the entry; above 0 it is a preference of 1, else of 0,
    with 1 + alpha times its size as confidence. `of` = "rating": a preference of 1 with 1 + alpha times the rating, as its users do.
    A score becomes a rating by adding the means and a factor, which was found on a tenth of the training
    that its model had not seen. Users' factors are computed by recalculate_user() from all ratings so far, at each checkpoint.
    """
    import os

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as it demands
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    means = Means(case.train, case.user_count, case.item_count, options["item_weight"], options["user_weight"])

    def matrix(known):
        if options["of"] == "rest":
            rest = known.values - means.predict(known, known)
            entries = np.sign(rest) * (1 + options["alpha"] * np.abs(rest))
        else:
            entries = 1 + options["alpha"] * known.values
        # The last of several ratings of one item counts.
        pair = known.users.astype(np.int64) * case.item_count + known.items
        _, last = np.unique(pair[::-1], return_index=True)
        chosen = len(pair) - 1 - last
        return csr_matrix(
            (entries[chosen].astype(np.float32), (known.users[chosen], known.items[chosen])), (case.user_count, case.item_count)
        )

    def fit(known):
        model = AlternatingLeastSquares(
            factors=options["factors"], regularization=options["regularization"], alpha=1, iterations=options["iterations"],
            random_state=1, use_gpu=False, num_threads=1,
        )
        model.fit(matrix(known), show_progress=False)
        return model

    def scores(users, model, wanted):
        return np.einsum("ij,ij->i", users[wanted.users], model.item_factors[wanted.items])

    is_seen = np.random.default_rng(1).random(len(case.train.values)) >= 0.1
    seen, unseen = case.train.select(is_seen), case.train.select(~is_seen)
    part = fit(seen)
    of_unseen = scores(part.user_factors, part, unseen)
    rest = unseen.values - means.predict(seen, unseen)
    factor = np.cov(of_unseen, rest)[0, 1] / max(of_unseen.var(), 1e-12)
    center = of_unseen.mean()
    model = fit(case.train)
    watched = np.unique(case.test.users)
    result = []
    for checkpoint in CHECKPOINTS:
        known = case.known_at(checkpoint)
        users = np.array(model.user_factors)
        users[watched] = model.recalculate_user(watched, matrix(known)[watched])
        without = np.bincount(known.users, minlength=case.user_count)[case.test.users] == 0
        of_test = np.where(without, 0, factor * (scores(users, model, case.test) - center))
        result.append(means.predict(known, case.test) + of_test)
    return np.array(result)


def main():
    name, options, path, output = sys.argv[1:]
    predictions = {"vowpal_wabbit": vowpal_wabbit, "implicit": implicit}[name](load(path), json.loads(options))
    np.save(output, predictions)


if __name__ == "__main__":
    main()
