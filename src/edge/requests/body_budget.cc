#include "edge/requests/body_budget.h"

#include <fmt/format.h>

#include "foundation/base/check.h"

namespace foliot {

bool BodyBudget::resize(const std::string& source, uint64_t held, uint64_t bytes) {
  MutexLock lock(mutex_);
  const uint64_t others = source.empty() ? 0 : bytes_of(source) - held;  // other bodies of the source
  FOLIOT_CHECK(bytes_ >= held);
  const uint64_t all = bytes_ - held + bytes;
  if (bytes > held) {
    if (all > bytes_max_) return false;
    // One body there must be room for, however long it is.
    if (others > 0 && others + bytes > bytes_max_ - all) return false;
  }
  bytes_ = all;
  if (!source.empty()) set(source, others + bytes);
  return true;
}

void BodyBudget::add(const std::string& source, uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ += bytes;
  set(source, bytes_of(source) + bytes);
}

bool BodyBudget::is_exceeded_by(const std::string& source) const {
  MutexLock lock(mutex_);
  return bytes_of(source) > bytes_free();
}

std::string BodyBudget::refusal(const std::string& source, uint64_t held) const {
  MutexLock lock(mutex_);
  if (bytes_ <= held) {
    return fmt::format(
        "the body, or what is made of it, is longer than the {} bytes for all bodies (--bodies-max); send fewer rows, "
        "or raise that",
        bytes_max_);
  }
  if (source.empty() || bytes_of(source) <= held) {
    return fmt::format("requests under way fill the {} bytes for bodies (--bodies-max); try again", bytes_max_);
  }
  return fmt::format(
      "bodies of '{}' under way take {} bytes, and {} of the {} for all bodies (--bodies-max) are free: it may have as "
      "many as are free; try again",
      source, bytes_of(source), bytes_free(), bytes_max_);
}

uint64_t BodyBudget::bytes_of(const std::string& source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? 0 : found->second;
}

void BodyBudget::set(const std::string& source, uint64_t bytes) {
  if (bytes > 0) {
    sources_[source] = bytes;
  } else {
    sources_.erase(source);
  }
}

}  // namespace foliot
