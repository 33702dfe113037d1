// Ids of calls that a layer above the lowest Inference gives: never those of the lowest,
// whose ids have kLayerCallBit unset, nor those of another layer.
#ifndef FOLIOT_ANSWER_INFERENCE_LAYER_CALL_ID_H_
#define FOLIOT_ANSWER_INFERENCE_LAYER_CALL_ID_H_

#include <cstdint>

#include "answer/inference/inference.h"

namespace foliot {

enum class Layer : uint8_t { kCache, kSelection };

inline constexpr uint64_t kLayerCallBit = uint64_t{1} << 31;

// `number`: of that layer's calls, below 2^56.
inline CallId layer_call_id(Layer layer, uint64_t number) {
  return CallId((number >> 24 << 32) | kLayerCallBit | (uint64_t{static_cast<uint8_t>(layer)} << 24) |
                (number & 0xffffff));
}

inline bool is_of_layer(CallId call, Layer layer) {
  return (call.value() & kLayerCallBit) != 0 && (call.value() >> 24 & 0x7f) == static_cast<uint8_t>(layer);
}

// REQUIRES: it is of a layer.
inline uint64_t layer_call_number(CallId call) { return (call.value() >> 32 << 24) | (call.value() & 0xffffff); }

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_LAYER_CALL_ID_H_
