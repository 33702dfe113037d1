// adapt_inputs: inputs as clients of MLServer and KServe send them, in the form that a container declares.
//
// MLServer and KServe look at a tensor's numbers more than at its name and type. So a call of a container may send:
//
//   - numbers of another type, which are converted where the declared one can hold them (fractions as FP32 are
//   rounded);
//   - [rows] for a column [rows, 1];
//   - of a file of a framework that is compiled, and where a container's first input is kUnnamedInput or has the names
//     of columns (TensorSpec::labels): the only input under any name, and several inputs in their order, if none has a
//     name of theirs;
//   - then also, in place of an only input [rows, N], its N columns [rows] or [rows, 1]: by their names, or else in
//     their order.
//
// Threading: pure functions.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_ADAPTED_INPUTS_H_
#define FOLIOT_ANSWER_MODEL_CALLS_ADAPTED_INPUTS_H_

#include <string>
#include <vector>

#include "answer/inference/query.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

struct AdaptedInputs {
  std::vector<TensorView> views;  // names show the model or the query; bytes the query or `converted`
  std::vector<std::string> converted;
};

// Passes on as it is what has none of these forms, for the checks of other calls. REQUIRES: takes_other_forms(model).
// Errors: kInvalidArgument naming the input, the number and the type that cannot hold it; of the columns, the name that
// is unknown or missing.
Result<AdaptedInputs> adapt_inputs(const ModelInfo& model, const std::vector<TensorView>& inputs);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_ADAPTED_INPUTS_H_
