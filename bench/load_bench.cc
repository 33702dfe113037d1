// load_bench [FOLDER]: how fast LOAD is beside the plain copy that it cannot beat:
// from memory, memcpy() between buffers that were touched before; from disk,
// pread() with direct I/O in large pieces into such a buffer. A package of 100 MiB
// is written to FOLDER (default: out) and removed afterwards.
//
// Sides take turns, at the priority of a server's executors where the process may.
// Prints the median rate of each side, and the median of the rounds' ratios: 1.00 is as
// fast as the plain copy.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cpu/host_memory.h"
#include "engine/program/file.h"
#include "engine/program/package.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = uint64_t{16} << 20;
constexpr uint64_t kWeightsBytes = uint64_t{100} << 20;
constexpr size_t kRounds = 51;
constexpr int kNice = -10;

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "load_bench: {}\n", message);
  std::exit(1);
}

template <typename T>
T require(Result<T> result) {
  if (!result.ok()) fail(result.status().message());
  return std::move(result).value();
}

void require(const Status& status) {
  if (!status.ok()) fail(status.message());
}

int64_t now_nanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// All weights and no operators.
void write(const std::filesystem::path& path) {
  Program program;
  program.batching = false;
  program.batch_sizes = {1};
  program.buckets = {{.dimensions = {}, .seed_exec = {Duration()}}};
  program.plans.resize(1);
  program.plans[0].batch_size = 1;
  program.page_bytes = kPageBytes;
  program.weights_bytes = kWeightsBytes;
  std::vector<std::byte> weights(kWeightsBytes);
  Random random(1);
  for (size_t i = 0; i < weights.size(); i += sizeof(uint64_t)) {
    const uint64_t value = random.next();
    std::memcpy(&weights[i], &value, sizeof(value));
  }
  require(write_package(path, program, weights));
}

// A program with its weights in this tier, on a device of its own.
class Loader {
 public:
  Loader(const std::filesystem::path& path, WeightsTier tier)
      : package_(require(open_package(path, tier))), pages_(package_.program->pages(kPageBytes)) {
    require(device_->allocate({.page_bytes = kPageBytes,
                               .page_count = static_cast<uint32_t>(pages_.size()),
                               .io_cache_bytes = 4096,
                               .workspace_bytes = 4096}));
    executable_ = require(device_->preload(package_.program->plans, package_.weights));
    std::iota(pages_.begin(), pages_.end(), PageIndex{0});
  }
  void load() { require(executable_->load(pages_)); }
  void unload() { executable_->unload(); }

 private:
  Package package_;
  std::unique_ptr<CpuDevice> device_ = make_cpu_device();
  std::unique_ptr<Executable> executable_;
  std::vector<PageIndex> pages_;
};

struct Side {
  const char* name;
  std::function<void()> copy;
  std::function<void()> after = [] {};
  std::vector<int64_t> durations = {};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double median_rate(const Side& side) {
  std::vector<double> rates;
  for (int64_t duration : side.durations)
    rates.push_back(static_cast<double>(kWeightsBytes) / static_cast<double>(duration) * 1e3);
  return median(std::move(rates));
}

// Prints MB/s of both, and by how much the second falls short of the first.
void compare(Side plain, Side load) {
  for (size_t round = 0; round <= kRounds; ++round) {
    for (Side* side : {&plain, &load}) {
      const int64_t start = now_nanoseconds();
      side->copy();
      if (round > 0) side->durations.push_back(now_nanoseconds() - start);
      side->after();
    }
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < kRounds; ++i)
    ratios.push_back(static_cast<double>(plain.durations[i]) / static_cast<double>(load.durations[i]));
  fmt::print("{:<18}{:>8.0f} MB/s   {:<16}{:>8.0f} MB/s   {:.2f}\n", plain.name, median_rate(plain), load.name,
             median_rate(load), median(std::move(ratios)));
}

void run(const std::filesystem::path& folder) {
  ::setpriority(PRIO_PROCESS, 0, kNice);  // or not, where that is forbidden
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "load_bench.foliot";
  write(path);
  Loader memory(path, WeightsTier::kMemory);
  Loader disk(path, WeightsTier::kDisk);
  const File direct(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!direct.is_open()) fail("the file system of " + folder.string() + " does no direct I/O");
  const uint64_t weights_offset = std::filesystem::file_size(path) - kWeightsBytes;
  std::filesystem::remove(path);

  bool locked = false;
  const Mapping from = require(take_memory(kWeightsBytes, "source", false, locked));
  const Mapping to = require(take_memory(kWeightsBytes, "destination", false, locked));
  compare({"memcpy", [&] { std::memcpy(to.data(), from.data(), kWeightsBytes); }},
          {"LOAD from memory", [&] { memory.load(); }, [&] { memory.unload(); }});
  const auto read_directly = [&] {
    if (read_fully(direct, weights_offset, {to.data(), kWeightsBytes}) != 0) fail("cannot read " + path.string());
  };
  compare({"O_DIRECT", read_directly}, {"LOAD from disk", [&] { disk.load(); }, [&] { disk.unload(); }});
}

}  // namespace
}  // namespace foliot

int main(int argc, char** argv) { foliot::run(argc > 1 ? argv[1] : "out"); }
