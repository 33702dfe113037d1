// ForkServer: a process that has its program loaded and copies itself for each job.
//
// A program's start, which is the linker's and the kernel's work, can take longer than
// its job, and does not yield (foundation/process/periodic_yield.h). A copy starts in a fraction
// of a millisecond, with none of the memory of the process that asked for it.
#ifndef FOLIOT_FOUNDATION_PROCESS_FORK_SERVER_H_
#define FOLIOT_FOUNDATION_PROCESS_FORK_SERVER_H_

#include <string>
#include <utility>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/process/child_process.h"

namespace foliot {

// Threading: one thread. The process ends with the thread that started it.
class ForkServer {
 public:
  // `command`: a program that calls serve_forks(). Errors: those of ChildProcess::start().
  static Result<ForkServer> start(const std::vector<std::string>& command, const std::vector<std::string>& environment);

  // A copy, with `input` as its standard input and `output_file`, if there is one, as
  // its descriptor 3. REQUIRES: the child before it has gone, or ended.
  // Errors: kUnavailable if the server's process is gone; kResourceExhausted.
  Result<ChildProcess> fork(const std::string& input, int output_file);

 private:
  ForkServer(ChildProcess process, Descriptor control) : process_(std::move(process)), control_(std::move(control)) {}

  ChildProcess process_;
  Descriptor control_;
};

// In the server's process: returns in each copy, and never in the original.
// REQUIRES: no threads, and nothing read or written yet.
void serve_forks();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_FORK_SERVER_H_
