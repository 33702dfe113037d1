// What a compiled model may have refused a call's rows for, in words: its operators say which rows they refuse, but
// not why, and here the inputs still are.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_REFUSED_INPUTS_H_
#define FOLIOT_ANSWER_MODEL_CALLS_REFUSED_INPUTS_H_

#include <string>

#include "answer/model_calls/inference_call.h"

namespace foliot {

// Whether a device runs it that is no container: its rows fail by their inputs alone.
bool is_compiled(const ModelInfo& model);

// Inputs with NaN or infinity, and of integers the least and the greatest: "input 'ids' holds 0 to 30523". Empty: there
// is nothing of that kind. Looks at all inputs of the call: for errors only.
std::string describe_refused_inputs(const InferenceCall& call);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_REFUSED_INPUTS_H_
