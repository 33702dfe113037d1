// ProcessWorkerPool: a pool of child processes of this machine, each a worker: what a kind's
// command starts, with `--name KIND-NUMBER --kind KIND`.
//
// A worker leaves by SIGTERM, at which it finishes what it was given, and is killed if it takes
// longer than `leave_most`. One that ends by itself is started again, after 1 s, 2 s and so on up to
// 30 s if it ends again and again. All end with the thread that calls attend().
#ifndef FOLIOT_CONTROL_FLEET_POOLS_PROCESS_WORKER_POOL_H_
#define FOLIOT_CONTROL_FLEET_POOLS_PROCESS_WORKER_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/fleet/scalers/worker_pool.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/process/child_process.h"

namespace foliot {

struct ProcessWorkerPoolOptions {
  // By kind: a program's path, and arguments.
  std::map<std::string, std::vector<std::string>, std::less<>> commands;
  Duration leave_most = Duration::seconds(40);
};

// Threading: one thread.
class ProcessWorkerPool : public WorkerPool {
 public:
  // `on_line` is given each line that a worker writes, and what becomes of it.
  using OnLine = std::function<void(std::string_view worker, std::string_view line)>;
  ProcessWorkerPool(ProcessWorkerPoolOptions options, OnLine on_line);
  // Kills those that are left.
  ~ProcessWorkerPool() override = default;

  Result<uint32_t> size(std::string_view kind) override;
  Status set_size(std::string_view kind, uint32_t workers) override;
  std::optional<std::string> next_to_leave(std::string_view kind) override;

  // Starts those that are missing, lets those leave that are too many, and reads what they
  // write. REQUIRES: `now` never goes back.
  void attend(TimePoint now);
  // Until attend() may have something to do or `also` can be read, at most for `timeout`.
  void wait(Duration timeout, int also) const;
  // Processes that run.
  size_t running() const;

 private:
  struct Worker {
    std::string name;
    std::optional<ChildProcess> process{};
    std::string said{};  // not a whole line yet
    std::string complained{};
    TimePoint started{};
    std::optional<TimePoint> leaving{};  // since when
    TimePoint next_start{};
    uint32_t ends_in_a_row = 0;
  };
  struct Kind {
    std::string name;
    std::vector<std::string> command;
    uint32_t size = 0;
    std::vector<Worker> workers{};  // by number; those beyond `size` leave
  };
  Kind* find(std::string_view kind);
  void start(const Kind& kind, Worker& worker, TimePoint now);
  void read(Worker& worker, TimePoint now);
  void note_end(Worker& worker, TimePoint now);
  void let_leave(Worker& worker, TimePoint now);
  void pass_lines(const Worker& worker, std::string& text, bool whole) const;

  const Duration leave_most_;
  const OnLine on_line_;
  std::vector<Kind> kinds_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_POOLS_PROCESS_WORKER_POOL_H_
