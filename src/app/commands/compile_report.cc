#include "app/commands/compile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "edge/requests/json_text.h"
#include "engine/compiler/memory_planner.h"
#include "engine/compiler/plan_durations.h"
#include "engine/compiler/program_runner.h"
#include "engine/device/cpu/layout_name.h"
#include "foundation/base/units.h"

namespace foliot {
namespace {

// "add+relu"; empty: nothing was fused into it.
std::string fused_into(const Operator& step) {
  std::string text;
  for (const PostOperation& post : step.post_operations) {
    if (!text.empty()) text += '+';
    text += to_string(post.function);
  }
  return text;
}

const Tensor& output_of(const Plan& plan, const Operator& step) { return plan.tensors[step.outputs.front()]; }

std::string layout_of(const Plan& plan, const Operator& step) { return layout_name(output_of(plan, step).layout); }

bool multiplies(const Operator& step) {
  return step.kind == OperatorKind::kConvolution || step.kind == OperatorKind::kConvolutionTranspose ||
         step.kind == OperatorKind::kMatMul;
}

DataType operand_type(const Plan& plan, const Operator& step) { return plan.tensors[step.inputs.front()].type; }

std::string bucket_name(const ProgramBucket& bucket) {
  std::string name;
  for (const auto& [dimension, size] : bucket.dimensions) name += fmt::format(", {} {}", dimension, size);
  return name;
}

double percent(Duration part, Duration whole) {
  return whole > Duration() ? 100 * part.to_seconds() / whole.to_seconds() : 0;
}

Duration sum(const std::vector<Duration>& durations) {
  Duration total;
  for (Duration duration : durations) total += duration;
  return total;
}

std::string headline(const Program& program, const Plan& plan, const PlanReport& report) {
  const uint64_t least = report.workspace_bytes_min;
  const double above =
      least > 0 ? 100 * (static_cast<double>(plan.workspace_bytes) / static_cast<double>(least) - 1) : 0;
  return fmt::format(
      "batch {}{}: {} operators, {}; workspace {}, {:.1f} % above the least possible, {}; inputs {}, outputs {}\n",
      plan.batch_size, bucket_name(program.buckets[plan.bucket]), plan.operators.size(),
      format_duration(report.duration), format_bytes(plan.workspace_bytes), above, format_bytes(least),
      format_bytes(plan.input_bytes), format_bytes(plan.output_bytes));
}

std::string operator_table(const Plan& plan, const PlanReport& report) {
  const Duration total = sum(report.operators);
  std::string text = fmt::format("{:>5} {:>9} {:>6}  {:<6} {:<20} {:<18} {:<20} {:<10} {:<28} {}\n", "#", "us", "%",
                                 "type", "operator", "fused into it", "output", "layout", "kernel", "name");
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const Operator& step = plan.operators[i];
    text += fmt::format("{:>5} {:>9.1f} {:>6.1f}  {:<6} {:<20} {:<18} {:<20} {:<10} {:<28} {}\n", i,
                        report.operators[i].to_microseconds(), percent(report.operators[i], total),
                        to_string(operand_type(plan, step)), to_string(step.kind), fused_into(step),
                        to_string(output_of(plan, step).shape), layout_of(plan, step), step.kernel, step.name);
  }
  return text;
}

// Operators that are alike, the most expensive first.
std::string kind_table(const Plan& plan, const PlanReport& report) {
  struct Kind {
    std::string name;
    size_t count = 0;
    Duration duration;
  };
  std::map<std::string, Kind> by_name;
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    const std::string fused = fused_into(plan.operators[i]);
    const std::string name = fmt::format("{} {}{}{}", to_string(operand_type(plan, plan.operators[i])),
                                         to_string(plan.operators[i].kind), fused.empty() ? "" : "+", fused);
    Kind& kind = by_name[name];
    kind.name = name;
    ++kind.count;
    kind.duration += report.operators[i];
  }
  std::vector<Kind> kinds;
  kinds.reserve(by_name.size());
  for (auto& [name, kind] : by_name) kinds.push_back(std::move(kind));
  std::ranges::stable_sort(kinds, std::greater(), &Kind::duration);
  const Duration total = sum(report.operators);
  std::string text = fmt::format("{:>5} {:>9} {:>6}  {}\n", "count", "us", "%", "operator");
  for (const Kind& kind : kinds) {
    text += fmt::format("{:>5} {:>9.1f} {:>6.1f}  {}\n", kind.count, kind.duration.to_microseconds(),
                        percent(kind.duration, total), kind.name);
  }
  return text;
}

