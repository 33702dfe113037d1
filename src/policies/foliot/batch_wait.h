// BatchWait: until when a batch of one queue that is not full waits for more rows, where batches of its model may wait.
//
// A batch waits no longer than its delay, and no longer than more rows are likely to come. How far apart they come it
// learns from trials, batches that wait for the whole delay: a twentieth of the time, and less often where no rows came
// to the last ones. Clients that each wait for their answer send again within a moment of it, and then all wait; a
// client that is alone never adds a row. Arrivals of a Poisson process come as long as is waited.
//
// Threading: none. Time is what is given.
#ifndef FOLIOT_POLICIES_FOLIOT_BATCH_WAIT_H_
#define FOLIOT_POLICIES_FOLIOT_BATCH_WAIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "core/ids.h"

namespace foliot::foliot_policy {

class BatchWait {
 public:
  // Of a batch `first` is the first request, which came at `arrival`; `rows` wait for it. Returns until when it waits;
  // nullopt if it need not. `delay`: the longest, above 0. REQUIRES: asked whenever rows have come.
  std::optional<TimePoint> look(RequestId first, TimePoint arrival, size_t rows, TimePoint now, Duration delay);

 private:
  void begin(RequestId first, size_t rows, TimePoint now, Duration delay);
  // From a batch that waited for the whole delay.
  void learn(TimePoint end);
  Duration trial_interval(Duration delay) const;
  // For how long nothing has to come until nothing more is waited for.
  Duration quiet(Duration delay) const;

  // The wait for one batch, over or not.
  std::optional<RequestId> first_;
  TimePoint begin_;
  TimePoint grown_;  // the last time that rows had come, or begin_
  size_t rows_ = 0;
  // Of the gaps between rows that came: in seconds, and their squares.
  double gaps_ = 0;
  double squares_ = 0;
  bool trial_ = false;  // it waits for the whole delay
  bool over_ = true;
  // Of the last trials, each a part of what the one behind it counts.
  double trials_ = 0;
  double gained_ = 0;  // those to which rows came
  double all_gaps_ = 0;
  double all_squares_ = 0;
  uint32_t in_vain_ = 0;  // the last trials to which no rows came, and since which no batch began with several
  TimePoint last_trial_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_POLICIES_FOLIOT_BATCH_WAIT_H_
