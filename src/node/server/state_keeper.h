// StateKeeper: keeps what applications learned, behind the feedback: once a second, and when it
// stops. In a file of SQLite, which survives a restart, or in Redis, where several front ends learn
// together.
//
// Threading: one owner, and a thread of its own.
#ifndef FOLIOT_NODE_SERVER_STATE_KEEPER_H_
#define FOLIOT_NODE_SERVER_STATE_KEEPER_H_

#include <functional>
#include <string>

#include "answer/selection/selected_inference.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/platform/thread.h"

namespace foliot {

class StateKeeper {
 public:
  // `on_failure`, from that thread: why nothing can be kept, once until it can be again. What was
  // learned is then kept later, but for a file, where what was to be written is lost until it
  // changes again. The inference outlives this.
  StateKeeper(SelectedInference& inference, std::function<void(const std::string&)> on_failure)
      : inference_(inference), on_failure_(std::move(on_failure)) {}
  ~StateKeeper() { stop(); }

  // Once, after the applications are served: goes on with what is there. `place`: a file,
  // redis://HOST[:PORT][/DATABASE] or unix:PATH of a socket of Redis; its password is the
  // environment's FOLIOT_REDIS_PASSWORD. Errors: as StateFile and RedisStates.
  Status start(const std::string& place);
  // Keeps what is left. Calling it again does nothing.
  void stop();

 private:
  // Opens the place; from then on a call of it keeps what was learned since the last.
  using Keep = std::function<Status()>;
  Result<Keep> open_file(const std::string& file);
  Result<Keep> open_redis(const std::string& address);
  void run();

  SelectedInference& inference_;
  const std::function<void(const std::string&)> on_failure_;
  Keep keep_;  // of the thread, once that runs
  Mutex mutex_;
  Condition stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_STATE_KEEPER_H_
