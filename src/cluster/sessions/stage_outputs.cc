#include "cluster/sessions/stage_outputs.h"

#include "cluster/transport/client_ids.h"

namespace foliot {

void StageOutputs::hold(RequestId visit, HeldPayloads::Place place, const TensorBytes& outputs) {
  discard(visit);
  handles_[visit] = held_.hold(place, outputs, client_of(visit), 1, TimePoint::infinite_future());
}

TensorBytes StageOutputs::find(RequestId visit, const std::vector<uint32_t>& positions) const {
  const auto handle = handles_.find(visit);
  if (handle == handles_.end()) return {};
  const TensorBytes all = held_.find(handle->second, client_of(visit));
  TensorBytes chosen;
  for (const uint32_t position : positions) {
    if (position >= all.size()) return {};
    chosen.push_back(all[position]);
  }
  return chosen;
}

void StageOutputs::discard(RequestId visit) {
  const auto handle = handles_.find(visit);
  if (handle == handles_.end()) return;
  held_.consume(handle->second, client_of(visit), 1);
  handles_.erase(handle);
}

void StageOutputs::forget_client(uint16_t client) {
  std::erase_if(handles_, [client](const auto& entry) { return client_of(entry.first) == client; });
}

}  // namespace foliot
