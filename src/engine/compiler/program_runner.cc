#include "engine/compiler/program_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/compiler/processor_time.h"

namespace foliot {
namespace {

constexpr uint64_t kPageBytesMin = uint64_t{2} << 20;  // one of the processor's large ones

uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// What something takes. Time in which the process only waits for a CPU does not
// count: a server compiles in the background, and its profile is to be that of a
// program that goes first.
class Stopwatch {
 public:
  // Only the CPU computes by threads of this process.
  explicit Stopwatch(const Device& device) : computes_here_(device.kind() == "cpu") {}
  Duration elapsed() const {
    const Duration wall = read_clock(CLOCK_MONOTONIC) - wall_;
    return computes_here_ ? std::min(wall, processor_.elapsed()) : wall;
  }

 private:
  bool computes_here_;
  Duration wall_ = read_clock(CLOCK_MONOTONIC);
  ProcessorTime processor_;
};

// Weights in memory that the caller keeps.
class BorrowedWeights final : public WeightsSource {
 public:
  explicit BorrowedWeights(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_.size(); }
  Status read(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= bytes_.size() && to.size() <= bytes_.size() - offset);
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Result<std::unique_ptr<ProgramRunner>> ProgramRunner::create(Device& device, const Program& program,
                                                             std::span<const std::byte> weights) {
  return create(device, program, std::make_shared<BorrowedWeights>(weights));
}

Result<std::unique_ptr<ProgramRunner>> ProgramRunner::create(Device& device, const Program& program,
                                                             std::shared_ptr<WeightsSource> weights) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(device, round_up(program.input_bytes(), 4096)));
  FOLIOT_RETURN_IF_ERROR(runner->start(program, std::move(weights)));
  return runner;
}

Status ProgramRunner::start(const Program& program, std::shared_ptr<WeightsSource> weights) {
  if (program.device_kind != device_.kind() || !device_.runs(program.device_fingerprint)) {
    return Status::invalid_argument(
        fmt::format("the program was compiled for {} {}, and this is {} {}; compile the model anew",
                    program.device_kind, program.device_fingerprint, device_.kind(), device_.fingerprint()));
  }
  // Clearing a page is most of what a small model costs, so it gets a small one.
  const uint64_t page_bytes = std::min(program.page_bytes, round_up(program.weights_bytes, kPageBytesMin));
  const uint32_t pages = program.pages(page_bytes);
  FOLIOT_RETURN_IF_ERROR(device_.allocate({.page_bytes = page_bytes,
                                           .page_count = pages,
                                           .io_cache_bytes = output_offset_ + round_up(program.output_bytes(), 4096),
                                           .workspace_bytes = program.workspace_bytes()}));
  FOLIOT_ASSIGN_OR_RETURN(executable_, device_.preload(program.plans, std::move(weights)));
  for (uint32_t plan = 0; plan < program.plans.size(); ++plan) FOLIOT_RETURN_IF_ERROR(executable_->prepare(plan, 1));
  std::vector<PageIndex> indices(pages);
  std::iota(indices.begin(), indices.end(), PageIndex{0});
  // The first LOAD also meets memory that was never touched.
  FOLIOT_RETURN_IF_ERROR(executable_->load(indices));
  executable_->unload();
  const Stopwatch stopwatch(device_);
  FOLIOT_RETURN_IF_ERROR(executable_->load(indices));
  load_duration_ = stopwatch.elapsed();
  return {};
}

Result<Duration> ProgramRunner::run(size_t plan, std::span<const std::byte> input, std::span<std::byte> output) {
  put_input(input);
  failed_rows_.reset();
  FOLIOT_ASSIGN_OR_RETURN(const Duration duration, run_range(plan, {}));
  get_output(output);
  return duration;
}

Result<Duration> ProgramRunner::run_range(size_t plan, OperatorRange range) {
  const Stopwatch stopwatch(device_);
  FOLIOT_RETURN_IF_ERROR(executable_->run({.plan = static_cast<uint32_t>(plan),
                                           .part = {.range = range},
                                           .output_offset = output_offset_,
                                           .failed_rows = &failed_rows_}));
  return stopwatch.elapsed();
}

}  // namespace foliot
