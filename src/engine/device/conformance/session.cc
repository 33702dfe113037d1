#include "engine/device/conformance/session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/device/conformance/bump_planner.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint64_t kBlockAlignment = 4096;

uint64_t aligned(uint64_t bytes) { return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment; }

}  // namespace

Result<PlannedProgram> lower_and_plan(Device& device, std::span<const Graph> graphs, size_t layout) {
  FOLIOT_ASSIGN_OR_RETURN(LoweredProgram lowered, device.lower(graphs, device.layouts(graphs).at(layout)));
  PlannedProgram program;
  for (const std::vector<std::byte>& constant : lowered.constants) program.constant_bytes.push_back(constant.size());
  program.weights = assign_offsets(lowered);
  program.plans = std::move(lowered.plans);
  return program;
}

Session::Session(Device& device, std::vector<PlannedProgram> programs, uint64_t page_bytes)
    : device_(device), programs_(std::move(programs)), page_bytes_(page_bytes) {
  DeviceMemory memory{.page_bytes = page_bytes, .page_count = 0, .io_cache_bytes = 0, .workspace_bytes = 0};
  for (size_t i = 0; i < programs_.size(); ++i) {
    memory.page_count += static_cast<uint32_t>(2 * pages(i));
    for (const Plan& plan : programs_[i].plans) {
      memory.workspace_bytes = std::max(memory.workspace_bytes, plan.workspace_bytes);
      output_offset_ = std::max(output_offset_, aligned(plan.input_bytes));
      output_bytes_ = std::max(output_bytes_, aligned(plan.output_bytes));
    }
  }
  memory.contexts = device_.lanes() + 1;
  memory.io_cache_bytes = memory.contexts * block_bytes();
  const Status allocated = device_.allocate(memory);
  if (!allocated.ok()) ADD_FAILURE() << allocated.message();
  for (const PlannedProgram& program : programs_) {
    auto executable = device_.preload(program.plans, memory_weights(program.weights));
    if (!executable.ok()) ADD_FAILURE() << executable.status().message();
    executables_.push_back(std::move(executable).value());
    for (uint32_t plan = 0; plan < program.plans.size(); ++plan) {
      for (const uint32_t width : lane_widths(device_.lanes())) {
        const Status prepared = executables_.back()->prepare(plan, width);
        if (!prepared.ok()) ADD_FAILURE() << "on " << width << " lanes: " << prepared.message();
      }
    }
  }
}

size_t Session::pages(size_t program) const {
  return (programs_.at(program).weights.size() + page_bytes_ - 1) / page_bytes_;
}

void Session::load(size_t program, PageIndex first, bool downwards) {
  std::vector<PageIndex> indices;
  for (size_t i = 0; i < pages(program); ++i)
    indices.push_back(downwards ? first - static_cast<PageIndex>(i) : first + static_cast<PageIndex>(i));
  const Status loaded = executable(program).load(indices);
  if (!loaded.ok()) ADD_FAILURE() << loaded.message();
}

void Session::write_inputs(size_t program, uint32_t index, std::span<const Array> inputs, ContextIndex context) {
  const Plan& at = plan(program, index);
  FOLIOT_CHECK(inputs.size() == at.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::byte> bytes = to_bytes(inputs[i]);
    FOLIOT_CHECK(bytes.size() == at.tensors[at.inputs[i]].bytes);
    device_.copy_to_io(context * block_bytes() + at.tensors[at.inputs[i]].offset, bytes);
  }
}

void Session::spoil_outputs(size_t program, uint32_t index, ContextIndex context) {
  const std::vector<std::byte> garbage(plan(program, index).output_bytes, std::byte{0x5a});
  device_.copy_to_io(context * block_bytes() + output_offset_, garbage);
}

std::vector<std::vector<std::byte>> Session::read_outputs(size_t program, uint32_t index, ContextIndex context) {
  const Plan& at = plan(program, index);
  std::vector<std::vector<std::byte>> outputs;
  for (TensorIndex output : at.outputs) {
    std::vector<std::byte> bytes(byte_size(at.tensors[output].type, at.tensors[output].shape));
    device_.copy_from_io(context * block_bytes() + output_offset_ + at.tensors[output].offset, bytes);
    outputs.push_back(std::move(bytes));
  }
  return outputs;
}

void Session::run_range(size_t program, uint32_t index, OperatorRange range) {
  run_part(program, index, {.range = range, .lanes = {0, lanes()}});
}

void Session::run_part(size_t program, uint32_t index, const ExecPart& part) {
  const uint64_t block = part.context * block_bytes();
  const Status ran = executable(program).run({.plan = index,
                                              .part = part,
                                              .input_offset = block,
                                              .output_offset = block + output_offset_,
                                              .failed_rows = &failed_rows_.at(part.context)});
  if (!ran.ok()) ADD_FAILURE() << ran.message();
}

std::vector<std::vector<std::byte>> Session::run(size_t program, uint32_t index, std::span<const Array> inputs) {
  return run(program, index, inputs, {0, lanes()}, 0);
}

std::vector<std::vector<std::byte>> Session::run(size_t program, uint32_t index, std::span<const Array> inputs,
                                                 LaneInterval lanes, ContextIndex context) {
  write_inputs(program, index, inputs, context);
  spoil_outputs(program, index, context);
  failed_rows(context).reset();
  run_part(program, index, {.lanes = lanes, .context = context});
  return read_outputs(program, index, context);
}

}  // namespace foliot
