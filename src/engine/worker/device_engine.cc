#include "engine/worker/device_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/check.h"
#include "foundation/base/heap.h"

namespace foliot {
namespace {

// Calls visit(payload, position of the tensor, where the row lies in the io cache,
// its bytes) for every row of every one of these tensors.
template <typename Visit>
void for_each_row(const Plan& plan, const std::vector<TensorIndex>& tensors, uint64_t block, const BatchRows& rows,
                  const Visit& visit) {
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = plan.tensors[tensors[i]];
    const uint64_t row_bytes = tensor.bytes / plan.batch_size;
    uint64_t at = block + tensor.offset;
    for (const BatchRows::Row& row : rows) {
      visit(row.payload, i, at, row_bytes);
      at += row_bytes;
    }
  }
}

}  // namespace

DeviceEngine::DeviceEngine(Device& device, PayloadStore& payloads, uint32_t models_max)
    : device_(device), payloads_(payloads), entries_(models_max), failed_rows_(kLanesMax + kContextsMax) {}

Result<WorkerModel> DeviceEngine::add(const EngineModel& model) {
  const ModelId id = model.info->id;
  FOLIOT_CHECK(id.value() < entries_.size());
  const std::shared_ptr<const Program>& program = model.package.program;
  FOLIOT_ASSIGN_OR_RETURN(auto executable, device_.preload(program->plans, model.package.weights));
  entries_[id.value()] = {program, std::move(executable)};
  WorkerModel added{.id = id, .pages = model.info->only().pages, .batch_sizes = program->batch_sizes};
  for (const Plan& plan : program->plans) {
    added.io_bytes.push_back({plan.input_bytes, plan.output_bytes});
    added.operator_counts.push_back(static_cast<uint32_t>(plan.operators.size()));
  }
  return added;
}

Status DeviceEngine::prepare(ModelId model, size_t batch_index) {
  const Entry& entry = entries_[model.value()];
  for (size_t plan = batch_index; plan < entry.program->plans.size(); plan += entry.program->batch_sizes.size()) {
    for (const uint32_t width : lane_widths(device_.lanes())) {
      const Status status = entry.executable->prepare(static_cast<uint32_t>(plan), width);
      if (status.ok()) continue;
      if (width == device_.lanes()) return status;
      return status.with_context(
          fmt::format("it has no kernels for {} of {} lanes; serve it with --lanes 1", width, device_.lanes()));
    }
  }
  return Status();
}

void DeviceEngine::remove(ModelId model) { entries_[model.value()] = {}; }

Status DeviceEngine::load(ModelId model, std::span<const PageIndex> pages) {
  return entries_[model.value()].executable->load(pages);
}

void DeviceEngine::unload(ModelId model) { entries_[model.value()].executable->unload(); }

const Plan& DeviceEngine::plan_of(const InferWork& work, uint32_t& index) const {
  const Program& program = *entries_[work.action.model.value()].program;
  const auto& sizes = program.batch_sizes;
  const auto position = std::find(sizes.begin(), sizes.end(), work.action.batch_size) - sizes.begin();
  index = static_cast<uint32_t>(work.action.bucket.value() * sizes.size() + static_cast<size_t>(position));
  return program.plans[index];
}

// Unused rows of a batch keep what was there before: no row's result depends on its
// neighbours.
void DeviceEngine::input(const InferWork& work) {
  uint32_t index = 0;
  const Plan& plan = plan_of(work, index);
  for_each_row(plan, plan.inputs, work.input_offset, work.action.rows,
               [this](PayloadHandle payload, uint32_t i, uint64_t at, uint64_t row_bytes) {
                 const std::span<const std::byte> bytes = payloads_.input(payload, i);
                 FOLIOT_CHECK(bytes.size() == row_bytes);
                 device_.copy_to_io(at, bytes);
               });
}

Status DeviceEngine::run(const InferWork& work) {
  uint32_t index = 0;
  plan_of(work, index);
  RowSet& failed = failed_rows_.at(work.part.context);
  if (work.part.range.begins()) failed.reset();
  const uint64_t before = heap_allocations();
  const Status status = entries_[work.action.model.value()].executable->run({.plan = index,
                                                                             .part = work.part,
                                                                             .input_offset = work.input_offset,
                                                                             .output_offset = work.output_offset,
                                                                             .failed_rows = &failed});
  count_exec_heap_allocations(heap_allocations() - before);
  // Unused rows of the batch may fail, too.
  for (uint32_t row = 0; row < work.action.rows.size() && work.failed_rows != nullptr; ++row) {
    if (failed[row]) work.failed_rows->set(row);
  }
  return status;
}

void DeviceEngine::output(const InferWork& work) {
  uint32_t index = 0;
  const Plan& plan = plan_of(work, index);
  for_each_row(plan, plan.outputs, work.output_offset, work.action.rows,
               [this](PayloadHandle payload, uint32_t i, uint64_t at, uint64_t row_bytes) {
                 const std::span<std::byte> bytes = payloads_.output(payload, i);
                 FOLIOT_CHECK(bytes.size() == row_bytes);
                 device_.copy_from_io(at, bytes);
               });
  finish_rows(payloads_, work);
}

}  // namespace foliot
