// StageOutputs: what visits of pipelines' stages have computed on a worker, held for later
// stages of the same runs until the controller discards it (DISCARD).
//
// Memory and limits are those of HeldPayloads, where the tensors are.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CLUSTER_SESSIONS_STAGE_OUTPUTS_H_
#define FOLIOT_CLUSTER_SESSIONS_STAGE_OUTPUTS_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cluster/sessions/held_payloads.h"
#include "cluster/transport/message.h"
#include "foundation/core/ids.h"

namespace foliot {

class StageOutputs {
 public:
  // `held` outlives it.
  explicit StageOutputs(HeldPayloads& held) : held_(held) {}

  // In the place of those of an earlier try of this visit.
  void hold(RequestId visit, HeldPayloads::Place place, const TensorBytes& outputs);
  // Some of its outputs, by their positions, valid until the next call of another method; empty: it holds
  // nothing of this visit, or not these.
  TensorBytes find(RequestId visit, const std::vector<uint32_t>& positions) const;
  void discard(RequestId visit);
  // With what HeldPayloads has freed of this client, or of all.
  void forget_client(uint16_t client);
  void forget_all() { handles_.clear(); }

 private:
  HeldPayloads& held_;
  std::unordered_map<RequestId, PayloadHandle> handles_;  // by visit
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_STAGE_OUTPUTS_H_
