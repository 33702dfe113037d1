// PayloadStore: the owner of the inputs and outputs of requests: the front end, or the
// load generator of a test. The worker's INPUT and OUTPUT executors reach them by
// handle.
//
// A payload stays valid until the request's one Completion has been delivered.
//
// PayloadReference: the outputs of one request where they are, as inputs of later ones:
// a stage's output stays on the worker that made it until its last consumer is done.
//
// Threading: any thread; one request's inputs and outputs are never touched by
// two threads at a time.
#ifndef FOLIOT_FOUNDATION_CORE_PAYLOAD_H_
#define FOLIOT_FOUNDATION_CORE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "foundation/core/ids.h"
#include "foundation/core/visit_reading.h"

namespace foliot {

// A payload at its holder: the worker of this device. No device: there is none, and a
// request's inputs are where it entered.
//
// Only requests of the front end whose request made it may refer to it. It ends when as
// many of them are over as that request announced (Request::consumers), with the session
// of the front end or of the worker, or after ClusterTimeouts::held_payload.
struct PayloadReference {
  std::optional<DeviceId> holder;
  PayloadHandle handle;

  explicit operator bool() const { return holder.has_value(); }
  bool operator==(const PayloadReference&) const = default;
};

inline constexpr size_t kFailureBytesMax = 512;

class PayloadStore {
 public:
  virtual ~PayloadStore() = default;
  // One row of input `index` (in ModelInfo::inputs order), dense row-major,
  // already padded to the request's bucket; of a tensor with a bound, as foundation/core/bounded_row.h
  // says. Never allocates.
  virtual std::span<const std::byte> input(PayloadHandle payload, uint32_t index) = 0;
  // Where one row of output `index` belongs; of exactly its size. Never allocates.
  virtual std::span<std::byte> output(PayloadHandle payload, uint32_t index) = 0;
  // All outputs of it are there. Of a visit of a pipeline's stage: what is read of them. Never
  // allocates.
  virtual VisitReading finish(PayloadHandle /*payload*/) { return {}; }
  // Of a run whose stages are visited elsewhere: this stage was visited, for each of no elements.
  virtual void finish_empty(PayloadHandle /*run*/, uint32_t /*stage*/) {}
  // The model's own code failed on it, for this reason: one line, at most kFailureBytesMax.
  // There is no output. Once.
  virtual void fail(PayloadHandle /*payload*/, std::string_view /*reason*/) {}
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_PAYLOAD_H_
