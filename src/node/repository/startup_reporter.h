// StartupReporter: an interface that reports the progress of a server's or a worker's
// start.
#ifndef FOLIOT_NODE_REPOSITORY_STARTUP_REPORTER_H_
#define FOLIOT_NODE_REPOSITORY_STARTUP_REPORTER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Of the models of a repository.
struct StartupProgress {
  size_t served = 0;
  size_t broken = 0;  // cannot be served
  size_t total = 0;
  bool complete() const { return served + broken == total; }
};

class StartupReporter {
 public:
  virtual ~StartupReporter() = default;
  // Ports are open, at `where`.
  virtual void on_listening(std::string_view /*where*/) {}
  // Its process starts.
  virtual void on_starting(std::string_view /*model*/) {}
  // `share`: in [0, 1].
  virtual void on_compiling(std::string_view model, std::string_view step, double share) = 0;
  // It is served, or the reason why not.
  virtual void on_model(std::string_view model, const Status& status) = 0;
  // After each model.
  virtual void on_progress(const StartupProgress& progress) = 0;
  virtual void on_note(std::string_view note) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_STARTUP_REPORTER_H_
