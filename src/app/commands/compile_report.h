// CompileReport: the result of compiling a model, operator by operator: kernel, layout,
// fused operators and duration; and the workspace of each plan against the least
// possible.
#ifndef FOLIOT_APP_COMMANDS_COMPILE_REPORT_H_
#define FOLIOT_APP_COMMANDS_COMPILE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/compiler/compiler.h"
#include "engine/device/device.h"
#include "engine/program/program.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct PlanReport {
  uint64_t workspace_bytes_min = 0;  // the largest set of tensors alive at once
  Duration duration;                 // of the whole plan
  std::vector<Duration> operators;   // of each operator, run by itself
};

// By position in Program::plans.
using CompileReport = std::vector<PlanReport>;

// Runs every operator of every plan a few times on zeros and takes the shortest.
// `device` must be fresh, and of the fingerprint that `program` was made for.
Result<CompileReport> measure_operators(const Program& program, std::span<const std::byte> weights, Device& device);

// A table of operators for each plan, and what takes the time.
std::string report_text(const Program& program, const CompileReport& report);
// The convolutions and products of the first plan in lower precision than float32,
// those that stay in float32, and the difference from float32; empty if none is
// narrowed.
std::string narrowing_text(const CompiledProgram& compiled);
std::string report_json(const CompiledProgram& compiled, const CompileReport& report);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_COMPILE_REPORT_H_
