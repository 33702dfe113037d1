#include "foundation/platform/thread.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "foundation/base/error_text.h"
#include "foundation/platform/memory_node.h"

namespace foliot {
namespace {

constexpr size_t kNameLengthMax = 15;  // the kernel's limit
constexpr uint64_t kSliceNanoseconds = 1'000'000;

struct Start {
  ThreadOptions options;
  std::function<void()> body;
};

// sched_setattr(2)'s, which the C library does not have.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // ns
  uint64_t deadline = 0;
  uint64_t period = 0;
};

// A thread that wakes up waits until the slice of the running one is over, some 3 ms,
// whatever the priorities, unless its own slice is shorter. Much shorter slices let in
// threads of the lowest priorities too early. 0: the kernel's own. Kernels before 6.12 ignore the setting.
void ask_for_slices(uint64_t nanoseconds) {
  SchedulingAttributes attributes{.nice = getpriority(PRIO_PROCESS, 0), .runtime = nanoseconds};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void* run(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->options.name.c_str());
  // On Linux priorities belong to threads, and 0 names the calling one. Lowering the
  // priority is always allowed.
  if (start->options.nice != 0) setpriority(PRIO_PROCESS, 0, start->options.nice);
  if (start->options.nice <= 0) wake_promptly();
  const MemoryNode node(start->options.memory_node);
  start->body();
  return nullptr;
}

Status start_failed(const ThreadOptions& options, int error) {
  if (error == EINVAL && !options.cores.empty()) {
    return Status::invalid_argument(fmt::format("cannot pin thread '{}' to cores {}: this process may use none of them",
                                                options.name, to_string(options.cores)));
  }
  return Status::resource_exhausted(
      fmt::format("cannot start thread '{}': {}; raise the limit on threads (ulimit -u) or free memory", options.name,
                  error_text(error)));
}

}  // namespace

Result<Thread> Thread::start(const ThreadOptions& options, std::function<void()> body) {
  FOLIOT_CHECK(!options.name.empty() && options.name.size() <= kNameLengthMax);
  FOLIOT_CHECK(options.nice >= -20 && options.nice <= 19);
  static_assert(kCoresMax <= CPU_SETSIZE);

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (!options.cores.empty()) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const uint32_t core : options.cores) CPU_SET(core, &cpus);
    pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
  }
  auto start = std::make_unique<Start>(Start{options, std::move(body)});
  pthread_t handle;
  const int error = pthread_create(&handle, &attributes, run, start.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return start_failed(options, error);
  static_cast<void>(start.release());  // run() owns it now
  return Thread(handle);
}

Thread::Thread(Thread&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  join();
  handle_ = std::exchange(other.handle_, std::nullopt);
  return *this;
}

void Thread::join() {
  if (!handle_) return;
  FOLIOT_CHECK(!is_current());
  FOLIOT_CHECK(pthread_join(*handle_, nullptr) == 0);
  handle_.reset();
}

bool Thread::is_current() const { return handle_ && pthread_equal(*handle_, pthread_self()) != 0; }

// By default the kernel lets every timer of a thread slip by 50 us, to save wake-ups. Background threads keep that.
void wake_promptly() {
  prctl(PR_SET_TIMERSLACK, 1);
  ask_for_slices(kSliceNanoseconds);
}

void use_default_slices() { ask_for_slices(0); }

}  // namespace foliot
