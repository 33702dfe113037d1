// ContainerProcess: the process of one replica of a container, and the calls to it.
//
// A call's tensors lie in memory that the server and the process share (a memfd, sealed
// so that the process cannot change its size); packets over a pair of sockets only say
// that a batch is there, and that it is done. Nothing is serialised, and a call allocates
// nothing. docs/decisions/0114 has the figures.
//
// The process is not trusted: it is confined (container_launch.h), a packet that breaks
// the protocol ends it, and what it prints is limited and escaped. It is killed with all
// that belongs to its process group.
//
// Threading: start(), share_memory(), call_listening() and listen() belong to one thread,
// the supervising one, which lives as long as the process: the process ends with it. call()
// belongs to one thread at a time, which may be another. kill(), alive(), was_late() and ending(): any
// thread. The destructor: when no other thread is in it.
#ifndef FOLIOT_ENGINE_CONTAINER_CONTAINER_PROCESS_H_
#define FOLIOT_ENGINE_CONTAINER_CONTAINER_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/container_description.h"
#include "engine/container/container_options.h"
#include "engine/container/output_lines.h"
#include "engine/container/temporary_folder.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/platform/descriptor.h"
#include "foundation/process/child_process.h"

namespace foliot {

// A memory limit is checked so often; in between the kernel limits the process's own data.
inline constexpr Duration kContainerMemoryInterval = Duration::milliseconds(100);
// So often its temporary files are counted, which are on disk where the kernel keeps none of its own in memory.
inline constexpr Duration kContainerDiskInterval = Duration::seconds(1);
// Of an error's text.
inline constexpr size_t kContainerErrorBytesMax = 4096;

// The rows of a call that the model's code failed on, and why, each in one line of at most
// kFailureBytesMax; empty: it is not known of this row alone.
struct CallFailures {
  RowSet rows;
  std::vector<std::string> reasons;  // by row, if any failed
};

class ContainerProcess {
 public:
  // One line that the process printed, without its end, escaped and cut (output_lines.h).
  using OnLine = std::function<void(std::string_view line)>;

  // Starts a process and waits until its model is loaded. `on_line` is called by the
  // supervising thread, also after start() has returned. `cancelled`, if there is one, is
  // asked every few milliseconds. Errors, none of which leaves a process behind:
  // kInvalidArgument: it reported that it cannot be served, or its description is wrong;
  // kUnavailable: cancelled; kResourceExhausted: it took longer than start_timeout, in which
  // the time does not count that it waited for a processor, up to ten times as long, or
  // there can be no more processes; kInternal: it ended.
  static Result<std::unique_ptr<ContainerProcess>> start(const ContainerOptions& options, OnLine on_line,
                                                         const std::function<bool()>& cancelled = {});
  ~ContainerProcess();  // kills it
  ContainerProcess(const ContainerProcess&) = delete;
  ContainerProcess& operator=(const ContainerProcess&) = delete;

  // Its batch_size_max is at most the options'.
  const ContainerDescription& description() const { return description_; }

  // Makes the memory of the calls, and waits until the process has mapped it. Errors:
  // kResourceExhausted if there is not so much; kUnavailable: the process is gone. REQUIRES:
  // called once, before any call.
  Status share_memory(uint64_t bytes);
  // Zeros at first.
  std::span<std::byte> memory() const { return memory_; }

  // Computes a batch whose inputs lie in memory() from input_offset on, and puts its outputs
  // from output_offset on. Errors: kInternal: this call failed on every row, in the process's words,
  // and the next may succeed; kUnavailable: the process is gone, or was killed because it
  // took longer than `timeout` or broke the protocol. No allocation, no lock unless it
  // fails. REQUIRES: share_memory() succeeded; offsets are multiples of kTensorAlignment; the
  // description's input_bytes(rows) and output_bytes(rows) from them on are within memory().
  // `failures`, if there is one, gets the rows that have no outputs, since the model's code
  // failed on them; without it one of them makes the call fail. REQUIRES: it is empty.
  Status call(uint32_t rows, uint64_t input_offset, uint64_t output_offset, Duration timeout,
              CallFailures* failures = nullptr);
  // The same from the supervising thread, which passes lines on meanwhile. A process whose
  // lines are not read stops when it has printed more than a pipe holds (64 KiB).
  Status call_listening(uint32_t rows, uint64_t input_offset, uint64_t output_offset, Duration timeout);

  // Ends a call in progress, too; listen() returns false soon after.
  void kill();
  // False as soon as it is known to be gone, or to be killed.
  bool alive() const { return !gone_.load(std::memory_order_acquire); }
  // It was killed because a call took too long.
  bool was_late() const { return late_.load(std::memory_order_acquire); }

  // Waits, at most this long, until it prints something or ends; passes lines on, and kills
  // a process that has taken more memory or disk than it may. False when it has ended. To be called
  // again at once: memory is measured once in kContainerMemoryInterval.
  bool listen(Duration timeout);
  // Why it is gone: "exit code 1", "it was killed: a call took longer than 1.2 s". REQUIRES:
  // not alive(), or listen() returned false.
  std::string ending() const;

 private:
  struct Packet;
  // kStarting: listening, and its time is that in which it has a processor, or waits for something else.
  enum class While { kWaiting, kListening, kStarting };

  ContainerProcess(TemporaryFolder temporary, ChildProcess child, Descriptor socket, Descriptor handle,
                   const ContainerOptions& options, OnLine on_line);

  Status load(const std::function<bool()>& cancelled);
  Status why_not_loaded(const Packet& packet);
  Status run(uint32_t rows, uint64_t input_offset, uint64_t output_offset, Duration timeout, While meanwhile,
             CallFailures* failures);
  Status take_failures(const Packet& packet, uint32_t rows, CallFailures* failures);
  // Errors: kUnavailable: the process is gone, or does not read.
  Status send(std::span<const std::byte> packet, int descriptor = -1);
  // The next packet, until the next one is received. `cancelled` is asked only if it listens.
  Packet receive(Duration timeout, While meanwhile, const std::function<bool()>* cancelled = nullptr);
  // An answer that only says that it is done.
  Status expect_done(const Packet& packet, Duration timeout);
  // Kills it for this reason, unless it is gone already.
  Status end(std::string reason);
  Status end_of_connection();
  void limit_memory(TimePoint now);
  void limit_disk(TimePoint now);

  const TemporaryFolder temporary_;
  const uint64_t memory_bytes_max_;
  const uint64_t disk_bytes_max_;
  const std::optional<uint32_t> batch_size_max_;
  const Duration start_timeout_;
  const Descriptor socket_;
  const Descriptor handle_;  // a pidfd: kills this process, and never another of the same number
  ContainerDescription description_;
  std::span<std::byte> memory_;
  std::vector<char> received_;
  std::atomic<bool> gone_{false};
  std::atomic<bool> late_{false};
  mutable Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_);  // why it was killed
  std::string ended_ GUARDED_BY(mutex_);   // how it ended

  // Of the supervising thread.
  OutputLines lines_;
  std::string last_line_;
  std::string said_;
  std::string complained_;
  bool has_ended_ = false;
  TimePoint memory_measured_;
  TimePoint disk_measured_;
  ChildProcess child_;  // last: it is gone before its folder
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONTAINER_PROCESS_H_
