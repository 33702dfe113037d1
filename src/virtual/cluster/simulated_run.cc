#include "virtual/cluster/simulated_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/core/visit_order.h"
#include "virtual/world/computing_device.h"

namespace foliot {
namespace {

class ExpectedRun {
 public:
  ExpectedRun(const ModelInfo& info, const SimulatedRow& inputs, const std::map<uint32_t, ActionId>& actions)
      : info_(info), inputs_(inputs), actions_(actions), slots_(*info.pipeline), made_(slots_.size()) {}

  std::string check(const ReceivedRun& received) {
    for (uint32_t stage = 0; stage < stages().size(); ++stage) {
      visited_.set(stage, must_visit(stage));
      const uint32_t visits = visited_.test(stage) ? visits_of(stage) : 0;
      const bool empty = visited_.test(stage) && visits == 0;
      if (std::ranges::count(received.empty_stages, stage) != (empty ? 1 : 0)) {
        return fmt::format("stage '{}' had {} elements, and was said {} times to have none", stages()[stage].name,
                           visits, std::ranges::count(received.empty_stages, stage));
      }
      for (uint32_t element = 0; element < slots_.count(stage); ++element) {
        if (std::string wrong = check_visit(stage, element, element < visits, received); !wrong.empty()) return wrong;
      }
    }
    return {};
  }

 private:
  const std::vector<PipelineStage>& stages() const { return info_.pipeline->stages; }

  bool must_visit(uint32_t stage) const {
    const PipelineStage& own = stages()[stage];
    if (own.for_each && !visited_.test(own.for_each->stage)) return false;
    for (const PipelineStage::Requirement& required : own.requires_all) {
      if (!visited_.test(required.stage) || !made_[slots_.first(required.stage)].condition()) return false;
    }
    return std::ranges::all_of(own.inputs, [&](const auto& sources) { return source_of(sources) != nullptr; });
  }
  // The first that was visited.
  const TensorSource* source_of(const std::vector<TensorSource>& sources) const {
    const auto found = std::ranges::find_if(
        sources, [&](const TensorSource& source) { return !source.stage || visited_.test(*source.stage); });
    return found == sources.end() ? nullptr : &*found;
  }
  uint32_t visits_of(uint32_t stage) const {
    const auto& for_each = stages()[stage].for_each;
    return for_each ? made_[slots_.first(for_each->stage)].count().value() : 1;
  }

  std::string check_visit(uint32_t stage, uint32_t element, bool must_be, const ReceivedRun& received) {
    const PipelineStage& own = stages()[stage];
    const uint32_t slot = slots_.first(stage) + element;
    const std::string name = fmt::format("visit {} of stage '{}'", element, own.name);
    const ReceivedRun::Visit& visit = received.visits.at(slot);
    const auto action = actions_.find(slot);
    if (visit.ends != (must_be ? 1 : 0) || (action != actions_.end()) != must_be) {
      return fmt::format("{} had to be made {} times; it ended {} times, and counts {} times", name, must_be ? 1 : 0,
                         visit.ends, action == actions_.end() ? 0 : 1);
    }
    if (!must_be) return {};
    SimulatedRow inputs;
    for (uint32_t input = 0; input < own.inputs.size(); ++input)
      fill(inputs, input, element, *source_of(own.inputs[input]));
    SimulatedRow& made = made_[slot];
    made = simulated_output(content_hash(*own.model), inputs.hash(static_cast<uint32_t>(own.inputs.size())),
                            action->second.value());
    if (visit.outputs.content() != made.content()) return name + " is of another version than the run began with";
    if (visit.outputs.action() != made.action()) return name + " has another action's outputs";
    if (visit.outputs.input() != made.input()) return name + " was computed on other inputs";
    for (const uint32_t tensor : answers_of(*info_.pipeline, stage)) {
      if (!std::ranges::equal(visit.outputs.bytes(tensor), std::as_const(made).bytes(tensor))) {
        return fmt::format("{} has other values in '{}'", name, kSimulatedOutputs.at(tensor));
      }
    }
    return {};
  }
  // Inputs of models are in the order of a SimulatedRow's tensors.
  void fill(SimulatedRow& inputs, uint32_t input, uint32_t element, const TensorSource& source) const {
    const std::span<std::byte> place = inputs.bytes(input);
    const auto put = [&](uint32_t piece, std::span<const std::byte> bytes) {
      FOLIOT_CHECK((piece + 1) * bytes.size() <= place.size());
      std::ranges::copy(bytes, place.subspan(piece * bytes.size()).begin());
    };
    if (!source.stage) {
      const auto bytes = std::as_const(inputs_).bytes(simulated_input(info_, source.tensor));
      return put(0, source.each ? element_of(bytes, element) : bytes);
    }
    const uint32_t first = slots_.first(*source.stage);
    const bool has_elements = stages()[*source.stage].for_each.has_value();
    if (has_elements && !source.each) {
      for (uint32_t piece = 0; piece < visits_of(*source.stage); ++piece) {
        put(piece, std::as_const(made_[first + piece]).bytes(source.tensor));
      }
      return;
    }
    const auto bytes = std::as_const(made_[first + (has_elements ? element : 0)]).bytes(source.tensor);
    put(0, source.each && !has_elements ? element_of(bytes, element) : bytes);
  }
  static std::span<const std::byte> element_of(std::span<const std::byte> bytes, uint32_t element) {
    const size_t size = bytes.size() / kSimulatedElements;
    return bytes.subspan(element * size, size);
  }

  const ModelInfo& info_;
  const SimulatedRow& inputs_;
  const std::map<uint32_t, ActionId>& actions_;
  const StageSlots slots_;
  StageSet visited_;
  std::vector<SimulatedRow> made_;  // by slot, of visits that had to be made
};

}  // namespace

uint32_t simulated_input(const ModelInfo& info, uint32_t input) {
  const auto name = std::ranges::find(kSimulatedInputs, info.inputs.at(input).name);
  FOLIOT_CHECK(name != kSimulatedInputs.end());
  return static_cast<uint32_t>(name - kSimulatedInputs.begin());
}

std::string check_simulated_run(const ModelInfo& info, const SimulatedRow& inputs,
                                const std::map<uint32_t, ActionId>& actions, const ReceivedRun& received) {
  if (counts_too_many(info, inputs)) return "a run counts more elements than there may be, and is served";
  return ExpectedRun(info, inputs, actions).check(received);
}

bool counts_too_many(const ModelInfo& info, const SimulatedRow& inputs) {
  const std::vector<PipelineStage>& stages = info.pipeline->stages;
  const bool counts =
      std::ranges::any_of(stages, [](const PipelineStage& stage) { return stage.for_each.has_value(); });
  return counts && !simulated_output(0, inputs.hash(kSimulatedTensors), 0).count();
}

}  // namespace foliot