std::string json_text(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

std::string operator_json(const Plan& plan, const Operator& step, Duration duration) {
  std::string shape;
  append_json_shape(shape, output_of(plan, step).shape);
  return fmt::format(
      R"({{"operator": {}, "type": {}, "name": {}, "fused": {}, "shape": {}, "layout": {}, "kernel": {}, "microseconds": {:.1f}}})",
      json_text(to_string(step.kind)), json_text(to_string(operand_type(plan, step))), json_text(step.name),
      json_text(fused_into(step)), shape, json_text(layout_of(plan, step)), json_text(step.kernel),
      duration.to_microseconds());
}

std::string plan_json(const Program& program, const Plan& plan, const PlanReport& report) {
  std::string dimensions;
  for (const auto& [name, size] : program.buckets[plan.bucket].dimensions) {
    dimensions += fmt::format("{}{}: {}", dimensions.empty() ? "" : ", ", json_text(name), size);
  }
  std::string json = fmt::format(
      R"({{"batch_size": {}, "dimensions": {{{}}}, "microseconds": {:.1f}, "workspace_bytes": {}, )"
      R"("workspace_bytes_min": {}, "operators": [)",
      plan.batch_size, dimensions, report.duration.to_microseconds(), plan.workspace_bytes, report.workspace_bytes_min);
  for (size_t i = 0; i < plan.operators.size(); ++i) {
    json += fmt::format("{}\n    {}", i == 0 ? "" : ",", operator_json(plan, plan.operators[i], report.operators[i]));
  }
  return json + "]}";
}

}  // namespace

Result<CompileReport> measure_operators(const Program& program, std::span<const std::byte> weights, Device& device) {
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner, ProgramRunner::create(device, program, weights));
  CompileReport report;
  for (size_t i = 0; i < program.plans.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(PlanDurations durations, measure_plan(program.plans[i], i, *runner));
    report.push_back({.workspace_bytes_min = workspace_bytes_min(program.plans[i]),
                      .duration = durations.whole,
                      .operators = std::move(durations.operators)});
  }
  return report;
}

std::string report_text(const Program& program, const CompileReport& report) {
  std::string text;
  for (size_t i = 0; i < program.plans.size(); ++i) {
    const Plan& plan = program.plans[i];
    text += fmt::format("\n{}\n{}\n{}", headline(program, plan, report[i]), operator_table(plan, report[i]),
                        kind_table(plan, report[i]));
  }
  return text;
}

std::string narrowing_text(const CompiledProgram& compiled) {
  if (!compiled.narrowing_error) return {};
  std::map<DataType, size_t> counts;
  std::string wide;
  const Plan& plan = compiled.program.plans.front();
  for (const Operator& step : plan.operators) {
    if (!multiplies(step)) continue;
    ++counts[operand_type(plan, step)];
    if (operand_type(plan, step) == DataType::kFloat32) wide += fmt::format("\n  {}", step.name);
  }
  std::string text = "\nconvolutions and products by the type of what they multiply:";
  for (const auto& [type, count] : counts) text += fmt::format(" {} {}", to_string(type), count);
  text += fmt::format("\nlargest error against float32, of the largest value: {:.2e}\n", *compiled.narrowing_error);
  return wide.empty() ? text : text + "in float32:" + wide + "\n";
}

std::string report_json(const CompiledProgram& compiled, const CompileReport& report) {
  const Program& program = compiled.program;
  std::string notes;
  for (const std::string& note : program.notes) notes += (notes.empty() ? "" : ", ") + json_text(note);
  std::string json =
      fmt::format(R"({{"device": {}, "notes": [{}], "weights_bytes": {}, "workspace_bytes": {}, )",
                  json_text(program.device_fingerprint), notes, program.weights_bytes, program.workspace_bytes());
  if (compiled.narrowing_error) json += fmt::format(R"("narrowing_error": {:.3e}, )", *compiled.narrowing_error);
  json += R"("plans": [)";
  for (size_t i = 0; i < program.plans.size(); ++i) {
    json += fmt::format("{}\n  {}", i == 0 ? "" : ",", plan_json(program, program.plans[i], report[i]));
  }
  return json + "]}\n";
}

}  // namespace foliot
