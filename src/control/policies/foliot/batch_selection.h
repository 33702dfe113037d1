// BatchSelection: the choice of the batch that a device runs next.
//
// All that waits for models that the device holds is cut into batches that can
// still be met, of sizes that serve rows as fast as any smaller one does.
// If they cannot all be met one after the other, those that give
// the least for their time are left out (Moore and Hodgson's rule for the fewest
// late jobs on one machine, with a weight). So under overload time goes to large
// batches, whose requests may be anywhere in the queue (Symphony's "window drop").
// Of what is left, the batch that has to start first is run; under overload the one
// that the fewest rows are expected to join while it can wait, if the rest can still
// be met.
//
// Of requests of one queue with the same deadline the first to arrive are served first, also
// where the batches that they would have been in are left out.
//
// A batch whose EXEC would make requests of other models late (blocking_cost.h) is held back
// until its rows have waited for a larger share of their time than that of them it makes
// late, or a size is full that makes the fewest late for each row. That of a model within its share is
// not held back where the device can run it in parts (batch_parts.h) that make fewer late. Rejected: those
// of other models too, which then run before they have grown.
//
// A batch that is not full waits for as long as its model's batch_delay, or worthwhile_delay(), lets it and rows come
// (batch_wait.h), while it has time and not more waits than can be met.
//
// Requests without a deadline fill batches that have room, and run by themselves
// where nothing with a deadline has to wait for them longer than it can: it is met
// afterwards, or by another device that holds its model.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_SELECTION_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_SELECTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/controller/exec_of_rows.h"
#include "control/policies/foliot/batch.h"
#include "control/policies/foliot/batch_parts.h"
#include "control/policies/foliot/batch_wait.h"
#include "control/policies/foliot/blocking_cost.h"
#include "control/policies/foliot/board.h"

namespace foliot::foliot_policy {

class BatchSelection {
 public:
  BatchSelection(const Board& board, const BatchParts& parts) : board_(board), parts_(parts), blocking_(board) {}

  // Returns what to start on these lanes of the device at `start`, or on fewer (Batch::lanes_max), as decided at `now`;
  // nullopt if nothing can be met.
  // `best_effort_max`: the longest EXEC of several rows without a deadline that may
  // be in the way of requests that are yet to come; one row may always.
  std::optional<Batch> choose(DeviceId device, LaneInterval lanes, TimePoint now, TimePoint start,
                              Duration best_effort_max);
  // Of the last choice, after its batch was sent: the batch of another queue that could be run behind it, on the same
  // lanes.
  std::optional<Batch> next_after(const Batch& chosen, DeviceId device, TimePoint start) const;
  // Requests are refused as they come, for want of time: batches that are to be full are run as admission.h has planned
  // them, though some of their rows have not come.
  void set_crowded(bool crowded) { crowded_ = crowded; }
  // A batch of the queue was sent to a device, or is over there.
  void on_sent(const Batch& batch, DeviceId device);
  void on_answered(QueueKey key, DeviceId device, TimePoint now);
  // When to choose again for the device that choose() was last asked for, since a batch was
  // held back; infinite if none was.
  TimePoint held_until() const { return held_until_; }

