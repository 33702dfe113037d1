// RequestTable: the requests that have no completion yet: those that wait, and those that actions carry. It
// bounds what waits (foundation/core/queue_shares.h) and counts it by class.
//
// Threading: not thread-safe; the controller's.
#ifndef FOLIOT_CONTROL_CONTROLLER_REQUEST_TABLE_H_
#define FOLIOT_CONTROL_CONTROLLER_REQUEST_TABLE_H_

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "control/controller/fair_share.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/queue_shares.h"
#include "foundation/core/request.h"

namespace foliot {

class RequestTable {
 public:
  struct Entry {
    Request request;
    TimePoint admitted{};
    Duration put_off{};  // of an optional one: its deadline, by so much
    Duration output{};   // its deadline is earlier by so much
    bool waits = true;   // for an action
    bool cold_start = false;
    uint32_t returns = 0;            // from workers that refused its action
    uint32_t returns_uncounted = 0;  // of these: from workers that could not have its inputs yet
    Duration work;                   // of the fair share
    bool evicted = false;
  };

  // `waiting_max`: requests that wait. `fair_share` outlives the table.
  RequestTable(uint32_t waiting_max, FairShare& fair_share);

  // nullptr: it has a completion, or never came.
  const Entry* find(RequestId request) const { return requests_.find(request); }
  // find() is about to be asked for it.
  void prefetch(RequestId request) const { requests_.prefetch(request); }
  // nullptr: it does not wait.
  const Entry* find_waiting(RequestId request) const;
  // REQUIRES: it has no completion. Holds until a request comes or ends.
  Entry& at(RequestId request);

  // Makes room for the request among those that wait. False: there is none for it. Else those in
  // evicted() give up their places, and the caller ends them.
  bool make_room(const Entry& newcomer);
  // Of the last make_room().
  std::span<const QueueShares::Entry> evicted() const { return evicted_; }
  // After make_room(). REQUIRES: its id is not in the table.
  Entry& add(const Entry& entry);
  // Waits from now on.
  void enqueue(Entry& entry);
  // The same of one whose action was refused: it keeps its place, whether or not there is room.
  void enqueue_again(Entry& entry);
  // REQUIRES: it waits.
  void dequeue(Entry& entry);
  // It has its completion. REQUIRES: it does not wait.
  Entry take(RequestId request);

  // Those that wait, in the order of admission.
  std::vector<Request> waiting(const std::function<bool(const Request&)>& which) const;
  uint64_t waiting() const { return std::accumulate(waiting_.begin(), waiting_.end(), uint64_t{0}); }
  const CountByClass& waiting_by_class() const { return waiting_; }

 private:
  static QueueShares::Entry share_of(const Entry& entry);
  uint64_t& waiting_of(const Request& request) { return waiting_[static_cast<size_t>(request.request_class())]; }

  FairShare& fair_share_;
  FlatMap<RequestId, Entry> requests_;
  QueueShares queue_shares_;
  std::vector<QueueShares::Entry> evicted_;
  CountByClass waiting_{};
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_REQUEST_TABLE_H_
