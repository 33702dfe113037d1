#include "node/devices/local_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include "engine/device/cpu/team.h"
#include "engine/device/vulkan/vulkan_device.h"
#include "engine/worker/device_engine.h"
#include "foundation/base/units.h"
#include "foundation/core/lanes.h"
#include "foundation/platform/memory.h"
#include "foundation/platform/memory_node.h"
#include "foundation/platform/processor.h"

namespace foliot {
namespace {

// Io cache and workspaces grow with the models: a huge page is as little as they can have.
constexpr uint64_t kGrowingBytesMin = uint64_t{2} << 20;
// Those of a GPU cannot grow: what is recorded before it serves has their addresses.
constexpr uint64_t kGpuIoCacheBytesMin = uint64_t{64} << 20, kGpuWorkspaceBytesMin = uint64_t{256} << 20;
// The page cache cannot grow, so that it has room for models that come later.
constexpr uint64_t kPageCacheBytesMin = uint64_t{256} << 20;
// Of the largest model's inputs and outputs, so many fit in the io cache at once, and as many as may be in flight
// where that is little.
constexpr uint64_t kBatchesInFlight = 4;
constexpr uint64_t kIoCacheIsLittle = uint64_t{64} << 20;

// The weights of a model that is not compiled yet, as a share of its files: packed for the
// CPU's vectors they are somewhat larger.
constexpr uint64_t kPackedNumerator = 5, kPackedDenominator = 4;

// Of one batch, the largest.
uint64_t io_bytes_of(const Program& program) {
  return program.input_bytes() + program.output_bytes() + 2 * kTensorAlignment;
}

// Weights come in whole pages. Small pages leave little of the last one empty, and large ones are moved faster.
uint64_t page_bytes_for(const std::vector<uint64_t>& weights) {
  constexpr uint64_t kPageBytesMin = uint64_t{2} << 20;  // a huge page
  const uint64_t needed = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  for (uint64_t page = kPageBytesMax; needed > 0 && page > kPageBytesMin; page /= 2) {
    uint64_t taken = 0;
    for (const uint64_t bytes : weights) taken += (bytes + page - 1) / page * page;
    if (taken - needed <= taken / 8) return page;
  }
  return kPageBytesMin;
}

// For models of which the largest batch has so many bytes of inputs and outputs.
uint64_t io_cache_for(uint64_t io_bytes, const LocalWorkerOptions& options) {
  const uint64_t all = std::min(io_bytes * options.infers_in_flight_max, kIoCacheIsLittle);
  return std::max({io_bytes * kBatchesInFlight, all, kGrowingBytesMin});
}

// What the options leave open follows from the models.
DeviceMemory plan_memory(const LocalWorkerOptions& options, const DevicePlace& place,
                         const std::vector<CompiledModel>& models, const std::vector<uint64_t>& uncompiled) {
  const bool on_gpu = place.gpu != nullptr;
  const uint64_t workspace_min = on_gpu ? kGpuWorkspaceBytesMin : kGrowingBytesMin;
  const uint64_t io_cache_min = on_gpu ? kGpuIoCacheBytesMin : kGrowingBytesMin;
  uint64_t io_bytes = 0;
  uint64_t workspace_bytes = 0;
  std::vector<uint64_t> weights;
  for (const CompiledModel& model : models) {
    const Program& program = *model.package.program;
    weights.push_back(program.weights_bytes);
    io_bytes = std::max(io_bytes, io_bytes_of(program));
    workspace_bytes = std::max(workspace_bytes, program.workspace_bytes());
  }
  for (const uint64_t files_bytes : uncompiled)
    weights.push_back(files_bytes / kPackedDenominator * kPackedNumerator + 1);
  const uint64_t page_bytes = options.page_bytes.value_or(page_bytes_for(weights));
  uint64_t pages = 0;
  for (const uint64_t bytes : weights) pages += (bytes + page_bytes - 1) / page_bytes;
  const uint64_t wanted = std::max(pages * page_bytes, kPageCacheBytesMin);
  const uint64_t devices = options.devices.size();
  const uint64_t page_cache =
      options.page_cache_bytes.value_or(std::min(wanted * devices, total_memory_bytes() / 2)) / devices;
  const uint64_t page_count = page_cache / page_bytes;
  return {.page_bytes = page_bytes,
          .page_count = static_cast<uint32_t>(page_count),
          .spare_pages = static_cast<uint32_t>(page_count - std::min(pages, page_count)),
          .io_cache_bytes = options.io_cache_bytes.value_or(std::max(io_cache_for(io_bytes, options), io_cache_min)),
          .workspace_bytes = options.workspace_bytes.value_or(std::max(workspace_bytes, workspace_min)),
          .contexts = device_contexts(place.lanes, options.contexts)};
}

// Better than to be killed while the memory is touched. What else the process needs
// is in use by now.
Status check_available(const DeviceMemory& memory) {
  const uint64_t page_cache = memory.page_count * memory.page_bytes;
  const uint64_t workspaces = memory.contexts * memory.workspace_bytes;
  const uint64_t needed = page_cache + memory.io_cache_bytes + workspaces;
  const std::optional<uint64_t> available = available_memory_bytes();
  if (!available || needed <= *available) return {};
  return Status::resource_exhausted(
      fmt::format("page cache ({}), io cache ({}) and workspace ({}) need {}, and only {} of memory are available; "
                  "choose a smaller --page-cache, or free memory",
                  format_bytes(page_cache), format_bytes(memory.io_cache_bytes), format_bytes(workspaces),
                  format_bytes(needed), format_bytes(*available)));
}

Status too_small(std::string_view need, uint64_t needed, std::string_view what, uint64_t bytes, std::string_view flag) {
  return Status::resource_exhausted(fmt::format("{} {}, more than the {} of {}; raise {}", need, format_bytes(needed),
                                                what, format_bytes(bytes), flag));
}

// LOAD, INPUT, OUTPUT, and OUTPUT of large results.
constexpr size_t kExecutorsBesideLanes = 4;

// Of EXEC. Where it takes all cores, it has no priority over the threads that bring requests and take answers away:
// they do little each time, and would wait for a whole EXEC (docs/decisions/0240).
int exec_nice(const DevicePlaces& devices) {
  uint32_t threads = 0;
  for (const DevicePlace& device : devices) threads += device.threads;
  return threads < usable_processors() ? kExecutorNice : 0;
}

// Those that begin with this lane, each on the cores of its lanes, a thread to a core.
std::vector<IntervalThread> intervals_of(const DevicePlace& place, uint32_t lane, int nice) {
  const uint32_t threads = place.threads / place.lanes;
  std::vector<IntervalThread> intervals;
  for (const uint32_t width : lane_widths(place.lanes)) {
    if (!is_lane_interval({lane, width}, place.lanes)) continue;
    IntervalThread& interval = intervals.emplace_back();
    interval.lane_count = width;
    interval.nice = nice;
    if (place.cores.empty()) continue;
    const auto first = place.cores.begin() + lane * threads;
    interval.cores = CoreSet(first, first + width * threads);
    if (interval.cores.size() > 1) interval.begin = [cores = interval.cores] { form_team(cores); };
  }
  return intervals;
}

}  // namespace

Status LocalWorkerOptions::check() const {
  if (!page_bytes || (*page_bytes > 0 && *page_bytes % 4096 == 0)) return Status();
  return Status::invalid_argument("--page-size must be a multiple of 4KiB");
}

LocalWorker::LocalWorker(const LocalWorkerOptions& options, const DevicePlace& place,
                         const std::vector<CompiledModel>& models, const std::vector<uint64_t>& uncompiled)
    : options_(options), place_(place), memory_(plan_memory(options, place, models, uncompiled)), grown_(memory_) {}

Status LocalWorker::start(PayloadStore& payloads, OutcomeSink& outcomes) {
  FOLIOT_RETURN_IF_ERROR(check_available(memory_));
  const MemoryNode node(place_.node);
  make_device();
  FOLIOT_RETURN_IF_ERROR(device_->allocate(memory_));
  engine_ = std::make_unique<DeviceEngine>(*device_, payloads, options_.models_max);
  make_threads();
  WorkerWakers wakers{executors_[0], executors_[1], executors_[2], executors_[3]};
  for (size_t i = kExecutorsBesideLanes; i + 1 < executors_.size(); ++i) wakers.other_lanes.push_back(&executors_[i]);
  wakers.large_output = &executors_.back();
  worker_ = std::make_unique<Worker>(WorkerOptions{.page_count = memory_.page_count,
                                                   .io_cache_bytes = memory_.io_cache_bytes,
                                                   .models_max = options_.models_max,
                                                   .loads_in_flight_max = options_.loads_in_flight_max,
                                                   .infers_in_flight_max = options_.infers_in_flight_max,
                                                   .lane_count = place_.lanes,
                                                   .context_count = options_.contexts},
                                     *engine_, outcomes, wakers);
  return start_executors();
}

void LocalWorker::make_device() {
  if (place_.gpu != nullptr) {
    device_ = make_vulkan_device(place_.gpu);
    return;
  }
  const bool can_grow = !options_.io_cache_bytes || !options_.workspace_bytes;
  auto cpu = make_cpu_device(
      {.threads = place_.threads, .lanes = place_.lanes, .growth_bytes_max = can_grow ? total_memory_bytes() / 2 : 0});
  cpu_ = cpu.get();
  device_ = std::move(cpu);
}

// What is short is done by the thread that brings it: copies into the io cache and out of it.
void LocalWorker::make_threads() {
  const bool others = false, copies = true;
  for (const bool has_volunteers : {others, copies, others, copies}) executors_.emplace_back(has_volunteers);
  while (executors_.size() < kExecutorsBesideLanes + place_.lanes) executors_.emplace_back(others);
}

// Only EXEC and its teams are pinned: the others copy, and run where there is time. Large results take milliseconds to
// copy, in which those that answer others go first.
Status LocalWorker::start_executors() {
  const int nice = exec_nice(options_.devices);
  const IntervalThread large{.nice = 0, .begin = use_default_slices, .has_turns = false};
  uint32_t lane = 0;
  for (size_t i = 0; i < executors_.size(); ++i) {
    Executor& executor = *worker_->executors()[i];
    const bool exec = std::string_view(executor.name()) == "exec";
    const bool is_large = i + 1 == executors_.size();
    const auto intervals =
        exec ? intervals_of(place_, lane++, nice) : std::vector(1, is_large ? large : IntervalThread());
    FOLIOT_RETURN_IF_ERROR(executors_[i].start(executor, intervals, place_.node));
  }
  return Status();
}

Status LocalWorker::make_room(const Program& program) {
  const uint64_t io_bytes = io_bytes_of(program);
  if (options_.io_cache_bytes && io_bytes > *options_.io_cache_bytes) {
    return too_small("its largest batch's inputs and outputs need", io_bytes, "io cache", *options_.io_cache_bytes,
                     "--io-cache");
  }
  if (options_.workspace_bytes && program.workspace_bytes() > *options_.workspace_bytes) {
    return too_small("its intermediates need", program.workspace_bytes(), "workspace", *options_.workspace_bytes,
                     "--workspace");
  }
  DeviceMemory wanted = grown_;
  if (!options_.io_cache_bytes)
    wanted.io_cache_bytes = std::max(grown_.io_cache_bytes, io_cache_for(io_bytes, options_));
  if (!options_.workspace_bytes) {
    wanted.workspace_bytes = std::max(grown_.workspace_bytes, program.workspace_bytes());
  }
  if (wanted.io_cache_bytes == grown_.io_cache_bytes && wanted.workspace_bytes == grown_.workspace_bytes) return {};
  FOLIOT_RETURN_IF_ERROR(check_available({.page_bytes = 0,
                                          .page_count = 0,
                                          .spare_pages = 0,
                                          .io_cache_bytes = wanted.io_cache_bytes - grown_.io_cache_bytes,
                                          .workspace_bytes = wanted.workspace_bytes - grown_.workspace_bytes,
                                          .contexts = wanted.contexts}));
  if (cpu_ == nullptr) {
    const bool workspace = wanted.workspace_bytes > grown_.workspace_bytes;
    return too_small(
        workspace ? "its intermediates need" : "its largest batches' inputs and outputs need",
        workspace ? wanted.workspace_bytes : wanted.io_cache_bytes, workspace ? "GPU's workspace" : "GPU's io cache",
        workspace ? grown_.workspace_bytes : grown_.io_cache_bytes, workspace ? "--workspace" : "--io-cache");
  }
  const MemoryNode node(place_.node);
  FOLIOT_RETURN_IF_ERROR(cpu_->grow(wanted.io_cache_bytes, wanted.workspace_bytes));
  worker_->grow_io_cache(wanted.io_cache_bytes);
  grown_ = wanted;
  return Status();
}

IoCacheBytes LocalWorker::io_cache() const {
  return {.used = worker_->input().io_bytes_used(), .all = worker_->input().io_bytes()};
}

void LocalWorker::stop() {
  for (ExecutorThread& executor : executors_) executor.stop();
}

}  // namespace foliot