 private:
  // Of an EXEC on as many lanes as are chosen for.
  Duration exec(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const {
    return board_.cluster().durations().exec({device, model, bucket, batch_index, width_index_});
  }
  std::span<const Duration> execs(DeviceId device, ModelId model, BucketId bucket) const {
    return board_.cluster().durations().execs(device, model, bucket, width_index_);
  }
  // One queue, on the device that is chosen for.
  struct Queue {
    ModelId model;
    BucketId bucket;
    const ModelState& state;
    const RequestQueue& requests;
    std::span<const uint32_t> sizes;
    std::span<const Duration> execs;  // by size
    DenseSizes dense;                 // of which batches are cut
    Duration margin;
  };
  void cut(const Queue& queue, TimePoint start);
  // True if a result that it computed now would only wait for others that are not out yet.
  bool waits_for_output(DeviceId device, ModelId model, Duration exec, TimePoint now, TimePoint start);
  // Returns whether rows without a deadline, of which the first came at `arrival`, wait for the outcome of their
  // model's outstanding EXEC: their own takes less time than the way of its action. Sent ahead, it would end hardly
  // sooner, and each row that comes meanwhile would cost one of its own, with its wake-ups. They wait for a few such
  // ways at most.
  bool may_be_joined(DeviceId device, QueueKey key, size_t rows, TimePoint arrival, TimePoint now);
  // In these, `dense` is a position in Queue::dense.
  void cut_range(const Queue& queue, size_t begin, size_t end, uint32_t dense_max);
  bool worth_running(const Queue& queue, uint32_t dense, size_t rows) const;
  void add(const Queue& queue, uint32_t batch_index, size_t first, size_t rows);
  bool can_wait(DeviceId device, Duration cost, TimePoint start, Duration wanted) const;
  // What the other devices that hold its model have before the batch has to start.
  Duration time_elsewhere(DeviceId device, const Batch& batch, TimePoint start) const;
  // Drops what cannot be met beside the rest; the first of batches_ that was not
  // dropped is then the one that has to start first. Returns the time that the rest takes.
  Duration drop_what_is_too_much(TimePoint start);
  // Under overload: of the batches that could be run first with no other late for it, the one
  // that the fewest rows are expected to join as long as it can wait.
  size_t least_growing(DeviceId device, TimePoint now, TimePoint start) const;
  double growth_of(DeviceId device, const Batch& batch, TimePoint now, TimePoint start) const;
  // Moves the batch to the first of the requests with the deadline of its own first, which
  // may be in a batch that is dropped.
  void begin_with_first_equal(Batch& batch) const;
  // The first of what is neither dropped nor held back, as it should be run.
  std::optional<size_t> first_to_run(DeviceId device, TimePoint now, TimePoint start, Duration wanted);
  // nullptr: no batch of the queue could wait so far.
  BatchWait* find_wait(QueueKey key);
  // For how long a batch that begins with `head` may wait for more rows.
  Duration batch_delay(DeviceId device, QueueKey key, const RequestQueue::Entry& head, TimePoint now) const;
  // Whether the batch that begins at `first` of a queue, where `rows` wait, should wait for more of them.
  // `latest`: when it has to start.
  bool delayed(DeviceId device, QueueKey key, size_t first, size_t rows, TimePoint now, TimePoint start,
               TimePoint latest);
  // Whether the batch should wait for more rows, or never run; makes it smaller if that is
  // better.
  bool hold_back(DeviceId device, Batch& batch, TimePoint now, TimePoint start, Duration wanted);
  // Returns how many requests of other models are late if the batch takes these lanes until `end`: those that cannot
  // wait until some lane of the device is free.
  double lost(DeviceId device, ModelId model, LaneInterval taken, TimePoint end, TimePoint now);
  // Returns when the first lane is free, but for these; infinite if there is no other.
  TimePoint first_free(DeviceId device, LaneInterval but, TimePoint now) const;
  // Returns whether the batch leaves lanes to them: it takes fewer of those that are chosen for, as many as it is in
  // time on.
  bool take_fewer_lanes(DeviceId device, Batch& batch, TimePoint now, TimePoint start, double lost_max);
  // Returns whether it waits until another lane is free, and still is in time.
  bool wait_for_lane(DeviceId device, const Batch& batch, TimePoint now, TimePoint start);
  // How many of other models it would make late in parts, at most; infinite if it cannot be divided.
  double lost_in_parts(DeviceId device, const Batch& batch, TimePoint now, TimePoint start);
  // How long more rows are waited for, in mean gaps between arrivals, and how many there were
  // when a batch was last held back for them; 0 if it was not.
  struct Awaited {
    double gaps;
    uint32_t rows;
  };
  Awaited& awaited(ModelId model);
  struct Choice {
    bool run = false;
    uint32_t batch_index = 0;
    uint32_t rows = 0;
    // Otherwise: when a size that its rows fill is worth what it makes late.
    TimePoint worth_it = TimePoint::infinite_future();
  };
  // Of the sizes that what is queued from its first request on can fill.
  Choice best_size(DeviceId device, const Batch& batch, TimePoint now, TimePoint start);
  // Of the sizes that are filled, the one that makes the fewest late for each row. True if a larger one would make
  // fewer.
  bool fewest_late(DeviceId device, const Batch& batch, TimePoint now, TimePoint start, Choice& choice);
  // When the batch has to start in this size.
  TimePoint latest_start(DeviceId device, const Batch& batch, uint32_t batch_index) const {
    return latest_start(device, batch, exec(device, batch.model, batch.bucket, batch_index));
  }
  TimePoint latest_start(DeviceId device, const Batch& batch, Duration exec) const;
  // False if it has waited for as long as it should.
  bool wait_for_rows(DeviceId device, const Batch& batch, TimePoint now, TimePoint start, TimePoint until);
  // The densest batch of requests without a deadline; of several rows only if it
  // takes no longer than this.
  std::optional<Batch> best_effort(DeviceId device, TimePoint now, TimePoint start, Duration several_rows_max);
  const Batch& taken(const Batch& best_effort);
  bool best_effort_goes_before(double density, const RequestQueue::Place& head, const Batch& other) const;
  void fill_up(DeviceId device, Batch& batch) const;

  const Board& board_;
  const BatchParts& parts_;
  // What is chosen for, of so many lanes.
  LaneInterval lanes_{0, 1};
  uint32_t width_index_ = 0;
  uint32_t lane_count_ = 1;
  BlockingCost blocking_;
  std::vector<Awaited> awaited_;                     // by model
  std::vector<std::vector<BatchWait>> batch_waits_;  // of models whose batches may wait, by model and bucket
  TimePoint held_until_ = TimePoint::infinite_future();
  std::vector<Batch> batches_;
  std::vector<uint32_t> kept_;  // heap of positions in batches_: the least dense first
  uint64_t best_effort_batches_ = 0;
  std::vector<bool> dropped_;  // by position in batches_; or held back
  // Not all batches fit one after the other, each at its cheapest: they are sorted then.
  bool overloaded_ = false;
  bool crowded_ = false;  // set_crowded()
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_SELECTION_H_
