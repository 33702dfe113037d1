#include "node/repository/compile_order.h"

namespace foliot {

void CompileOrder::add(const std::string& model, Step step) {
  remove(model);
  const Place place{true, places_++};
  waiting_[model] = {step, place};
  queue(step)[place] = model;
}

void CompileOrder::ask_for(const std::string& model) {
  const auto found = waiting_.find(model);
  if (found == waiting_.end() || !found->second.place.first) return;
  Waiting& waiting = found->second;
  queue(waiting.step).erase(waiting.place);
  waiting.place = {false, places_++};
  queue(waiting.step)[waiting.place] = model;
}

std::optional<CompileOrder::Step> CompileOrder::remove(const std::string& model) {
  const auto found = waiting_.find(model);
  if (found == waiting_.end()) return std::nullopt;
  const Step step = found->second.step;
  queue(step).erase(found->second.place);
  waiting_.erase(found);
  return step;
}

std::optional<CompileOrder::Next> CompileOrder::take() {
  for (const Step step : {Step::kFirst, Step::kWhole}) {
    if (queue(step).empty()) continue;
    Next next{queue(step).begin()->second, step};
    remove(next.model);
    return next;
  }
  return std::nullopt;
}

}  // namespace foliot
