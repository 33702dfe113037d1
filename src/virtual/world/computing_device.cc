#include "virtual/world/computing_device.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {

uint64_t content_hash(const ModelInfo& model) { return hash64(std::as_bytes(std::span(model.content))); }

std::shared_ptr<const ModelInfo> simulated_version(const ModelInfo& model, uint64_t version, ModelId id,
                                                   bool elements) {
  auto result = std::make_shared<ModelInfo>(model);
  result->id = id;
  result->version = std::to_string((version + 1) / 2);
  result->content = model.name + " " + std::to_string(version);
  for (uint32_t tensor = 0; tensor < (elements ? kSimulatedTensors : 1); ++tensor) {
    result->inputs.push_back(simulated_tensor(kSimulatedInputs[tensor], tensor));
    result->outputs.push_back(simulated_tensor(kSimulatedOutputs[tensor], tensor));
  }
  return result;
}

uint64_t version_of(const ModelInfo& model) { return std::stoull(model.content.substr(model.content.rfind(' '))); }

Result<WorkerModel> ComputingDevice::add(const EngineModel& model) {
  contents_[model.info->id] = content_hash(*model.info);
  tensors_[model.info->id] = static_cast<uint32_t>(model.info->inputs.size());
  return SimulatedDevice::add(model);
}

void ComputingDevice::remove(ModelId model) {
  contents_.erase(model);
  tensors_.erase(model);
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
  std::vector<SimulatedRow>& rows = inputs_[work.input_offset];
  rows.clear();
  for (const BatchRows::Row& row : work.action.rows) {
    SimulatedRow& words = rows.emplace_back();
    for (uint32_t tensor = 0; tensor < tensors_.at(work.action.model); ++tensor) {
      const std::span<const std::byte> input = payloads_.input(row.payload, tensor);
      const std::span<std::byte> place = words.bytes(tensor);
      FOLIOT_CHECK(input.size() == place.size());
      std::ranges::copy(input, place.begin());
    }
  }
}

void ComputingDevice::output(const InferWork& work) {
  const uint64_t content = executed_.at(work.action.id);
  executed_.erase(work.action.id);
  const std::vector<SimulatedRow>& inputs = inputs_.at(work.input_offset);
  const uint32_t tensors = tensors_.at(work.action.model);
  for (uint32_t i = 0; i < work.action.rows.size(); ++i) {
    SimulatedRow output = simulated_output(content, inputs.at(i).hash(tensors), work.action.id.value());
    for (uint32_t tensor = 0; tensor < tensors; ++tensor) {
      const std::span<std::byte> place = payloads_.output(work.action.rows[i].payload, tensor);
      FOLIOT_CHECK(place.size() == output.bytes(tensor).size());
      std::ranges::copy(output.bytes(tensor), place.begin());
    }
  }
  finish_rows(payloads_, work);
}

}  // namespace foliot
