// EventLog: every action and request, as a line of CSV, for plots and for asking
// afterwards what happened.
//
//   kind,id,type,model,batch,start_us,end_us,expected_us,earliest_us,latest_us,status
//
// kind is "action" (type: LOAD, UNLOAD, INFER; earliest and latest: the window in
// which it was to begin) or "request" (start: arrival, latest: deadline; empty
// where there is none). Times count from the start of the log. The log never holds up the controller:
// when the writer is behind by more than kCapacity lines, lines are dropped and
// counted in the last line of the file.
#ifndef FOLIOT_APP_EVENT_LOG_H_
#define FOLIOT_APP_EVENT_LOG_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/spsc_ring.h"
#include "base/status.h"
#include "core/observer.h"
#include "platform/parker.h"
#include "platform/thread.h"

namespace foliot {

// Threading: Observer's calls from the controller's loop; a thread of its own writes.
class EventLog : public Observer {
 public:
  // Errors: kInvalidArgument if the file cannot be written.
  static Result<std::unique_ptr<EventLog>> open(const std::filesystem::path& file, TimePoint origin);
  // Writes what is left. REQUIRES: no more calls.
  ~EventLog() override;

  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;
  void on_model(const ModelInfo& model) override;

 private:
  static constexpr size_t kCapacity = 65536;
  struct Line {
    bool is_action = false;
    ActionType type = ActionType::kInfer;
    uint64_t id = 0;
    ModelId model;
    std::shared_ptr<const std::string> model_name;
    uint32_t batch_size = 0;
    TimePoint start;
    TimePoint end;
    Duration expected;
    TimePoint earliest;
    TimePoint latest;
    std::string_view status;  // of a constant
  };

  EventLog(std::FILE* file, TimePoint origin);
  void push(Line line);
  void run();
  void write_lines();

  std::FILE* file_;
  TimePoint origin_;
  std::vector<std::shared_ptr<const std::string>> names_;  // by ModelId
  SpscRing<Line> ring_{kCapacity};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> stopping_{false};
  Parker parker_;
  Thread thread_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_EVENT_LOG_H_
