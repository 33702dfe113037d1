#include "engine/container/container_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/device/plan.h"
#include "foundation/base/check.h"
#include "foundation/base/heap.h"
#include "foundation/core/bounded_row.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Of the processes that follow one that was killed for a late call, so many share one with more time.
constexpr uint32_t kPatientEvery = 8;

bool same(const TensorSpec& one, const TensorSpec& other) {
  return one.name == other.name && one.type == other.type && one.shape == other.shape && one.bound == other.bound;
}

// Calls visit(position of the tensor, row, where it lies, its bytes) for all rows of a batch.
template <typename Visit>
void for_each_row(const std::vector<TensorSpec>& tensors, const std::vector<uint64_t>& row_bytes, uint64_t offset,
                  uint32_t rows, const Visit& visit) {
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    for (uint32_t row = 0; row < rows; ++row) visit(i, row, offset + row * row_bytes[i], row_bytes[i]);
    offset += aligned_tensor_bytes(row_bytes[i] * rows);
  }
}

std::vector<uint64_t> row_bytes_of(const std::vector<TensorSpec>& tensors) {
  std::vector<uint64_t> result;
  for (const TensorSpec& tensor : tensors) result.push_back(row_bytes(tensor, Bucket()));
  return result;
}

// Copies what is in use of a row that varies in size. False, and an empty row, if `from` is none:
// while it is read, a process may change it.
bool copy_bounded(const TensorSpec& tensor, std::span<const std::byte> from, std::span<std::byte> to) {
  if (const std::optional<uint64_t> used = used_bytes(tensor, from)) {
    std::ranges::copy(from.first(*used), to.begin());
    if (used_bytes(tensor, to.first(*used))) return true;
  }
  std::ranges::fill(to, std::byte{0});
  return false;
}

// A block of the io cache has at least one unit.
IoBytes io_bytes(const ContainerDescription& description, uint32_t rows) {
  return {std::max(description.input_bytes(rows), kTensorAlignment),
          std::max(description.output_bytes(rows), kTensorAlignment)};
}

}  // namespace

// A batch must begin early enough to end by its first deadline, which follows from when that is.
Duration ContainerTimeouts::of(const Action& action, TimePoint now) const {
  const Duration expected = action.expected * factor;
  if (action.latest.is_infinite()) return expected + reserve;
  const Duration to_deadline = action.latest + action.expected - now;
  return std::min(expected + reserve, std::max(expected + late_reserve, to_deadline));
}

ContainerTimeouts ContainerTimeouts::after(uint32_t kills) {
  ContainerTimeouts timeouts;
  if (kills % kPatientEvery == 1) timeouts.late_reserve = timeouts.reserve;
  return timeouts;
}

ContainerEngine::ContainerEngine(ContainerProcess& process, PayloadStore& payloads, uint32_t models_max,
                                 ContainerTimeouts timeouts)
    : process_(process),
      payloads_(payloads),
      timeouts_(timeouts),
      added_(models_max),
      input_row_bytes_(row_bytes_of(process.description().inputs)),
      output_row_bytes_(row_bytes_of(process.description().outputs)) {}

Result<WorkerModel> ContainerEngine::add(const EngineModel& model) {
  const ModelInfo& info = *model.info;
  const ContainerDescription& description = process_.description();
  FOLIOT_CHECK(info.id.value() < added_.size() && !added_[info.id.value()]);
  if (!std::ranges::equal(info.inputs, description.inputs, same) ||
      !std::ranges::equal(info.outputs, description.outputs, same)) {
    return Status::invalid_argument(
        fmt::format("model '{}' has other inputs or outputs than the container of this device", info.name));
  }
  const std::vector<uint32_t>& sizes = info.only().batch_sizes;
  if (sizes.back() > description.batch_size_max) {
    return Status::invalid_argument(fmt::format("model '{}' has batches of {} rows; its container takes up to {}",
                                                info.name, sizes.back(), description.batch_size_max));
  }
  WorkerModel added{.id = info.id, .pages = info.only().pages, .batch_sizes = sizes, .io_bytes = {}};
  for (size_t bucket = 0; bucket < info.buckets.size(); ++bucket) {
    for (const uint32_t size : sizes) added.io_bytes.push_back(io_bytes(description, size));
  }
  added_[info.id.value()] = true;
  return added;
}

