// PayloadStore: the owner of the inputs and outputs of requests: the front end, or the
// load generator of a test. The worker's INPUT and OUTPUT executors reach them by
// handle.
//
// A payload stays valid until the request's one Completion has been delivered.
//
// Threading: any thread; one request's inputs and outputs are never touched by
// two threads at a time.
#ifndef FOLIOT_CORE_PAYLOAD_H_
#define FOLIOT_CORE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ids.h"

namespace foliot {

class PayloadStore {
 public:
  virtual ~PayloadStore() = default;
  // One row of input `index` (in ModelInfo::inputs order), dense row-major,
  // already padded to the request's bucket. Never allocates.
  virtual std::span<const std::byte> input(PayloadHandle payload, uint32_t index) = 0;
  // Where one row of output `index` belongs; of exactly its size. Never allocates.
  virtual std::span<std::byte> output(PayloadHandle payload, uint32_t index) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CORE_PAYLOAD_H_
