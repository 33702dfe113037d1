#include "edge/http/decode_queue.h"

#include <algorithm>

namespace foliot {

void DecodeQueue::add(const std::string& source, Work work) {
  Source& of = sources_[source];
  if (of.waiting.empty()) of.used = std::max(of.used, now_);
  of.waiting.push_back(std::move(work));
}

std::optional<DecodeQueue::Piece> DecodeQueue::take() {
  auto least = sources_.end();
  for (auto source = sources_.begin(); source != sources_.end();) {
    if (source->second.waiting.empty() && source->second.used <= now_) {
      source = sources_.erase(source);
      continue;
    }
    const bool is_less =
        !source->second.waiting.empty() && (least == sources_.end() || source->second.used < least->second.used);
    if (is_less) least = source;
    ++source;
  }
  if (least == sources_.end()) return std::nullopt;
  now_ = std::max(now_, least->second.used);
  Piece piece{least->first, std::move(least->second.waiting.front())};
  least->second.waiting.pop_front();
  return piece;
}

void DecodeQueue::charge(const std::string& source, Duration spent) {
  sources_[source].used += spent;
  // The one that was served has its part, too.
  int64_t parts = sources_[source].waiting.empty() ? 1 : 0;
  for (const auto& [name, of] : sources_) parts += of.waiting.empty() ? 0 : 1;
  now_ = now_ + Duration::nanoseconds(spent.nanoseconds() / parts);
}

}  // namespace foliot
