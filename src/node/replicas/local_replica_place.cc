#include "node/replicas/local_replica_place.h"

#include <fmt/format.h>

#include <future>
#include <utility>

namespace foliot {

class LocalReplicaPlace::LocalSession : public Session {
 public:
  LocalSession(LocalReplicaPlace& place, std::string kind, ModelId model)
      : place_(place), kind_(std::move(kind)), model_(model) {}

  PayloadStore& payloads() override { return place_.payloads_; }
  OutcomeSink& outcomes() override { return place_.inbox_; }
  Status join(Worker& worker) override {
    FOLIOT_ASSIGN_OR_RETURN(device_, place_.join(kind_, model_, worker));
    return Status();
  }
  // The controller has forgotten the model by then.
  void drain() override {}
  void leave() override { place_.lose(device_, kind_); }

 private:
  LocalReplicaPlace& place_;
  const std::string kind_;
  const ModelId model_;
  DeviceId device_;
};

std::unique_ptr<ReplicaPlace::Session> LocalReplicaPlace::make_session(const std::string& /*name*/,
                                                                       const std::string& kind,
                                                                       std::shared_ptr<const ModelInfo> model) {
  return std::make_unique<LocalSession>(*this, kind, model->id);
}

Result<DeviceId> LocalReplicaPlace::join(const std::string& kind, ModelId model, ActionSink& actions) {
  const MutexLock lock(mutex_);
  if (joined_ == ControllerInbox::kJoinedDevicesMax) {
    return Status::resource_exhausted(
        fmt::format("{} replicas run, as many as a server can have; lower 'replicas' in [container]", joined_));
  }
  ++joined_;
  std::vector<DeviceId>& free = free_[kind];
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

void LocalReplicaPlace::lose(DeviceId device, const std::string& kind) {
  std::promise<void> lost;
  inbox_.lose_device(device, [&lost] { lost.set_value(); });
  lost.get_future().wait();
  const MutexLock lock(mutex_);
  --joined_;
  free_.at(kind).push_back(device);
}

}  // namespace foliot
