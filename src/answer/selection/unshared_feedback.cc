#include "answer/selection/unshared_feedback.h"

#include <algorithm>
#include <utility>

namespace foliot {

bool UnsharedFeedback::add(std::string_view context, std::shared_ptr<const LearnedFeedback> feedback) {
  if (observations_ == kObservationsMax) return false;
  auto found = parts_.find(context);
  if (found == parts_.end()) found = parts_.emplace(context, Part()).first;
  found->second.feedback.push_back(std::move(feedback));
  ++observations_;
  return true;
}

const UnsharedFeedback::Part& UnsharedFeedback::set_revision(const std::string& context, uint64_t revision) {
  Part& part = parts_[context];
  part.revision = revision;
  return part;
}

void UnsharedFeedback::shared(const std::string& context, const std::shared_ptr<const LearnedFeedback>& last,
                              uint64_t revision) {
  const auto part = parts_.find(context);
  if (part == parts_.end()) return;
  auto& feedback = part->second.feedback;
  const auto found = std::ranges::find(feedback, last);
  if (found == feedback.end()) return;
  observations_ -= static_cast<size_t>(found - feedback.begin()) + 1;
  feedback.erase(feedback.begin(), found + 1);
  part->second.revision = revision;
}

void UnsharedFeedback::forget(const std::string& context) {
  const auto found = parts_.find(context);
  if (found == parts_.end()) return;
  observations_ -= found->second.feedback.size();
  parts_.erase(found);
}

void UnsharedFeedback::clear() {
  parts_.clear();
  observations_ = 0;
}

const UnsharedFeedback::Part* UnsharedFeedback::find(std::string_view context) const {
  const auto found = parts_.find(context);
  return found == parts_.end() ? nullptr : &found->second;
}

std::vector<std::string> UnsharedFeedback::contexts() const {
  std::vector<std::string> contexts;
  for (const auto& [context, part] : parts_) {
    if (!part.feedback.empty()) contexts.push_back(context);
  }
  return contexts;
}

}  // namespace foliot
