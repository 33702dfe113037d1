// ElectionThread: makes the calls of an Election to its store, which block, on a thread of its own, and reports what
// comes of them.
//
// Threading: start() and stop() belong to one thread, the rest to any. Callbacks come from the thread of the calls.
#ifndef FOLIOT_NODE_SERVER_ELECTION_THREAD_H_
#define FOLIOT_NODE_SERVER_ELECTION_THREAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/election/election.h"
#include "cluster/election/leader_store.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/logging/logger.h"
#include "foundation/platform/thread.h"

namespace foliot {

class ElectionThread {
 public:
  struct Watch {
    std::function<void(Severity, const std::string&)> log;
    std::function<void(uint64_t epoch)> on_lead;
    std::function<void()> on_stand_by;  // it led, and leads no longer
  };

  ElectionThread(ElectionOptions options, std::unique_ptr<LeaderStore> store, Watch watch);
  ~ElectionThread() { stop(); }

  Status start();
  // Resigns, if this controller leads, so that another takes over at once; returns whether it led. Calling it again
  // does nothing.
  bool stop();
  void on_epoch_seen(uint64_t epoch);
  void on_workers(size_t count);

 private:
  void run();
  // The next call, or nothing and `until` when to ask again.
  std::optional<Election::Call> wait_for_call();
  Status make(const Election::Call& call);
  void report(const Status& called);
  void report_leader();

  const ElectionOptions options_;
  const std::unique_ptr<LeaderStore> store_;
  const Watch watch_;
  Mutex mutex_;
  Condition changed_;
  Election election_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool changed_now_ GUARDED_BY(mutex_) = false;
  // The thread's:
  std::optional<uint64_t> led_;  // as it was reported
  std::string trouble_;          // likewise; empty: none
  std::string leader_;           // likewise
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_ELECTION_THREAD_H_
