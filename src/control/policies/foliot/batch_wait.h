// BatchWait: until when a batch of one queue that is not full waits for more rows, where batches of its model may wait.
//
// A batch waits no longer than its delay, and no longer than more rows are likely to come. How far apart they come it
// learns from trials, batches that wait for the whole delay: a twentieth of the time, and less often where no rows came
// to the last ones. Clients that each wait for their answer send again within a moment of it, and then all wait: so
// that they do not fall into groups which are answered by turns, a batch also waits for those that were answered last,
// and for most of the rows that the last one had. A client that is alone never adds a row. Arrivals of a Poisson
// process come as long as is waited.
//
// Threading: none. Time is what is given.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_WAIT_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_WAIT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot::foliot_policy {

class BatchWait {
 public:
  struct Batch {
    RequestId first;    // of its requests
    TimePoint arrival;  // of that one
    Duration delay;     // for how long it may wait; 0: not at all
  };

  // Whether the last batch that began has this first request.
  bool is_of(RequestId first) const { return batch_ && batch_->first == first; }
  void begin(const Batch& batch, size_t rows, TimePoint now);
  // Whether that batch waits at all, or did.
  bool waits() const { return waits_; }
  // Whether the last batch that was sent is on this device, and not over.
  bool computes_on(DeviceId device) const { return computes_on_ == device; }
  void sent(DeviceId device, size_t rows);
  // A batch is over: its clients may ask again.
  void answered(DeviceId device, TimePoint now);
  // Returns until when the batch waits, which has so many rows; nullopt if it need not. REQUIRES: one began, and this
  // is asked whenever rows have come.
  std::optional<TimePoint> look(size_t rows, TimePoint now);

 private:
  // From a batch that waited for the whole delay.
  void learn(TimePoint end);
  Duration trial_interval() const;
  // For how long nothing has to come until nothing more is waited for.
  Duration quiet() const;
  // A row came at `arrival`.
  void note_return(TimePoint arrival);

  // The wait for one batch, over or not.
  std::optional<Batch> batch_;
  TimePoint begin_;
  TimePoint grown_;  // the last time that rows had come, or begin_
  size_t rows_ = 0;
  // Of the gaps between rows that came: in seconds, and their squares.
  double gaps_ = 0;
  double squares_ = 0;
  bool trial_ = false;  // it waits for the whole delay
  bool waits_ = false;  // it waits at all
  bool over_ = true;
  // Of the last trials, the mean length in seconds of the gap in which an instant falls; 0 if no rows came.
  static constexpr size_t kTrialsKept = 5;
  std::array<double, kTrialsKept> trials_{};
  size_t trial_count_ = 0;  // ever
  TimePoint last_trial_;
  double gap_ = 0;         // the median of those to which rows came
  bool worth_it_ = false;  // rows came to enough of them
  bool doubtful_ = false;  // the last one says otherwise: the next batch is another
  std::optional<DeviceId> computes_on_;
  size_t sent_rows_ = 0;  // of the last batch that was sent
  TimePoint answered_;
  bool returned_ = true;  // a row has come since
  Duration return_;       // from an answer to the next row: a mean of the last ones
  // Trials that have confirmed that it is not worth it, since a batch began with several rows.
  uint32_t in_vain_ = 0;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BATCH_WAIT_H_
