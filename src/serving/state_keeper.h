// StateKeeper: writes what applications learned to their file, behind the feedback: once a
// second, and when it stops.
//
// Threading: one owner, and a thread of its own.
#ifndef FOLIOT_SERVING_STATE_KEEPER_H_
#define FOLIOT_SERVING_STATE_KEEPER_H_

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/status.h"
#include "platform/thread.h"
#include "selection/selected_inference.h"
#include "selection/state_file.h"

namespace foliot {

class StateKeeper {
 public:
  // `on_failure`: of a write, from that thread; what was to be written is lost until it changes
  // again. The inference outlives this.
  StateKeeper(SelectedInference& inference, std::function<void(const std::string&)> on_failure)
      : inference_(inference), on_failure_(std::move(on_failure)) {}
  ~StateKeeper() { stop(); }

  // Once, after the applications are served: restores what the file has. Errors: as StateFile.
  Status start(const std::filesystem::path& file);
  // Writes what is left. Calling it again does nothing.
  void stop();

 private:
  void run();

  SelectedInference& inference_;
  const std::function<void(const std::string&)> on_failure_;
  std::optional<StateFile> file_;  // of the thread, once that runs
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // guarded by mutex_
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_SERVING_STATE_KEEPER_H_
