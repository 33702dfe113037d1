"""Solves one integer program with HiGHS: JSON from the standard input, JSON to the standard output.

    {"seconds": 1.0, "columns": [[cost, most], ...],
     "rows": [{"least": null, "most": 8, "terms": [[column, factor], ...]}, ...]}

Columns are integers from 0 to `most`; a bound that is null is infinite. The answer has `status`
("optimal", "infeasible", "feasible" where the time was over, or another of HiGHS' own), `values`
by column where there are any, and the `seconds` that HiGHS took.
"""

import json
import os
import sys
import time

import highspy
import numpy as np


def solve(program):
    columns, rows = program["columns"], program["rows"]
    if not columns:  # HiGHS calls such a model empty, whatever its rows are
        kept = all((row["least"] or 0) <= 0 and (row["most"] is None or row["most"] >= 0) for row in rows)
        return {"status": "optimal" if kept else "infeasible", "values": [], "seconds": 0.0}
    solver = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "time_limit": program["seconds"],
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.999,  # costs are integers
    }.items():
        solver.setOptionValue(option, value)
    infinity = solver.getInfinity()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(columns), len(rows)
    model.col_cost_ = np.array([column[0] for column in columns], dtype=float)
    model.col_lower_ = np.zeros(len(columns))
    model.col_upper_ = np.array([column[1] for column in columns], dtype=float)
    model.row_lower_ = np.array([-infinity if row["least"] is None else row["least"] for row in rows], dtype=float)
    model.row_upper_ = np.array([infinity if row["most"] is None else row["most"] for row in rows], dtype=float)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0] + [len(row["terms"]) for row in rows]).astype(np.int32)
    model.a_matrix_.index_ = np.array([term[0] for row in rows for term in row["terms"]], dtype=np.int32)
    model.a_matrix_.value_ = np.array([term[1] for row in rows for term in row["terms"]], dtype=float)
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(columns)
    solver.passModel(model)
    begin = time.monotonic()
    solver.run()
    answer = {"seconds": time.monotonic() - begin}
    status = solver.getModelStatus()
    # All columns are bounded.
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        answer["status"] = "infeasible"
        return answer
    if solver.getInfo().primal_solution_status == 2:  # feasible
        answer["values"] = list(solver.getSolution().col_value)
    if status == highspy.HighsModelStatus.kOptimal:
        answer["status"] = "optimal"
    else:
        answer["status"] = "feasible" if "values" in answer else solver.modelStatusToString(status)
    return answer


if __name__ == "__main__":
    # HiGHS writes a banner to the standard output.
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(2, 1)
        json.dump(solve(json.load(sys.stdin)), output)
