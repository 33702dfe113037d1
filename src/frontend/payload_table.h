// PayloadTable: the rows in flight, by handle. A fixed number of slots: a handle
// is a slot's index and how often the slot was used before, so that one that has
// been given back is never mistaken for its successor.
//
// Threading: acquire() and release() by I/O threads, under a lock; find(), input()
// and output() by any thread, without locks or allocation.
#ifndef FOLIOT_FRONTEND_PAYLOAD_TABLE_H_
#define FOLIOT_FRONTEND_PAYLOAD_TABLE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/payload.h"

namespace foliot {

class PendingCall;

class PayloadTable : public PayloadStore {
 public:
  struct Row {
    PendingCall* call = nullptr;
    uint32_t index = 0;
  };

  explicit PayloadTable(uint32_t capacity);

  // One handle for each of the call's rows; false, and nothing taken, if fewer
  // slots are free. REQUIRES: handles.size() is the number of its rows.
  bool acquire(PendingCall& call, std::span<PayloadHandle> handles);
  void release(std::span<const PayloadHandle> handles);

  // REQUIRES: the handle is in use.
  Row find(PayloadHandle payload) const;
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override;
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override;

  uint32_t in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<uint32_t> generation{0};  // odd while in use
    Row row;
  };

  std::vector<Slot> slots_;
  std::atomic<uint32_t> in_use_{0};
  std::mutex mutex_;
  std::vector<uint32_t> free_;  // guarded by mutex_
};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_PAYLOAD_TABLE_H_
