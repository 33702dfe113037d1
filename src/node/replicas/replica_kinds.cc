#include "node/replicas/replica_kinds.h"

#include <fmt/format.h>

#include <string_view>

#include "foundation/core/model_info.h"

namespace foliot {
namespace {

// Room for ".2" and so on.
constexpr size_t kSuffixBytesMax = 8;
// The others are those of devices that compiled models run on.
constexpr size_t kContainerKindsMax = kKindsMax - 1;

// What a name of a kind may not have is '_' there.
std::string kind_of(const std::string& model) {
  std::string kind = "container:" + model;
  for (char& c : kind) {
    if (!is_kind_name(std::string_view(&c, 1))) c = '_';
  }
  return kind.substr(0, kKindBytesMax - kSuffixBytesMax);
}

}  // namespace

Result<std::string> ReplicaKinds::take(const std::string& model) {
  const MutexLock lock(mutex_);
  const std::string first = kind_of(model);
  std::string kind = first;
  const auto taken = [&]() REQUIRES(mutex_) {
    const auto found = kinds_.find(kind);
    return found != kinds_.end() && found->second;
  };
  for (int i = 2; taken(); ++i) kind = fmt::format("{}.{}", first, i);
  if (!kinds_.contains(kind) && kinds_.size() == kContainerKindsMax) {
    return Status::resource_exhausted(fmt::format(
        "there were {} container models since the start, as many as a server can have; restart it", kinds_.size()));
  }
  kinds_[kind] = true;
  return kind;
}

void ReplicaKinds::give_back(const std::string& kind) {
  const MutexLock lock(mutex_);
  kinds_.at(kind) = false;
}

}  // namespace foliot
