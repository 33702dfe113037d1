#include "edge/requests/answer_budget.h"

#include <fmt/format.h>

#include "foundation/base/check.h"

namespace foliot {

bool AnswerBudget::hold(const std::string& source, uint64_t bytes) {
  MutexLock lock(mutex_);
  // One answer there must be room for, however long it is.
  const uint64_t of_source = bytes_of(source);
  if (of_source > 0 && of_source + bytes > source_bytes_max()) return false;
  if (bytes_ > 0 && bytes_ + bytes > bytes_max_) return false;
  bytes_ += bytes;
  if (bytes > 0) sources_[source] += bytes;
  return true;
}

void AnswerBudget::add(const std::string& source, uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ += bytes;
  if (bytes > 0) sources_[source] += bytes;
}

void AnswerBudget::release(const std::string& source, uint64_t bytes) {
  MutexLock lock(mutex_);
  if (bytes == 0) return;
  const auto found = sources_.find(source);
  FOLIOT_CHECK(found != sources_.end() && found->second >= bytes);
  bytes_ -= bytes;
  found->second -= bytes;
  if (found->second == 0) sources_.erase(found);
}

bool AnswerBudget::is_exceeded_by(const std::string& source) const {
  MutexLock lock(mutex_);
  return bytes_ > bytes_max_ || bytes_of(source) > source_bytes_max();
}

std::string AnswerBudget::refusal(const std::string& source) const {
  return fmt::format(
      "answers that are waited for or not read fill the {} bytes that '{}' may have, or the {} bytes of all",
      source_bytes_max(), source, bytes_max());
}

uint64_t AnswerBudget::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

uint64_t AnswerBudget::bytes_of(const std::string& source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? 0 : found->second;
}

}  // namespace foliot
