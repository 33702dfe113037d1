// Batch check: finds out whether a program computes every row of a batch as if it were
// alone. A model may mix rows, and one whose batch was fixed by its exporter may hide
// that in a constant, so the program is run.
#ifndef FOLIOT_COMPILER_BATCH_CHECK_H_
#define FOLIOT_COMPILER_BATCH_CHECK_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/example_input.h"
#include "compiler/program_runner.h"
#include "program/program.h"

namespace foliot {

// Compares all plans of `bucket` with those of `own_batch_size`, the size that
// the model was written for, on random rows. `values` as example_values(). Returns
// what differs; empty: nothing.
Result<std::string> check_batches(ProgramRunner& runner, const Program& program, size_t bucket, uint32_t own_batch_size,
                                  std::span<const ExampleValues> values, double tolerance);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_BATCH_CHECK_H_
