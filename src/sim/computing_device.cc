#include "sim/computing_device.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace foliot {

uint64_t content_hash(const ModelInfo& model) { return hash64(std::as_bytes(std::span(model.content))); }

uint64_t input_hash(const SimulatedInput& input) { return hash64(std::as_bytes(std::span(input))); }

std::shared_ptr<const ModelInfo> simulated_version(const ModelInfo& model, uint64_t version, ModelId id) {
  auto result = std::make_shared<ModelInfo>(model);
  result->id = id;
  result->version = std::to_string((version + 1) / 2);
  result->content = model.name + " " + std::to_string(version);
  result->inputs = {{"x", DataType::kUint64, {sizeof(SimulatedInput) / 8}, {""}}};
  result->outputs = {{"y", DataType::kUint64, {sizeof(SimulatedOutput) / 8}, {""}}};
  return result;
}

uint64_t version_of(const ModelInfo& model) { return std::stoull(model.content.substr(model.content.rfind(' '))); }

Result<WorkerModel> ComputingDevice::add(const EngineModel& model) {
  contents_[model.info->id] = content_hash(*model.info);
  return SimulatedDevice::add(model);
}

void ComputingDevice::remove(ModelId model) {
  contents_.erase(model);
  SimulatedDevice::remove(model);
}

std::multiset<uint64_t> ComputingDevice::held() const {
  std::multiset<uint64_t> held;
  for (const auto& [id, content] : held_) held.insert(content);
  return held;
}

Status ComputingDevice::load(ModelId model, std::span<const PageIndex> pages) {
  FOLIOT_RETURN_IF_ERROR(SimulatedDevice::load(model, pages));
  held_[model] = contents_.at(model);
  return Status();
}

void ComputingDevice::unload(ModelId model) {
  SimulatedDevice::unload(model);
  held_.erase(model);
}

Status ComputingDevice::run(const InferWork& work) {
  FOLIOT_RETURN_IF_ERROR(SimulatedDevice::run(work));
  if (work.action.range.ends()) executed_[work.action.id] = held_.at(work.action.model);
  return Status();
}

void ComputingDevice::input(const InferWork& work) {
  std::vector<SimulatedInput>& rows = inputs_[work.input_offset];
  rows.clear();
  for (const BatchRows::Row& row : work.action.rows) {
    const std::span<const std::byte> input = payloads_.input(row.payload, 0);
    SimulatedInput& words = rows.emplace_back();
    FOLIOT_CHECK(input.size() == sizeof(words));
    std::memcpy(&words, input.data(), sizeof(words));
  }
}

void ComputingDevice::output(const InferWork& work) {
  SimulatedOutput output{.content = executed_.at(work.action.id), .input = 0, .action = work.action.id.value()};
  executed_.erase(work.action.id);
  const std::vector<SimulatedInput>& inputs = inputs_.at(work.input_offset);
  for (uint32_t i = 0; i < work.action.rows.size(); ++i) {
    const BatchRows::Row& row = work.action.rows[i];
    output.input = input_hash(inputs.at(i));
    const std::span<std::byte> place = payloads_.output(row.payload, 0);
    FOLIOT_CHECK(place.size() == sizeof(output));
    std::memcpy(place.data(), &output, sizeof(output));
  }
  finish_rows(payloads_, work);
}

}  // namespace foliot
