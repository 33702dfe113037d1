#include "engine/worker/conformance/fake_engine.h"

#include <algorithm>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {

FakeEngine::FakeEngine(PayloadStore& payloads, uint64_t io_cache_bytes, uint32_t models_max)
    : payloads_(payloads), io_cache_(io_cache_bytes), entries_(models_max) {}

Result<WorkerModel> FakeEngine::add(const EngineModel& model) {
  const ModelInfo& info = *model.info;
  Entry& entry = entries_.at(info.id.value());
  FOLIOT_CHECK(entry.info == nullptr && info.inputs.size() == 1 && info.outputs.size() == 1);
  entry.info = model.info;
  entry.prepared.assign(info.only().batch_sizes.size(), false);
  entry.input_bytes = byte_size(info.inputs[0].type, info.inputs[0].shape);
  entry.output_bytes = byte_size(info.outputs[0].type, info.outputs[0].shape);
  WorkerModel added{.id = info.id, .pages = info.only().pages, .batch_sizes = info.only().batch_sizes};
  for (size_t bucket = 0; bucket < info.buckets.size(); ++bucket) {
    for (const uint64_t size : info.only().batch_sizes) {
      added.io_bytes.push_back({size * entry.input_bytes, size * entry.output_bytes});
    }
  }
  return added;
}

Status FakeEngine::prepare(ModelId model, size_t batch_index) {
  Entry& entry = entries_.at(model.value());
  FOLIOT_CHECK(entry.info != nullptr && batch_index < entry.prepared.size());
  entry.prepared[batch_index] = true;
  return Status();
}

void FakeEngine::remove(ModelId model) {
  Entry& entry = entries_.at(model.value());
  FOLIOT_CHECK(!entry.loaded);
  entry.info = nullptr;
}

Status FakeEngine::load(ModelId model, std::span<const PageIndex> pages) {
  if (!load_status_.ok()) return load_status_;
  Entry& entry = entries_.at(model.value());
  FOLIOT_CHECK(entry.info != nullptr && !entry.loaded && pages.size() == entry.info->only().pages);
  entry.pages.assign(pages.begin(), pages.end());
  entry.loaded = true;
  return Status();
}

void FakeEngine::unload(ModelId model) {
  Entry& entry = entries_.at(model.value());
  FOLIOT_CHECK(entry.loaded);
  entry.loaded = false;
  entry.pages.clear();
  ++unloads_;
}

std::span<std::byte> FakeEngine::io(uint64_t offset, uint64_t bytes) {
  FOLIOT_CHECK(offset + bytes <= io_cache_.size());
  return std::span(io_cache_).subspan(offset, bytes);
}

void FakeEngine::input(const InferWork& work) {
  const Entry& entry = entries_.at(work.action.model.value());
  for (uint32_t i = 0; i < work.action.rows.size(); ++i) {
    const std::span<const std::byte> row = payloads_.input(work.action.rows[i].payload, 0);
    FOLIOT_CHECK(row.size() == entry.input_bytes);
    std::copy(row.begin(), row.end(), io(work.input_offset + i * entry.input_bytes, entry.input_bytes).begin());
  }
}

void FakeEngine::output(const InferWork& work) {
  const Entry& entry = entries_.at(work.action.model.value());
  for (uint32_t i = 0; i < work.action.rows.size(); ++i) {
    const std::span<std::byte> place = payloads_.output(work.action.rows[i].payload, 0);
    FOLIOT_CHECK(place.size() == entry.output_bytes);
    const auto row = io(work.output_offset + i * entry.output_bytes, entry.output_bytes);
    std::copy(row.begin(), row.end(), place.begin());
  }
  ++outputs_;
  finish_rows(payloads_, work);
}

Status FakeEngine::run(const InferWork& work) {
  if (!run_status_.ok()) return run_status_;
  const Entry& entry = entries_.at(work.action.model.value());
  const auto& sizes = entry.info->only().batch_sizes;
  const size_t index = static_cast<size_t>(std::ranges::find(sizes, work.action.batch_size) - sizes.begin());
  FOLIOT_CHECK(entry.loaded && index < sizes.size() && entry.prepared[index]);
  for (uint64_t i = 0; i < work.action.batch_size; ++i) {
    compute(*entry.info, io(work.input_offset + i * entry.input_bytes, entry.input_bytes),
            io(work.output_offset + i * entry.output_bytes, entry.output_bytes));
  }
  return Status();
}

void FakeEngine::compute(const ModelInfo& model, std::span<const std::byte> input, std::span<std::byte> output) {
  const uint64_t weights = hash64(std::as_bytes(std::span(model.content)));
  for (size_t j = 0; j < output.size(); ++j) {
    output[j] = static_cast<std::byte>(static_cast<uint64_t>(input[j % input.size()]) + weights);
  }
}

}  // namespace foliot
