// Answer check: whether a compiled program answers rows as what it was made from does. A model that was converted from
// the file of another library brings rows and what that library answers; what differs is not served.
//
// The answers of model.onnx lie beside it, in model.onnx.answers:
//
//   u32 little-endian: how many rows; of each row a byte, 1 where the library fails on it; the rows of each input,
//   dense, as the program has its inputs; likewise what each output is
//
// Whole numbers, and rows that fail, must be the same. A number with a fraction may differ by 1e-5 of itself and 1e-6
// of the median of its output, since sums of float32 depend on their order.
//
// Threading: pure functions.
#ifndef FOLIOT_MODELS_REPOSITORY_ANSWER_CHECK_H_
#define FOLIOT_MODELS_REPOSITORY_ANSWER_CHECK_H_

#include <filesystem>

#include "engine/compiler/compiler.h"
#include "engine/device/device.h"
#include "foundation/base/status.h"

namespace foliot {

// The file of the answers of a model; empty: it has none.
std::filesystem::path answers_of(const std::filesystem::path& model);

// Runs all rows in batches of every size. `device` must be fresh. Errors: kInvalidArgument naming the row, the output
// and both answers, or if the file is not of this program; ProgramRunner::create()'s.
Status check_answers(const CompiledProgram& compiled, Device& device, const std::filesystem::path& answers);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_ANSWER_CHECK_H_
