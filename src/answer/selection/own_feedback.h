// OwnFeedback: feedback that the process of a policy has not seen yet, by context, in the order in which it came.
//
// At most kObservationsMax of all contexts: the process may be slow, or away.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_OWN_FEEDBACK_H_
#define FOLIOT_ANSWER_SELECTION_OWN_FEEDBACK_H_

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answer/selection/unshared_feedback.h"

namespace foliot {

class OwnFeedback {
 public:
  static constexpr size_t kObservationsMax = 10'000;
  using Feedback = std::shared_ptr<const LearnedFeedback>;

  // False: there is no room.
  bool add(const std::string& context, Feedback feedback) {
    if (size_ == kObservationsMax) return false;
    by_context_[context].push_back(std::move(feedback));
    ++size_;
    return true;
  }
  // At most so many of one context, each context in turn. nullopt: there is none.
  std::optional<std::pair<std::string, std::vector<Feedback>>> take(size_t most) {
    if (by_context_.empty()) return std::nullopt;
    auto next = by_context_.upper_bound(last_);
    if (next == by_context_.end()) next = by_context_.begin();
    std::deque<Feedback>& waiting = next->second;
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting.size()));
    std::pair<std::string, std::vector<Feedback>> taken{next->first, {waiting.begin(), end}};
    waiting.erase(waiting.begin(), end);
    size_ -= taken.second.size();
    last_ = next->first;
    if (waiting.empty()) by_context_.erase(next);
    return taken;
  }
  void forget(const std::string& context) {
    const auto known = by_context_.find(context);
    if (known == by_context_.end()) return;
    size_ -= known->second.size();
    by_context_.erase(known);
  }
  void clear() {
    by_context_.clear();
    size_ = 0;
  }

 private:
  std::map<std::string, std::deque<Feedback>> by_context_;
  std::string last_;
  size_t size_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_OWN_FEEDBACK_H_
