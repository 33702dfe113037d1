// The round trip of a call to the process of a container that does nothing: one row in, one
// row out: make bench-container_process.
//
// FOLIOT_BENCH_PYTHON=INTERPRETER, with python/ of this source tree in the working folder:
// through the Python package, confined, with a predict() that returns its input.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "engine/container/container_launch.h"
#include "engine/container/container_process.h"
#include "engine/container/temporary_folder.h"
#include "engine/container/test_container.h"
#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr const char* kLaunches = "FOLIOT_BENCH_LAUNCHES";

// Before main(): this program as the launcher, and as the container.
[[maybe_unused]] const bool is_container = [] {
  if (std::getenv(kLaunches) != nullptr) ::_exit(launch_container());
  return TestContainer::run_if_asked();
}();

// In Python the input is the output; the memory is copied by numpy.
ContainerOptions python_container(const std::string& python, const std::filesystem::path& folder, uint64_t bytes) {
  std::ofstream(folder / "model.py") << fmt::format(
      "import foliot\n"
      "@foliot.model(inputs={{'x': ('UINT8', [{0}])}}, outputs={{'y': ('UINT8', [{0}])}})\n"
      "def predict(batch):\n"
      "    return {{'y': batch['x']}}\n",
      bytes);
  return {.name = "bench",
          .folder = folder,
          .python = python,
          .package = std::filesystem::absolute("python"),
          .launcher = {"/proc/self/exe"},
          .environment = {std::string(kLaunches) + "=1"}};
}

void report(benchmark::State& state, std::vector<Duration>& taken) {
  if (taken.empty()) return;
  std::ranges::sort(taken);
  const auto at = [&](double q) {
    return taken[static_cast<size_t>(q * static_cast<double>(taken.size() - 1))].to_seconds() * 1e6;
  };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["p999_us"] = at(0.999);
}

// With the copies of a row into the memory, and out of it, which the engine makes.
void BM_RoundTrip(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  const TemporaryFolder folder = TemporaryFolder::make().value();
  const char* python = std::getenv("FOLIOT_BENCH_PYTHON");
  const ContainerOptions options =
      python != nullptr ? python_container(python, folder.path(), bytes) : test_container("does nothing");
  auto process = ContainerProcess::start(options, [](std::string_view line) { std::cerr << line << std::endl; });
  if (!process.ok()) return state.SkipWithError(process.status().message().c_str());
  const uint64_t output = aligned_tensor_bytes(bytes);
  FOLIOT_CHECK((*process)->share_memory(2 * output).ok());
  std::vector<std::byte> row(bytes, std::byte{1});
  std::vector<Duration> taken;
  const std::span<std::byte> memory = (*process)->memory();
  for (auto _ : state) {
    const TimePoint begin = monotonic_now();
    std::ranges::copy(row, memory.begin());
    const Status status = (*process)->call(1, 0, output, Duration::seconds(10));
    std::ranges::copy(memory.subspan(output, bytes), row.begin());
    taken.push_back(monotonic_now() - begin);
    if (!status.ok()) return state.SkipWithError(status.message().c_str());
  }
  report(state, taken);
}
BENCHMARK(BM_RoundTrip)->Arg(64)->Arg(600 << 10)->UseRealTime()->MinTime(3);

}  // namespace
}  // namespace foliot
