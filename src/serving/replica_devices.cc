#include "serving/replica_devices.h"

#include <fmt/format.h>

#include <cctype>
#include <future>

#include "base/check.h"
#include "core/model_info.h"

namespace foliot {
namespace {

// Room for ".2" and so on.
constexpr size_t kSuffixBytesMax = 8;

// What a name of a kind may not have is '_' there.
std::string kind_of(const std::string& model) {
  std::string kind = "container:" + model;
  for (char& c : kind) {
    if (!is_kind_name(std::string_view(&c, 1))) c = '_';
  }
  return kind.substr(0, kKindBytesMax - kSuffixBytesMax);
}

}  // namespace

Result<std::string> ReplicaDevices::take_kind(const std::string& model) {
  const std::lock_guard lock(mutex_);
  const std::string first = kind_of(model);
  std::string kind = first;
  for (int i = 2; kinds_[kind].taken; ++i) kind = fmt::format("{}.{}", first, i);
  if (kinds_.size() >= kKindsMax) {
    const size_t others = kinds_.size() - 1;
    kinds_.erase(kind);
    return Status::resource_exhausted(fmt::format(
        "there were {} container models since the start, as many as a server can have; restart it", others));
  }
  kinds_[kind].taken = true;
  return kind;
}

void ReplicaDevices::give_back_kind(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  kinds_.at(kind).taken = false;
}

Result<DeviceId> ReplicaDevices::join(const std::string& kind, ModelId model, ActionSink& actions) {
  const std::lock_guard lock(mutex_);
  if (joined_ == ControllerInbox::kJoinedDevicesMax) {
    return Status::resource_exhausted(
        fmt::format("{} replicas run, as many as a server can have; lower 'replicas' in [container]", joined_));
  }
  ++joined_;
  std::vector<DeviceId>& free = kinds_.at(kind).free;
  DeviceId device(next_);
  if (free.empty()) {
    ++next_;
  } else {
    device = free.back();
    free.pop_back();
  }
  inbox_.join_device(device, kind, model, actions);
  return device;
}

void ReplicaDevices::lose(DeviceId device, const std::string& kind) {
  std::promise<void> lost;
  inbox_.lose_device(device, [&lost] { lost.set_value(); });
  lost.get_future().wait();
  const std::lock_guard lock(mutex_);
  --joined_;
  kinds_.at(kind).free.push_back(device);
}

}  // namespace foliot
