"""Folders as users have them that have read the documentation of MLServer, KServe, MLflow or Triton and nothing else: Foliot
serves them as started there, and answers what the library answers in a process of its own.

FOLIOT_FOLDERS is how many there are (default 8)."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import foreign_folders

from conftest import serving
from foliot_tools.seeds import fresh_seed

COUNT = int(os.environ.get("FOLIOT_FOLDERS", 8))
# As in a shell whose virtual environment is active.
ACTIVE = ("env", f"PATH={pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")


def same(found, wanted, what):
    found, wanted = np.ravel(np.array(found)), np.ravel(wanted)
    if wanted.dtype.kind == "f":
        usual = np.median(np.abs(wanted)) if wanted.size else 0
        np.testing.assert_allclose(found.astype(float), wanted, rtol=1e-5, atol=1e-5 * max(1, usual), err_msg=what)
    else:
        assert found.astype(str).tolist() == wanted.astype(str).tolist(), what


@pytest.fixture(scope="module", name="folders")
def made_folders(tmp_path_factory):
    """(list of ForeignFolder, {(name, method): what the library answers})"""
    root = tmp_path_factory.mktemp("foreign")
    made = foreign_folders.make_folders(root, np.random.default_rng(fresh_seed()), COUNT)
    specification, answers = [], {}
    for each in made:
        print(each.form, each.name, each.library, each.kind, f"wrong: {each.reason}" if each.reason else "", flush=True)
        np.save(root / f"{each.name}.npy", each.rows)
        for method in each.methods:
            to = root / f"{each.name}-{method}.npy"
            specification.append({"library": each.library, "file": str(each.file), "class": each.kind, "method": method,
                                  "rows": str(root / f"{each.name}.npy"), "to": str(to)})
            answers[each.name, method] = to
    (root / "specification.json").write_text(json.dumps(specification))
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name("library_answers.py"), root / "specification.json"], check=True)
    return made, {key: np.load(path) for key, path in answers.items()}


def of_form(folders, form):
    chosen = [each for each in folders[0] if each.form == form]
    if not chosen:
        pytest.skip("no folder of this form among so few")
    return chosen


def tensor(name, rows, datatype="FP64"):
    return {"name": name, "datatype": datatype, "shape": list(rows.shape), "data": rows.ravel().tolist()}


def check_wrong(server, each):
    """It says why it is not served, and what its user has to look for is in it. A file that cannot be read names nothing."""
    _, index = server.post("/v2/repository/index", {})
    (reason,) = [model.get("reason", "") for model in index if model["name"] in (each.name, each.folder.name)]
    assert each.reason in reason, (each.name, reason)


def ask_as_mlserver(server, each, answers):
    for methods in ([], *([method] for method in each.methods)):
        request = {"inputs": [tensor("predict", each.rows)], "outputs": [{"name": method} for method in methods]}
        status, answer = server.post(f"/v2/models/{each.name}/infer", request)
        assert status == 200, (each, answer)
        (output,) = answer["outputs"]
        wanted = answers[each.name, (methods or each.methods)[0]]
        assert output["name"] == ((methods or each.methods)[0] if each.library == "sklearn" or methods else "predict")
        assert output["shape"] == [len(each.rows), *(wanted.shape[1:] or (1,))], (each, wanted.shape)
        same(output["data"], wanted, str(each))


def test_folders_of_mlserver(folders, tmp_path):
    """`mlserver start REPOSITORY`"""
    chosen = of_form(folders, "mlserver")
    with serving(chosen[0].folder.parent, tmp_path / "server.log", prefix=ACTIVE) as server:
        for each in chosen:
            if each.reason:
                check_wrong(server, each)
            else:
                ask_as_mlserver(server, each, folders[1])


def test_a_folder_of_mlserver_alone(folders, tmp_path):
    """`mlserver start .`, as its examples have it"""
    chosen = [each for each in of_form(folders, "mlserver") if not each.reason]
    for number, each in enumerate(chosen[:max(1, len(chosen) // 3)]):
        with serving(each.folder, tmp_path / f"server{number}.log", prefix=ACTIVE, cache=tmp_path / "cache") as server:
            ask_as_mlserver(server, each, folders[1])


def test_folders_of_kserve(folders, tmp_path):
    """`python -m sklearnserver --model_dir FOLDER --model_name NAME`, over protocols v1 and v2"""
    for each in of_form(folders, "kserve"):
        with serving(each.folder, tmp_path / f"{each.name}.log", prefix=ACTIVE, model_name="iris", cache=tmp_path / each.name) as server:
            wanted = folders[1][each.name, each.methods[0]]
            if each.classes:
                wanted = np.searchsorted(each.classes, wanted)
            status, answer = server.post("/v1/models/iris:predict", {"instances": each.rows.tolist()})
            assert status == 200, (each, answer)
            same(answer["predictions"], wanted, str(each))
            status, answer = server.post("/v2/models/iris/infer", {"inputs": [tensor("input-0", each.rows, "FP64")]})
            assert status == 200, (each, answer)
            (output,) = answer["outputs"]
            assert (output["name"], output["shape"]) == ("output-0", list(wanted.shape)), each
            same(output["data"], wanted, str(each))


def test_folders_of_mlflow(folders, tmp_path):
    """`mlflow models serve -m FOLDER`"""
    for each in of_form(folders, "mlflow"):
        with serving(each.folder, tmp_path / f"{each.name}.log", prefix=ACTIVE, cache=tmp_path / each.name) as server:
            wanted = folders[1][each.name, each.methods[0]]
            columns = [f"c{i}" for i in range(each.rows.shape[1])]
            for body in {"dataframe_split": {"columns": columns, "data": each.rows.tolist()}}, {"inputs": each.rows.tolist()}:
                has_columns = "columns" in (each.folder / "MLmodel").read_text() or '"name": "c0"' in (each.folder / "MLmodel").read_text()
                if "inputs" in body and has_columns:
                    body = {"inputs": {name: each.rows[:, [i]].tolist() for i, name in enumerate(columns)}}  # noqa: PLW2901
                status, answer = server.post("/invocations", body, {"Content-Type": "application/json"})
                assert status == 200, (each, answer)
                same(answer["predictions"], wanted, str(each))


def test_folders_of_triton(folders, tmp_path):
    """`tritonserver --model-repository=FOLDER`"""
    chosen = of_form(folders, "triton")
    with serving(chosen[0].folder.parent, tmp_path / "server.log") as server:
        for each in chosen:
            if each.reason:
                check_wrong(server, each)
                continue
            request = {"inputs": [tensor("X", each.rows[:8], "FP32")], "outputs": [{"name": "probabilities"}]}
            status, answer = server.post(f"/v2/models/{each.name}/infer", request)
            assert status == 200, (each, answer)
            assert answer["model_version"] == each.file.parent.name
            same(answer["outputs"][0]["data"], folders[1][each.name, "probabilities"][:8], str(each))
