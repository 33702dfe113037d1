// json_table: rows of a model's inputs as KServe's protocol v1 and MLflow's /invocations write them, as the tensors of
// a Query. Their forms:
//
//   rows          [[1, 2], [3, 4]] of a model with one input, or [{"a": 1, "b": [2, 3]}, ...], by names
//   columns       {"a": [1, 3], "b": [[2, 3], [4, 5]]}, a value for each row
//   split         {"columns": ["a", "b"], "data": [[1, [2, 3]], ...]}; its data are rows without columns, or if these
//   can
//                 only be names of the values of the one input's row, which then count by their order
//
// Names are those of the inputs, in any order; of the columns of an only input (TensorSpec::labels). A name that is
// missing, extra or twice there, and a value that is null or of another type is an error.
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_REQUESTS_JSON_TABLE_H_
#define FOLIOT_EDGE_REQUESTS_JSON_TABLE_H_

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/query.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

struct JsonTable {
  std::vector<TensorView> inputs;      // in the model's order; names show the model, bytes `converted`
  std::vector<std::string> converted;  // of each input
};

// `member`: "instances", "inputs", "dataframe_records" or "dataframe_split", whose value this is. `model` outlives the
// result. Errors: kInvalidArgument naming row, column, value and what is wanted.
Result<JsonTable> read_json_table(std::string_view member, simdjson::dom::element value, const ModelInfo& model);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JSON_TABLE_H_
