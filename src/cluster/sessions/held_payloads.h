// HeldPayloads: the outputs that a worker holds as inputs of later requests
// (PayloadReference in foundation/core/payload.h), counted by their consumers.
//
// A fixed amount of memory and a fixed number of payloads, taken at construction. Room is
// reserved before the outputs are computed, so that what was computed is never without
// room; the caller refuses what has none.
//
// Each payload belongs to the client whose request made it. It is freed when all its
// consumers are over, when its client or its session ends, or when its time is over.
// Handles are never used again, not even by the next process, if start_handles() follows
// the controller's clock: a stale one finds nothing.
//
// Threading: not thread-safe; one owner.
#ifndef FOLIOT_CLUSTER_SESSIONS_HELD_PAYLOADS_H_
#define FOLIOT_CLUSTER_SESSIONS_HELD_PAYLOADS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/transport/message.h"
#include "engine/worker/io_cache.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class HeldPayloads {
 public:
  // REQUIRES: payloads_max <= 65536.
  HeldPayloads(uint64_t bytes, uint32_t payloads_max);

  // Handles from now on are above all that were given out before such an instant.
  void start_handles(TimePoint controllers_time);

  // Room for tensors of these sizes, until hold() or give_back(); nullopt if there is none.
  using Place = uint32_t;
  std::optional<Place> reserve(const std::vector<uint64_t>& sizes);
  void give_back(Place place);
  // Copies the tensors, and holds them for so many consumers until `until` at the latest.
  // REQUIRES: sizes as reserved; consumers > 0.
  PayloadHandle hold(Place place, const TensorBytes& tensors, uint16_t client, uint16_t consumers, TimePoint until);

  // Its tensors, valid until the next call of another method; empty: it holds no such
  // payload of this client's.
  TensorBytes find(PayloadHandle handle, uint16_t client) const;
  // So many of its consumers are over; nothing happens where find() finds nothing.
  void consume(PayloadHandle handle, uint16_t client, uint16_t consumers);
  void free_all_of(uint16_t client);
  // Those that are held; what is reserved stays.
  void free_all();
  void free_expired(TimePoint now);

  // That are held.
  uint32_t size() const { return held_; }
  // Reserved or held.
  uint64_t used_bytes() const { return blocks_.used_bytes(); }

 private:
  struct Slot {
    IoCache::Block block;
    std::vector<uint64_t> sizes;
    uint64_t generation = 0;  // 0: not held
    uint16_t client = 0;
    uint16_t consumers = 0;
    TimePoint until;
  };
  const Slot* slot_of(PayloadHandle handle, uint16_t client) const;
  void free(Place place);
  template <typename Condition>
  void free_if(Condition condition);

  std::unique_ptr<std::byte[]> memory_;
  IoCache blocks_;
  std::vector<Slot> slots_;
  std::vector<Place> free_;
  uint64_t generation_ = 0;
  uint32_t held_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_HELD_PAYLOADS_H_
