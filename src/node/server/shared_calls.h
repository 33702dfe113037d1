// Calls of personal models for one user, and their answers, as bytes that front ends pass on to each other.
#ifndef FOLIOT_NODE_SERVER_SHARED_CALLS_H_
#define FOLIOT_NODE_SERVER_SHARED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "answer/inference/personal_service.h"
#include "cluster/transport/wire.h"

namespace foliot {

enum class SharedMethod : uint8_t { kPredict, kTopK, kObserve, kForget };

// What one user's part of a call asks for.
struct SharedCall {
  SharedMethod method = SharedMethod::kPredict;
  uint64_t k = 0;                               // of kTopK
  std::vector<uint64_t> items{};                // of kPredict and kTopK
  std::vector<ItemObservation> observations{};  // of kObserve; of this user

  bool changes() const { return method == SharedMethod::kObserve || method == SharedMethod::kForget; }
};

WireBytes encode(const SharedCall& call);
// nullopt: it is no call.
std::optional<SharedCall> decode_shared_call(uint64_t user, std::span<const std::byte> bytes);

WireBytes encode(const PersonalResult& result);
// nullopt: it is no answer.
std::optional<PersonalResult> decode_shared_result(std::span<const std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_SHARED_CALLS_H_
