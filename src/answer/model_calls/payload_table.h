// PayloadTable: the rows in flight, by handle. A fixed number of slots: a handle is a
// slot's index and the number of its earlier uses, so that a released one is never
// mistaken for its successor.
//
// Classes and tenants have their shares of the slots and of the memory for bodies
// (foundation/core/queue_shares.h). A call for which others are evicted takes slots that are kept
// for this, an eighth of all, since those of the others come back only when the
// controller has refused them.
//
// Threading: acquire() and release() by I/O threads, under a lock; find(), input()
// and output() by any thread, without locks or allocation.
#ifndef FOLIOT_ANSWER_MODEL_CALLS_PAYLOAD_TABLE_H_
#define FOLIOT_ANSWER_MODEL_CALLS_PAYLOAD_TABLE_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/core/payload.h"
#include "foundation/core/queue_shares.h"
#include "foundation/core/stage_visit.h"

namespace foliot {

class PendingCall;

class PayloadTable : public PayloadStore {
 public:
  static constexpr uint32_t kRowsMax = uint32_t{1} << kVisitSlotShift;
  struct Row {
    PendingCall* call = nullptr;
    uint32_t index = 0;
  };

  // `bytes_max`: of the bodies of all calls. REQUIRES: capacity <= kRowsMax.
  explicit PayloadTable(uint32_t capacity, uint64_t bytes_max = std::numeric_limits<uint64_t>::max());
  ~PayloadTable() override;

  // One handle for each of the call's rows; false, and nothing taken, if there is no room
  // for it. Rows that are to be refused for it, as kOverload, are appended to `evicted`.
  // REQUIRES: handles.size() is the number of its rows.
  bool acquire(PendingCall& call, std::span<PayloadHandle> handles, std::vector<PayloadHandle>& evicted);
  void release(std::span<const PayloadHandle> handles);

  // Owns the call from now on, until it is given back or the table ends. REQUIRES: it has
  // handles of this table. Like give() and find_call() by the thread of its caller.
  PendingCall& keep(std::unique_ptr<PendingCall> call);
  std::unique_ptr<PendingCall> give(const PendingCall& call);
  // The call whose first row has this handle; null: none has, any more.
  PendingCall* find_call(PayloadHandle first) const;

  // Of the row, or of a visit of a stage for it. REQUIRES: the handle is in use.
  Row find(PayloadHandle payload) const;
  std::span<const std::byte> input(PayloadHandle payload, uint32_t index) override;
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override;
  VisitReading finish(PayloadHandle payload) override;
  void finish_empty(PayloadHandle run, uint32_t stage) override;
  void fail(PayloadHandle payload, std::string_view reason) override;

  uint32_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // Waits until no handle is in use, for at most so long; false if some are.
  bool wait_until_unused(Duration timeout);

 private:
  struct Slot {
    std::atomic<uint32_t> generation{0};  // odd while in use
    Row row;
    std::unique_ptr<PendingCall> kept;  // of a call's first row
  };
  // What a call takes of the shares, by the slot of its first row.
  struct Claim {
    QueueShares::Entry entry;
    bool counted = false;  // neither given back nor evicted
  };
  // Of the call that takes the slot next.
  PayloadHandle next_handle(uint32_t slot) const;
  static uint32_t slot_of(PayloadHandle payload) { return static_cast<uint32_t>(run_of(payload).value()); }

  std::vector<Slot> slots_;
  std::atomic<uint32_t> in_use_{0};
  Mutex mutex_;
  Condition unused_;  // no handle is in use
  std::vector<uint32_t> free_ GUARDED_BY(mutex_);
  std::vector<Claim> claims_ GUARDED_BY(mutex_);
  QueueShares shares_ GUARDED_BY(mutex_);
  std::vector<QueueShares::Entry> evicted_ GUARDED_BY(mutex_);  // in acquire()
  uint64_t next_sequence_ GUARDED_BY(mutex_) = 1;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_MODEL_CALLS_PAYLOAD_TABLE_H_
