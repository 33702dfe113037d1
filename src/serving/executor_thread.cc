#include "serving/executor_thread.h"

#include <fmt/format.h>

#include <cstdio>

#include "platform/clock.h"

namespace foliot {
namespace {

// Executors go before whatever else runs on the machine, as far as the kernel lets
// them: their timing is what all plans rest on.
constexpr int kExecutorNice = -10;
// The kernel wakes a sleeper some tens of microseconds late.
constexpr Duration kSpin = Duration::microseconds(50);

}  // namespace

Status ExecutorThread::start(Executor& executor, const CoreSet& cores, std::optional<uint32_t> node) {
  Result<Thread> thread =
      Thread::start({.name = executor.name(), .cores = cores, .memory_node = node, .nice = kExecutorNice},
                    [this, &executor] { run(executor); });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(thread).value();
  return Status();
}

void ExecutorThread::stop() {
  stopping_.store(true);
  parker_.unpark();
  thread_.join();
}

void ExecutorThread::run(Executor& executor) {
  while (!stopping_.load(std::memory_order_relaxed)) {
    const Executor::Step step = executor.poll(monotonic_now());
    if (step.run) {
      const TimePoint start = monotonic_now();
      const Status status = executor.perform();
      if (!status.ok()) fmt::print(stderr, "{} failed: {}\n", executor.name(), status.message());
      executor.finish(start, monotonic_now(), status);
    } else {
      parker_.park_until(step.wake, step.wake.is_infinite() ? Duration() : kSpin);
    }
  }
}

}  // namespace foliot
