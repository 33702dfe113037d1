// ChildProcess: a program in a process of its own, whose output and end the parent
// reads.
//
// The child gets no descriptor but those named here, no blocked signal, a process
// group of its own (an interrupt at the terminal is the parent's business), and
// begins at the priority of the thread that starts it (a lower one could stop the
// parent, whose memory it shares until its program runs). Starting copies none of
// that memory, so that a large server does not stop for it.
#ifndef FOLIOT_FOUNDATION_PROCESS_CHILD_PROCESS_H_
#define FOLIOT_FOUNDATION_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/descriptor.h"
#include "foundation/process/child_streams.h"

namespace foliot {

// Namespaces of its own (foundation/process/namespaced_start.h).
struct ChildNamespaces {
  bool network = false;  // it has the parent's
};

struct ChildOptions {
  std::vector<std::string> command;      // the program's path and its arguments
  std::vector<std::string> environment;  // NAME=VALUE
  std::string input{};                   // what it reads as its standard input
  int output_file = -1;                  // becomes its kChildOutputFile; may be a socket
  // Where the kernel refuses them, it has none: it is not process 1 then.
  std::optional<ChildNamespaces> namespaces{};
};

// Threading: one thread.
class ChildProcess {
 public:
  // Errors: kResourceExhausted if there can be no more processes or descriptors,
  // kNotFound if the program cannot be run.
  static Result<ChildProcess> start(const ChildOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Kills it if it still runs.
  ~ChildProcess();

  // Waits, at most this long, until it writes something or ends, and appends what it
  // wrote to `said` (standard output) and `complained` (standard error), in pieces of
  // at most 128 KiB. False when it has ended and all is read.
  bool listen(Duration timeout, std::string& said, std::string& complained);
  // What can be read when listen() would not wait: for a poll of several children.
  std::array<int, 3> sources() const { return {said_.number(), complained_.number(), end_.number()}; }
  // With its whole process group, which also ends when the process has.
  void kill();
  // A pidfd, for signals from other threads. REQUIRES: not started by a fork server, and
  // listen() has not returned false.
  Result<Descriptor> handle() const;
  // Of all its threads so far; zero once it has ended.
  Duration cpu_time() const;
  // How long its first thread was ready to run so far, and had no processor; zero once it has ended, or if the kernel
  // does not count it.
  Duration queued_time() const;
  // Resident, with what it shares with others; zero once it has ended.
  uint64_t memory_bytes() const;

  // How it ended. REQUIRES: listen() returned false.
  bool succeeded() const { return *status_ == 0; }
  // The signal that ended it; 0: none.
  int signal() const;
  std::string ending() const;  // "exit code 1", "signal 11 (Segmentation fault)"

 private:
  friend class ForkServer;
  enum class Parent { kUs, kForkServer };
  // `end` can be read when it has ended: how it did, if its parent is a fork server.
  ChildProcess(pid_t process, Parent parent, ChildStreams streams, Descriptor end);
  void wait(Duration timeout) const;
  bool has_ended(bool wait = false);

  pid_t process_;
  Parent parent_;
  Descriptor said_;
  Descriptor complained_;
  Descriptor end_;
  std::optional<int> status_;  // as waitpid() gives it
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_CHILD_PROCESS_H_
