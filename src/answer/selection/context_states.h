// ContextStates: the states of an application's policy: one for the application, and one for
// each context that had feedback, which begins as the application's (Clipper, section 3.5.3).
//
// At most `contexts_max` contexts; one more takes the place of the one that was not used for
// longest.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_CONTEXT_STATES_H_
#define FOLIOT_ANSWER_SELECTION_CONTEXT_STATES_H_

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "answer/selection/selection_policy.h"

namespace foliot {

class ContextStates {
 public:
  ContextStates(SelectionState initial, uint64_t contexts_max)
      : own_(std::move(initial)), contexts_max_(contexts_max) {}

  SelectionState& own() { return own_; }
  const SelectionState& own() const { return own_; }
  // The context's, or the application's if it has none yet.
  const SelectionState& find(std::string_view context) {
    const auto found = by_name_.find(context);
    if (found == by_name_.end()) return own_;
    states_.splice(states_.begin(), states_, found->second);
    return found->second->second;
  }
  // The context that make() of another evicts; null: none.
  const std::string* evicted_by(std::string_view context) const {
    return by_name_.contains(context) || states_.size() < contexts_max_ ? nullptr : &states_.back().first;
  }
  // The context's, made if it has none yet. REQUIRES: it is not empty.
  SelectionState& make(std::string_view context) {
    const auto found = by_name_.find(context);
    if (found != by_name_.end()) {
      states_.splice(states_.begin(), states_, found->second);
      return found->second->second;
    }
    if (states_.size() == contexts_max_) {
      by_name_.erase(states_.back().first);
      states_.pop_back();
    }
    states_.emplace_front(context, own_);
    by_name_.emplace(states_.front().first, states_.begin());
    return states_.front().second;
  }
  // Another limit from now on. Returns the contexts beyond it, which are gone.
  std::vector<std::string> set_contexts_max(uint64_t contexts_max) {
    contexts_max_ = contexts_max;
    std::vector<std::string> gone;
    while (states_.size() > contexts_max_) {
      by_name_.erase(states_.back().first);
      gone.push_back(std::move(states_.back().first));
      states_.pop_back();
    }
    return gone;
  }
  // All begin anew. Returns the contexts that there were.
  std::vector<std::string> reset(SelectionState initial) {
    std::vector<std::string> gone;
    for (const auto& [name, state] : states_) gone.push_back(name);
    by_name_.clear();
    states_.clear();
    own_ = std::move(initial);
    return gone;
  }
  uint64_t size() const { return states_.size(); }
  // Null: it has none.
  const SelectionState* peek(std::string_view context) const {
    const auto found = by_name_.find(context);
    return found == by_name_.end() ? nullptr : &found->second->second;
  }

 private:
  SelectionState own_;
  uint64_t contexts_max_;
  std::list<std::pair<std::string, SelectionState>> states_;  // the last used first
  std::unordered_map<std::string_view, std::list<std::pair<std::string, SelectionState>>::iterator> by_name_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_CONTEXT_STATES_H_
