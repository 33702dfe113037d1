#include "sim/checker.h"

#include "base/check.h"

namespace foliot {

void Checker::on_request(const Request& request, TimePoint /*now*/) {
  ++requests_;
  FOLIOT_CHECK(open_.emplace(request.id, request.deadline).second);
}

void Checker::on_action(const Action& action, TimePoint now) {
  FOLIOT_CHECK(actions_.emplace(action.id, true).second);
  FOLIOT_CHECK(action.earliest <= action.latest && now <= action.latest);
  for (const BatchRows::Row& row : action.rows) FOLIOT_CHECK(open_.contains(row.request));
}

void Checker::on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) {
  FOLIOT_CHECK(outcome.action == action.id && actions_.erase(action.id) == 1);
  if (!outcome.done()) return;
  FOLIOT_CHECK(outcome.start >= action.earliest && outcome.start <= action.latest && outcome.end >= outcome.start);
  bool& loaded = loaded_[{action.device, action.model}];
  switch (action.type) {
    case ActionType::kLoad:
      FOLIOT_CHECK(!loaded);
      loaded = true;
      pages_loaded_[action.device] += pages_of_.at(action.model);
      ++loads_;
      break;
    case ActionType::kUnload:
      FOLIOT_CHECK(loaded);
      loaded = false;
      pages_loaded_[action.device] -= pages_of_.at(action.model);
      break;
    case ActionType::kInfer: ++execs_; break;
  }
  FOLIOT_CHECK(pages_loaded_[action.device] <= pages_total_.at(action.device));
}

void Checker::on_completion(const Completion& completion, TimePoint /*now*/) {
  const auto found = open_.find(completion.id);
  FOLIOT_CHECK(found != open_.end());
  if (completion.served()) {
    FOLIOT_CHECK(completion.finished <= found->second);
    ++served_;
  } else {
    ++refused_[completion.refusal];
  }
  open_.erase(found);
}

void Checker::on_pages(DeviceId device, uint32_t used, uint32_t total) {
  FOLIOT_CHECK(used <= total);
  pages_total_[device] = total;
}

void Checker::on_work(const char* executor, const Action& action, TimePoint start, TimePoint end) {
  const std::string name(executor);
  TimePoint& busy_until = busy_until_[{action.device, name}];
  FOLIOT_CHECK(start >= busy_until && end >= start);
  busy_until = end;
  if (name == "load" || name == "exec") FOLIOT_CHECK(start >= action.earliest && start <= action.latest);
}

void Checker::check_finished() const { FOLIOT_CHECK(open_.empty() && actions_.empty()); }

uint64_t Checker::refused(Refusal reason) const {
  const auto found = refused_.find(reason);
  return found == refused_.end() ? 0 : found->second;
}

}  // namespace foliot
