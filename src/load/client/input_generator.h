// Random inputs that fit a model's metadata.
#ifndef FOLIOT_LOAD_CLIENT_INPUT_GENERATOR_H_
#define FOLIOT_LOAD_CLIENT_INPUT_GENERATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "load/client/inference_client.h"

namespace foliot {

// Extents for inputs whose shape is variable, by name of the input; with the rows.
using InputShapes = std::map<std::string, std::vector<int64_t>, std::less<>>;

// One tensor per input. A variable first dimension becomes `rows`; other variable
// ones must be given in `shapes`. Floating-point elements are normally
// distributed, integers lie in [0, 100), which any vocabulary has, strings have 1 to 16
// letters. Errors: kInvalidArgument naming the model, the input and what to give;
// kUnimplemented for element types that are none of the protocol's.
Result<std::vector<InputTensor>> random_inputs(const ModelDescription& model, uint32_t rows, const InputShapes& shapes,
                                               Random& random);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_INPUT_GENERATOR_H_
