// Users of a personal model in memory and in RocksDB: memory, and the cost of a miss: make bench-stored_users.
//
// 1,000,000 users of 20 observations each, d = 50, in the current folder; FOLIOT_BENCH_USERS names another number.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_model.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/rocks_user_store.h"

namespace foliot {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// What the process has in RAM of its own, in MiB.
double resident_mib() {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word && word != "RssAnon:") {
  }
  double kib = 0;
  in >> kib;
  return kib / 1024;
}

double quantile(std::vector<double>& sorted, double part) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(part * (static_cast<double>(sorted.size()) - 1))];
}

// range(0): MiB for users, a quarter of which is RocksDB's; 0: all are in memory.
void BM_Users(benchmark::State& state) {
  const char* const named = std::getenv("FOLIOT_BENCH_USERS");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t users = named == nullptr ? 1'000'000 : std::strtoull(named, nullptr, 10);
  const uint64_t bytes = static_cast<uint64_t>(state.range(0)) << 20;
  const std::filesystem::path path = "foliot_stored_users_bench";
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  const auto items = drawn_items(path, 50, 10'000);
  PersonalModel::Options options;
  options.observations_per_snapshot = UINT64_MAX;
  options.exploration.kind = ExplorationKind::kGreedy;
  options.users_bytes_max = bytes - bytes / 4;
  const auto open = [&] {
    std::shared_ptr<UserStore> store;
    if (bytes > 0) store = RocksUserStore::open(path / "users", bytes / 4).value();
    return PersonalModel::open(DiskStorage::open(path / "state").value(), {.items = items}, options, store).value();
  };
  const double before = resident_mib();
  auto model = open();
  for (auto _ : state) {
    auto begin = Clock::now();
    std::atomic<uint64_t> answered = 0;
    Random random(1);
    for (uint64_t user = 0; user < users; ++user) {
      std::vector<UserObservation> some;
      for (uint64_t id = 0; id < 20; ++id) some.push_back({id, 10 * random.below(10'000), 1});
      const auto done = [&answered](const Status& status) { answered += status.ok() ? 1 : 0; };
      while (!model->observe(user, some, done).ok()) std::this_thread::yield();
    }
    while (answered < users) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.counters["observing_s"] = seconds_since(begin);
    begin = Clock::now();
    for (uint64_t user = 0; user < users; ++user) FOLIOT_CHECK(model->predict(user, 10).ok());
    state.counters["reading_all_s"] = seconds_since(begin);
    state.counters["memory_MiB"] = resident_mib() - before;
    begin = Clock::now();
    const uint64_t snapshots = model->snapshots();
    model->request_snapshot();
    while (model->snapshots() == snapshots) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.counters["snapshot_s"] = seconds_since(begin);
    std::vector<double> hits;
    std::vector<double> misses;
    for (int i = 0; i < 200'000; ++i) {
      const uint64_t user = random.below(users);
      const uint64_t missed = model->memory() ? model->memory()->misses : 0;
      begin = Clock::now();
      benchmark::DoNotOptimize(model->predict(user, 10));
      const double microseconds = 1e6 * seconds_since(begin);
      const bool is_miss = model->memory() && model->memory()->misses > missed;
      (is_miss ? misses : hits).push_back(microseconds);
    }
    std::sort(hits.begin(), hits.end());
    std::sort(misses.begin(), misses.end());
    state.counters["hit_p50_us"] = quantile(hits, 0.5);
    state.counters["hit_p99_us"] = quantile(hits, 0.99);
    state.counters["miss_p50_us"] = quantile(misses, 0.5);
    state.counters["miss_p99_us"] = quantile(misses, 0.99);
    state.counters["miss_p999_us"] = quantile(misses, 0.999);
    state.counters["misses"] = static_cast<double>(misses.size());
    begin = Clock::now();
    model.reset();
    state.counters["closing_s"] = seconds_since(begin);
    begin = Clock::now();
    model = open();
    state.counters["opening_s"] = seconds_since(begin);
    FOLIOT_CHECK(model->users() == users);
    state.counters["memory_after_opening_MiB"] = resident_mib() - before;
  }
  model.reset();
  std::filesystem::remove_all(path);
}
BENCHMARK(BM_Users)->Arg(0)->Arg(128)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace foliot
