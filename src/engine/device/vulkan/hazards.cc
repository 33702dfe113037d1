#include "engine/device/vulkan/hazards.h"

#include <fmt/format.h>

#include <algorithm>

namespace foliot {
namespace {

bool any_overlap(const std::vector<PlaceRange>& left, const std::vector<PlaceRange>& right) {
  return std::ranges::any_of(left, [&](const PlaceRange& a) {
    return std::ranges::any_of(right, [&](const PlaceRange& b) { return a.overlaps(b); });
  });
}

}  // namespace

bool UnfinishedWork::conflicts(const Dispatch& next) const {
  return any_overlap(next.reads, writes_) || any_overlap(next.writes, writes_) || any_overlap(next.writes, reads_);
}

void UnfinishedWork::add(const Dispatch& dispatch) {
  reads_.insert(reads_.end(), dispatch.reads.begin(), dispatch.reads.end());
  writes_.insert(writes_.end(), dispatch.writes.begin(), dispatch.writes.end());
}

void UnfinishedWork::clear() {
  reads_.clear();
  writes_.clear();
}

// Pair by pair, and not by UnfinishedWork, which decides where barriers are: a fault there is to be found here.
std::optional<std::string> find_hazard(std::span<const Recorded> recording) {
  std::vector<const Dispatch*> unfinished;
  size_t number = 0;
  for (const Recorded& entry : recording) {
    if (entry.dispatch == nullptr) {
      unfinished.clear();
      continue;
    }
    const Dispatch& next = *entry.dispatch;
    for (const Dispatch* earlier : unfinished) {
      if (any_overlap(next.reads, earlier->writes) || any_overlap(next.writes, earlier->writes) ||
          any_overlap(next.writes, earlier->reads)) {
        return fmt::format("dispatch {} ({})", number, to_string(next.shader));
      }
    }
    unfinished.push_back(&next);
    ++number;
  }
  return std::nullopt;
}

}  // namespace foliot
