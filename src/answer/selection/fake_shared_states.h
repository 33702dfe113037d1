// FakeSharedStates: shared states in memory, for tests: a store that fails when a test says so,
// before a batch is written or before its answer arrives.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_FAKE_SHARED_STATES_H_
#define FOLIOT_ANSWER_SELECTION_FAKE_SHARED_STATES_H_

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "answer/selection/shared_states.h"

namespace foliot {

class FakeSharedStates final : public SharedStates {
 public:
  enum class Failure : uint8_t { kNone, kBefore, kAfter };
  // Of the next calls; kAfter is as kBefore for a read.
  void fail(std::function<Failure()> next) { next_failure_ = std::move(next); }
  // All of an application, by context.
  std::map<std::string, SharedState> states(const std::string& application) const {
    const auto found = kept_.find(application);
    return found == kept_.end() ? std::map<std::string, SharedState>() : found->second.states;
  }
  void put(const std::string& application, const std::string& context, const std::string& bytes) {
    kept_[application].states[context] = {context, ++revision_, bytes};
  }
  void lose_all() { kept_.clear(); }

  Result<std::vector<SharedState>> read(const std::string& application, uint64_t revision) override {
    if (next_failure_() != Failure::kNone) return unavailable();
    std::vector<SharedState> found;
    for (const auto& [context, state] : kept_[application].states) {
      if (state.revision > revision) found.push_back(state);
    }
    std::ranges::sort(found, {}, &SharedState::revision);
    if (found.size() > kStatesMax) found.resize(kStatesMax);
    return found;
  }

  Result<std::vector<Written>> write(const std::string& application, const std::string& writer,
                                     const StateBatch& batch) override {
    const Failure failure = next_failure_();
    if (failure == Failure::kBefore) return unavailable();
    Kept& kept = kept_[application];
    auto& [number, answers] = kept.answers[writer];
    if (number != batch.number) {
      number = batch.number;
      answers.clear();
      for (const SharedState& one : batch.writes) answers.push_back(write(kept, one));
      evict(kept, batch.contexts_max);
    }
    if (failure == Failure::kAfter) return unavailable();
    return answers;
  }

 private:
  struct Kept {
    std::map<std::string, SharedState> states;
    std::map<std::string, std::pair<uint64_t, std::vector<Written>>> answers;  // by writer
  };

  static Status unavailable() { return Status::unavailable("the fake store is out of reach"); }
  Written write(Kept& kept, const SharedState& one) {
    const auto found = kept.states.find(one.context);
    const uint64_t revision = found == kept.states.end() ? 0 : found->second.revision;
    if (revision != one.revision) return {revision, found == kept.states.end() ? "" : found->second.bytes};
    kept.states[one.context] = {one.context, ++revision_, one.bytes};
    return {revision_};
  }
  static void evict(Kept& kept, uint64_t contexts_max) {
    while (kept.states.size() - kept.states.count("") > contexts_max) {
      const auto first = std::ranges::min_element(kept.states, {}, [](const auto& entry) {
        return entry.first.empty() ? ~uint64_t{0} : entry.second.revision;
      });
      kept.states.erase(first);
    }
  }

  uint64_t revision_ = 0;
  std::map<std::string, Kept> kept_;
  std::function<Failure()> next_failure_ = [] { return Failure::kNone; };
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_FAKE_SHARED_STATES_H_
