// Batch check: runs a program to see whether it computes every row of a batch as if it were
// alone. That it does is proved before (engine/compiler/row_proof.h); this finds faults of passes
// and kernels, and proves nothing.
#ifndef FOLIOT_ENGINE_COMPILER_BATCH_CHECK_H_
#define FOLIOT_ENGINE_COMPILER_BATCH_CHECK_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/compiler/example_input.h"
#include "engine/compiler/program_runner.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"

namespace foliot {

// Compares all plans of `bucket` with those of `own_batch_size`, the size that
// the model was written for, on rows as of fill_contrary(). `values` as example_values(). Returns
// what differs; empty: nothing.
Result<std::string> check_batches(ProgramRunner& runner, const Program& program, size_t bucket, uint32_t own_batch_size,
                                  std::span<const ExampleValues> values, double tolerance);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_BATCH_CHECK_H_
