// CompileProcess: compiles models in a process of its own, since a model file can
// contain anything. The process is confined (foundation/process/confinement.h) before it opens the
// file, and its output is checked when it is opened (engine/program/package.h). No failure of
// it affects the server.
//
// Most compilations are copies of a standby process (foundation/process/fork_server.h), of which
// there are as many as compilations at a time; only the first, where it gets the whole
// CPU, is started as a program, since there may be no other.
//
// While models are served, a compilation gets less than the whole CPU. At idle priority it may get next to
// nothing; after a while of that it is ended and begins again at nice 10, since on a
// machine that is never idle it would take for ever. (Raising its priority instead
// needs a right that few processes have.)
#ifndef FOLIOT_MODELS_REPOSITORY_COMPILE_PROCESS_H_
#define FOLIOT_MODELS_REPOSITORY_COMPILE_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/process/confinement.h"
#include "foundation/process/fork_server.h"
#include "models/repository/compile_dialogue.h"

namespace foliot {

struct CompileLimits {
  uint64_t memory_bytes = 0;  // of address space; 0: no limit
  // Of CPU, over all threads. By the clock it may take kWallTimeFactor times as long,
  // since a process in the background may have to wait for a CPU.
  Duration cpu_time = Duration::seconds(600);
  static constexpr int64_t kWallTimeFactor = 6;
  // For how long a tenth of a CPU or less is enough for one that gets leftovers.
  Duration starved_after = Duration::seconds(10);
};

// Callbacks during a compilation. Either may be empty.
struct CompileWatch {
  Progress progress;
  std::function<bool()> cancelled;  // asked several times a second
};

inline constexpr std::string_view kStandBy = "stand-by";

// Threading: any thread; each call of compile() has a process of its own.
class CompileProcess {
 public:
  // `command`: the program that runs serve_compile_request(), and its arguments. With
  // kStandBy after them it calls serve_forks() before.
  CompileProcess(std::vector<std::string> command, const CompileLimits& limits)
      : command_(std::move(command)), limits_(limits) {}

  // Compiles request.model (its limits are filled in) and writes the package into
  // the open, empty file `output`. Errors: those of compile(); kResourceExhausted
  // if a limit was reached; kUnavailable if cancelled; kInternal if the process
  // crashed.
  Status compile(CompileRequest request, int output, const CompileWatch& watch);

  // Parts of the confinement that this machine could not provide, so far.
  std::set<std::string> unconfined() const;

 private:
  // nullopt: it starved.
  std::optional<Status> try_compile(const CompileRequest& request, int output, const CompileWatch& watch);
  std::optional<Status> try_in_copy(const CompileRequest& request, int output, const CompileWatch& watch);
  std::optional<Status> follow(ChildProcess child, const CompileRequest& request, const CompileWatch& watch);
  struct Copy {
    ForkServer standby;
    ChildProcess child;
  };
  Result<Copy> start_copy(const CompileRequest& request, int output);
  Result<ForkServer> take_standby();
  std::vector<std::string> standby_command() const;

  const std::vector<std::string> command_;
  const CompileLimits limits_;
  mutable Mutex mutex_;
  std::vector<ForkServer> standbys_ GUARDED_BY(mutex_);  // without a copy
  bool has_compiled_ GUARDED_BY(mutex_) = false;
  std::set<std::string> unconfined_ GUARDED_BY(mutex_);
};

// What the process compiles for.
struct CompileTarget {
  std::function<Result<std::unique_ptr<Device>>(const CompileRequest& request)> make_device;
  // What a GPU's driver needs, if the request names one; adds it to what may be opened.
  std::function<void(Confinement& confinement)> allow_gpu;
};

// The other side, in the process: reads the request, confines itself, compiles,
// and writes the package into descriptor 3. Returns the exit code.
// REQUIRES: no threads yet.
int serve_compile_request(const CompileTarget& target);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_COMPILE_PROCESS_H_