Status ContainerEngine::prepare(ModelId /*model*/, size_t /*batch_index*/) { return {}; }
void ContainerEngine::remove(ModelId model) { added_.at(model.value()) = false; }
Status ContainerEngine::load(ModelId /*model*/, std::span<const PageIndex> /*pages*/) { return {}; }
void ContainerEngine::unload(ModelId /*model*/) {}

void ContainerEngine::input(const InferWork& work) {
  const BatchRows& rows = work.action.rows;
  const std::vector<TensorSpec>& inputs = process_.description().inputs;
  for_each_row(inputs, input_row_bytes_, work.input_offset, rows.size(),
               [&](uint32_t i, uint32_t row, uint64_t at, uint64_t bytes) {
                 const std::span<const std::byte> from = payloads_.input(rows[row].payload, i);
                 const std::span<std::byte> to = process_.memory().subspan(at, bytes);
                 FOLIOT_CHECK(from.size() == bytes);
                 // A front end checks what clients send; of another's that is wrong a model gets nothing.
                 if (inputs[i].bound) return void(copy_bounded(inputs[i], from, to));
                 std::ranges::copy(from, to.begin());
               });
}

Status ContainerEngine::run(const InferWork& work) {
  FOLIOT_CHECK(added_[work.action.model.value()] && work.part.range.whole());
  const uint64_t before = heap_allocations();
  CallFailures failures;
  Status status = process_.call(work.action.rows.size(), work.input_offset, work.output_offset,
                                timeouts_.of(work.action, monotonic_now()), &failures);
  if (failures.rows.any()) {
    note(failures, work);
  } else if (status.ok()) {
    count_exec_heap_allocations(heap_allocations() - before);
  }
  // The process is well: what failed is the model's code.
  if (status.code() == StatusCode::kInternal) return Status::invalid_argument(status.message());
  return status;
}

void ContainerEngine::note(const CallFailures& failures, const InferWork& work) {
  for (uint32_t row = 0; row < work.action.rows.size(); ++row) {
    if (failures.rows[row] && !failures.reasons[row].empty()) {
      payloads_.fail(work.action.rows[row].payload, failures.reasons[row]);
    }
  }
  if (work.failed_rows != nullptr) *work.failed_rows = failures.rows;
}

void ContainerEngine::output(const InferWork& work) {
  const BatchRows& rows = work.action.rows;
  const std::vector<TensorSpec>& outputs = process_.description().outputs;
  for_each_row(outputs, output_row_bytes_, work.output_offset, rows.size(),
               [&](uint32_t i, uint32_t row, uint64_t at, uint64_t bytes) {
                 const std::span<std::byte> from = process_.memory().subspan(at, bytes);
                 const std::span<std::byte> to = payloads_.output(rows[row].payload, i);
                 FOLIOT_CHECK(to.size() == bytes);
                 if (outputs[i].bound) return take_bounded(outputs[i], from, to, row, work);
                 std::ranges::copy(from, to.begin());
                 if (outputs[i].type != DataType::kBool) return;
                 for (std::byte& flag : to) flag = flag == std::byte{0} ? std::byte{0} : std::byte{1};
               });
  finish_rows(payloads_, work);
}

void ContainerEngine::take_bounded(const TensorSpec& output, std::span<const std::byte> from, std::span<std::byte> to,
                                   uint32_t row, const InferWork& work) {
  if (copy_bounded(output, from, to) || work.failed_rows == nullptr || work.failed_rows->test(row)) return;
  work.failed_rows->set(row);
  payloads_.fail(work.action.rows[row].payload, "the container broke the protocol: an output goes beyond its bound");
}

uint64_t container_memory_bytes(const ContainerDescription& description, uint32_t batches) {
  const IoBytes one = io_bytes(description, description.batch_size_max);
  return (one.input + one.output) * batches;
}

ModelInfo container_model(const ContainerDescription& description, std::string kind, std::vector<uint32_t> batch_sizes,
                          std::vector<Duration> durations) {
  FOLIOT_CHECK(batch_sizes.size() == durations.size() && !batch_sizes.empty());
  ModelInfo info;
  info.inputs = description.inputs;
  info.outputs = description.outputs;
  info.buckets = {Bucket{}};
  info.runnables = {Runnable{.kind = std::move(kind),
                             .batch_sizes = std::move(batch_sizes),
                             .pages = 1,
                             .seed_load = {},
                             .seed_exec = {std::move(durations)}}};
  return info;
}

}  // namespace foliot
