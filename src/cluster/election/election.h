// Election: one controller's part in the choice of the one that leads, as a state machine over a LeaderStore.
//
// The leader renews its record every `renew_interval`. A standby that has seen the record unchanged for
// `leader_timeout`, by its own clock, swaps itself in with a higher epoch. Safety does not rest on time: workers and
// front ends obey the highest epoch that they have seen, so two that believe to lead do no harm, and a leader whose
// store is gone serves on. That is why no lease of the store is used.
//
// A standby counts the time only while its reads of the record are at most half a timeout apart. After a pause of the
// store, or of the standby itself, it begins anew: the leader could not renew either, or not be seen to.
//
// A standby that has workers takes the lead from one that has had none for twice `leader_timeout`, by the standby's
// clock: it may have been elected while others were away, or under an address that no worker knows.
//
// At once, without waiting, leads: a process that has just begun and finds its own address in the record, since what
// led under it is over; and one that has workers, where the leader has resigned. A leader that has lost the last of its
// workers for `leader_timeout` resigns, since another may reach them.
//
// A peer may have obeyed a higher epoch than the record has, where the store lost what it kept. The leader then leads
// no longer, and leads again above that epoch.
//
// Threading: one thread at a time. The owner makes the calls: next() says which, on_read() and on_swap() take what came
// of it.
#ifndef FOLIOT_CLUSTER_ELECTION_ELECTION_H_
#define FOLIOT_CLUSTER_ELECTION_ELECTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/election/leader_store.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ElectionOptions {
  std::string address;    // by which peers reach this controller
  uint64_t instance = 0;  // another one in every process
  Duration renew_interval = Duration::milliseconds(250);
  // A standby reads this often, which adds to the timeout.
  Duration watch_interval = Duration::milliseconds(100);
  // Above the pauses of a store that is well. REQUIRES: more than twice each of the intervals.
  Duration leader_timeout = Duration::seconds(1);
};

class Election {
 public:
  enum class Kind : uint8_t { kRead, kRenew, kTake, kResign };
  struct Call {
    Kind kind = Kind::kRead;
    std::string version{};  // of a swap, which all others are
    LeaderRecord record{};  // likewise
  };

  explicit Election(ElectionOptions options) : options_(std::move(options)) {}

  // The call that is to be made now; nullopt: none, or one is under way.
  std::optional<Call> next(TimePoint now);
  // Says when next() is to be asked again at the latest. It is infinite while a call is under way.
  TimePoint wake() const;
  void on_read(const Result<StoredLeader>& result, TimePoint now);
  void on_swap(const Result<std::optional<std::string>>& result, TimePoint now);

  // A peer has obeyed this epoch.
  void on_epoch_seen(uint64_t epoch, TimePoint now);
  // So many workers are linked to this controller.
  void on_workers(size_t count, TimePoint now);
  // It leads no longer, and does not stand again. The next call says so in the store.
  void resign(TimePoint now);

  // The epoch with which it leads; nullopt: it stands by.
  std::optional<uint64_t> epoch() const { return epoch_; }
  // The store had this record last; nullopt: there is none, or it is not known.
  const std::optional<LeaderRecord>& record() const { return last_.record; }
  // True if the store was last seen with another process under this controller's address.
  bool shares_address() const;

 private:
  Call wanted() const;
  void on_record_of_leader(const StoredLeader& stored, TimePoint now);
  void on_record_of_standby(const StoredLeader& stored, TimePoint began, TimePoint now);
  bool may_lead(TimePoint seen) const;
  void stand_by(TimePoint now);

  const ElectionOptions options_;
  std::optional<uint64_t> epoch_;  // nullopt: it stands by
  uint64_t floor_ = 0;             // the highest epoch that was seen anywhere
  StoredLeader last_;
  std::optional<Call> call_;  // under way
  TimePoint call_began_;
  TimePoint next_call_;

  // These are a leader's.
  uint64_t renewal_ = 0;
  bool version_known_ = false;  // last_ is what its next swap replaces
  bool had_workers_ = false;
  bool resigning_ = false;  // its record is to say so
  bool retired_ = false;    // it does not stand again

  // These are a standby's.
  bool fresh_ = true;                   // nothing was read since the process began
  bool stands_ = false;                 // it is to swap itself in
  std::optional<TimePoint> last_seen_;  // the record, by a read that began then
  TimePoint unchanged_since_;
  std::optional<TimePoint> idle_since_;  // the leader of the record has no workers

  size_t workers_ = 0;
  TimePoint workerless_since_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_ELECTION_ELECTION_H_
