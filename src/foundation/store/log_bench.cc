// Appends that last per second, and how long each waits: make bench-log. The folder is
// FOLIOT_STORE_FOLDER, or the current one.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/platform/clock.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/record_log.h"

namespace foliot {
namespace {

class NoState : public LogReader, public SnapshotSource {
 public:
  Status on_snapshot(std::span<const std::byte>) override { return Status(); }
  Status on_record(uint64_t, std::span<const std::byte>) override { return Status(); }
  void on_snapshot_begin() override {}
  Result<bool> next_piece(std::vector<std::byte>&) override { return false; }
  void on_snapshot_end(uint64_t, const Status&) override {}
};

// Lets a number of appends be under way.
class Window : public LogSink {
 public:
  void on_written(uint64_t first, uint64_t last, const Status& status) override {
    const TimePoint now = monotonic_now();
    const MutexLock lock(mutex_);
    for (uint64_t number = first; number <= last; ++number) {
      waits_.push_back((now - begun_.front()).to_milliseconds());
      begun_.pop_front();
    }
    failed_ += status.ok() ? 0 : 1;
    changed_.notify_one();
  }
  void begin(size_t under_way_max) {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return begun_.size() < under_way_max; });
    begun_.push_back(monotonic_now());
  }
  void wait_for_all() {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return begun_.empty(); });
  }
  double quantile(double share) {
    std::sort(waits_.begin(), waits_.end());
    return waits_[static_cast<size_t>(share * static_cast<double>(waits_.size() - 1))];
  }
  uint64_t failed() const { return failed_; }

 private:
  Mutex mutex_;
  Condition changed_;
  std::deque<TimePoint> begun_ GUARDED_BY(mutex_);
  std::vector<double> waits_ GUARDED_BY(mutex_);
  uint64_t failed_ GUARDED_BY(mutex_) = 0;
};

void BM_Append(benchmark::State& state) {
  const char* const named = std::getenv("FOLIOT_STORE_FOLDER");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const std::filesystem::path folder =
      std::filesystem::path(named == nullptr ? "." : named) / fmt::format("foliot_log_bench_{}", ::getpid());
  NoState none;
  Window window;
  auto log = RecordLog::open(DiskStorage::open(folder).value(), {}, none, window, none).value();
  const std::vector<std::byte> record(64);
  for (auto _ : state) {
    window.begin(static_cast<size_t>(state.range(0)));
    FOLIOT_CHECK(log->append(record).ok());
  }
  window.wait_for_all();
  state.SetItemsProcessed(state.iterations());
  state.counters["p50_ms"] = window.quantile(0.5);
  state.counters["p99_ms"] = window.quantile(0.99);
  state.counters["failed"] = static_cast<double>(window.failed());
  log.reset();
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_Append)->Arg(1)->Arg(16)->Arg(256)->Arg(4096)->UseRealTime();

}  // namespace
}  // namespace foliot
