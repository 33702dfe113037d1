// StartupReporter: told what a server or a worker does while it starts.
#ifndef FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_
#define FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "app/commands/progress_bar.h"
#include "base/status.h"
#include "base/time.h"
#include "journal/journal.h"

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
  // Ports are open; `where` says which.
  virtual void on_listening(std::string_view /*where*/) {}
  // `share`: in [0, 1].
  virtual void on_compiling(std::string_view model, std::string_view step, double share) = 0;
  // It is served, or why not.
  virtual void on_model(std::string_view model, const Status& status) = 0;
  // After each model.
  virtual void on_progress(const StartupProgress& progress) = 0;
  virtual void on_note(std::string_view note) = 0;
};

// Writes to the log, and shows people at a terminal how far it is. Progress is a line a
// second at most.
class ConsoleReporter : public StartupReporter {
 public:
  // `log` outlives this.
  explicit ConsoleReporter(Journal& log) : log_(log) {}
  void on_listening(std::string_view where) override;
  void on_compiling(std::string_view model, std::string_view step, double share) override;
  void on_model(std::string_view model, const Status& status) override;
  void on_progress(const StartupProgress& progress) override;
  void on_note(std::string_view note) override;

 private:
  Journal& log_;
  ProgressBar bar_;
  std::string compiling_;
  TimePoint next_progress_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_STARTUP_REPORTER_H_
