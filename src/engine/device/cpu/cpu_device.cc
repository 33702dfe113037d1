#include "engine/device/cpu/cpu_device.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/graph_lowering.h"
#include "engine/device/cpu/host_memory.h"
#include "engine/device/cpu/instruction_set.h"
#include "engine/device/cpu/packing.h"
#include "engine/device/cpu/prepared_program.h"
#include "engine/device/cpu/team.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

// Raised whenever lowering gives other plans for the same graph.
constexpr int kLoweringVersion = 11;
// Entries of oneDNN's cache of compiled primitives: those of many models at a time.
constexpr int kPrimitiveCacheEntries = 32768;
constexpr uint64_t kPageAlignment = 4096;
// What errors call the device's memory.
// Before the number of threads, the last word of a fingerprint.
constexpr std::string_view kThreads = " threads=";
constexpr std::string_view kIoCache = "io cache", kWorkspace = "workspace";

// Layouts of activations.
constexpr std::string_view kBlockedName = "blocked", kChannelsLastName = "channels_last";

// OpenMP keeps the number of threads per calling thread.
void use_threads(uint32_t threads) {
  if (omp_get_max_threads() != static_cast<int>(threads)) omp_set_num_threads(static_cast<int>(threads));
}

struct Memory {
  std::unique_ptr<PageMemory> page_cache;
  GrowingMemory io_cache;
  std::vector<std::unique_ptr<GrowingMemory>> workspaces;  // by context
};

class CpuExecutable : public Executable {
 public:
  // What belongs to the device; outlives the executable.
  struct Place {
    const Memory& memory;
    uint32_t threads;  // of each lane
    const dnnl::engine& engine;
    const dnnl::stream& stream;
  };

  CpuExecutable(const Place& place, std::span<const Plan> plans, std::shared_ptr<PreparedProgram> program,
                std::shared_ptr<WeightsSource> weights, PageTable pages)
      : place_(place),
        plans_(plans),
        program_(std::move(program)),
        weights_(std::move(weights)),
        pages_(std::move(pages)) {}

  Status prepare(uint32_t plan, uint32_t width) override {
    FOLIOT_CHECK(plan < plans_.size());
    use_threads(width * place_.threads);
    return program_->prepare(plan, width, plans_[plan], place_.engine, place_.stream);
  }

  Status load(std::span<const PageIndex> pages) override {
    FOLIOT_CHECK(!loaded_);
    FOLIOT_RETURN_IF_ERROR(pages_.map(pages));
    if (weights_->bytes() > 0) {
      if (Status read = weights_->read(0, {pages_.data(), weights_->bytes()}); !read.ok()) {
        pages_.unmap();
        return read;
      }
    }
    loaded_ = true;
    return Status();
  }

  void unload() override {
    FOLIOT_CHECK(loaded_);
    pages_.unmap();
    loaded_ = false;
  }

  Status run(const DeviceRun& run) override {
    FOLIOT_CHECK(loaded_ && run.input_offset % kTensorAlignment == 0 && run.output_offset % kTensorAlignment == 0);
    FOLIOT_CHECK(run.part.context < place_.memory.workspaces.size());
    use_threads(run.part.lanes.count * place_.threads);
    Status status = program_->run(run.plan, run.part.lanes, run.part.range,
                                  {.weights = pages_.data(),
                                   .workspace = place_.memory.workspaces[run.part.context]->data(),
                                   .input = place_.memory.io_cache.data() + run.input_offset,
                                   .output = place_.memory.io_cache.data() + run.output_offset},
                                  run.failed_rows);
    if (omp_get_max_threads() > 1) Team::of_this_thread().rest();
    return status;
  }

 private:
  const Place place_;
  const std::span<const Plan> plans_;
  std::shared_ptr<PreparedProgram> program_;
  std::shared_ptr<WeightsSource> weights_;
  PageTable pages_;
  bool loaded_ = false;
};

class OneDnnDevice : public CpuDevice {
 public:
  explicit OneDnnDevice(const CpuDeviceOptions& options)
      : options_(options), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    FOLIOT_CHECK(options.threads > 0 && options.lanes > 0 && options.threads % options.lanes == 0);
    FOLIOT_CHECK(teams_serve_openmp());
    dnnl::set_primitive_cache_capacity(kPrimitiveCacheEntries);
  }

  std::string kind() const override { return "cpu"; }

  std::string fingerprint() const override { return fmt::format("{}{}{}", kernels(), kThreads, options_.threads); }
  bool runs(const std::string& fingerprint) const override {
    return fingerprint.starts_with(fmt::format("{}{}", kernels(), kThreads));
  }

  uint32_t lanes() const override { return options_.lanes; }

  Status supports_products(DataType type) const override { return foliot::supports_products(instruction_set(), type); }

  std::unique_ptr<Device> another() const override { return make_cpu_device(options_); }

  bool memory_locked() const override { return memory_locked_; }
  std::vector<std::string> layouts(std::span<const Graph> graphs) const override;
  Result<LoweredProgram> lower(std::span<const Graph> graphs, const std::string& layout) override;
  Status allocate(const DeviceMemory& memory) override;
  Status grow(uint64_t io_cache_bytes, uint64_t workspace_bytes) override;
  Result<std::unique_ptr<Executable>> preload(std::span<const Plan> plans,
                                              std::shared_ptr<WeightsSource> weights) override;

  void copy_to_io(uint64_t offset, std::span<const std::byte> from) override {
    FOLIOT_CHECK(offset <= memory_.io_cache.bytes() && from.size() <= memory_.io_cache.bytes() - offset);
    std::memcpy(memory_.io_cache.data() + offset, from.data(), from.size());
  }

  void copy_from_io(uint64_t offset, std::span<std::byte> to) override {
    FOLIOT_CHECK(offset <= memory_.io_cache.bytes() && to.size() <= memory_.io_cache.bytes() - offset);
    std::memcpy(to.data(), memory_.io_cache.data() + offset, to.size());
  }

 private:
  // What kernels are chosen from: the fingerprint but for the number of threads.
  static std::string kernels() {
    const dnnl::version_t* version = dnnl::version();
    return fmt::format("cpu oneDNN {}.{}.{} {} lowering={}", version->major, version->minor, version->patch,
                       name_of(instruction_set()), kLoweringVersion);
  }
  // Where the kernels of these plans are: those of an earlier program if it was the same.
  Result<std::shared_ptr<PreparedProgram>> share(std::span<const Plan> plans, uint64_t weights_bytes);

  const CpuDeviceOptions options_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Memory memory_;
  bool memory_locked_ = false;
  std::map<std::string, std::weak_ptr<PreparedProgram>> prepared_;  // by plans_key()
};

std::vector<std::string> OneDnnDevice::layouts(std::span<const Graph> graphs) const {
  const bool convolves = std::ranges::any_of(graphs, [](const Graph& graph) {
    return std::ranges::any_of(graph.nodes, [](const Node& node) {
      return node.kind == OperatorKind::kConvolution || node.kind == OperatorKind::kConvolutionTranspose;
    });
  });
  std::vector<std::string> names{std::string(kBlockedName)};
  if (convolves) names.emplace_back(kChannelsLastName);
  return names;
}

Result<LoweredProgram> OneDnnDevice::lower(std::span<const Graph> graphs, const std::string& layout) {
  FOLIOT_CHECK(layout == kBlockedName || layout == kChannelsLastName);
  const ActivationLayout activations =
      layout == kBlockedName ? ActivationLayout::kBlocked : ActivationLayout::kChannelsLast;
  use_threads(options_.threads);
  // The graph with the largest batch chooses how constants are packed: that is
  // where throughput comes from.
  std::vector<size_t> order(graphs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return graphs[a].batch_size > graphs[b].batch_size; });
  LoweredProgram program;
  program.plans.resize(graphs.size());
  Packing packing(engine_);
  try {
    for (size_t i : order) {
      FOLIOT_ASSIGN_OR_RETURN(program.plans[i], GraphLowering(graphs[i], activations, packing, engine_).lower());
    }
  } catch (const dnnl::error& error) {
    return Status::internal(fmt::format("oneDNN failed while lowering: {}", error.what()));
  }
  program.constants = std::move(packing).take_constants();
  return program;
}

Status OneDnnDevice::allocate(const DeviceMemory& memory) {
  FOLIOT_CHECK(memory_.page_cache == nullptr && memory.page_bytes > 0 && memory.page_bytes % kPageAlignment == 0);
  bool locked = options_.lock_memory;
  const uint64_t growth = options_.growth_bytes_max;
  const bool lock = options_.lock_memory;
  FOLIOT_RETURN_IF_ERROR(memory_.io_cache.take(memory.io_cache_bytes, growth, kIoCache, lock, locked));
  FOLIOT_CHECK(memory.contexts > 0);
  for (uint32_t context = 0; context < memory.contexts; ++context) {
    memory_.workspaces.push_back(std::make_unique<GrowingMemory>());
    FOLIOT_RETURN_IF_ERROR(memory_.workspaces.back()->take(memory.workspace_bytes, growth, kWorkspace, lock, locked));
  }
  FOLIOT_ASSIGN_OR_RETURN(memory_.page_cache, PageMemory::create(memory.page_bytes, memory.page_count,
                                                                 memory.spare_pages, options_.lock_memory, locked));
  memory_locked_ = locked;
  return Status();
}

Status OneDnnDevice::grow(uint64_t io_cache_bytes, uint64_t workspace_bytes) {
  bool locked = memory_locked_;
  FOLIOT_RETURN_IF_ERROR(memory_.io_cache.grow(io_cache_bytes, kIoCache, locked));
  for (const auto& workspace : memory_.workspaces) {
    FOLIOT_RETURN_IF_ERROR(workspace->grow(workspace_bytes, kWorkspace, locked));
  }
  memory_locked_ = locked;
  return Status();
}

Result<std::shared_ptr<PreparedProgram>> OneDnnDevice::share(std::span<const Plan> plans, uint64_t weights_bytes) {
  std::erase_if(prepared_, [](const auto& entry) { return entry.second.expired(); });
  const std::string key = fmt::format("{} {}", plans_key(plans), weights_bytes);
  std::weak_ptr<PreparedProgram>& known = prepared_[key];
  if (std::shared_ptr<PreparedProgram> program = known.lock()) return program;
  for (const Plan& plan : plans) FOLIOT_RETURN_IF_ERROR(check_plan(plan, weights_bytes, layout_size));
  const auto program = std::make_shared<PreparedProgram>(plans.size(), options_.lanes);
  known = program;
  return program;
}

Result<std::unique_ptr<Executable>> OneDnnDevice::preload(std::span<const Plan> plans,
                                                          std::shared_ptr<WeightsSource> weights) {
  FOLIOT_CHECK(memory_.page_cache != nullptr && weights != nullptr);
  for (const Plan& plan : plans)
    if (plan.workspace_bytes > memory_.workspaces.back()->bytes())
      return Status::resource_exhausted(
          fmt::format("batch size {} needs a workspace of {} bytes, and the device has {}; "
                      "configure a larger workspace",
                      plan.batch_size, plan.workspace_bytes, memory_.workspaces.back()->bytes()));
  FOLIOT_ASSIGN_OR_RETURN(std::shared_ptr<PreparedProgram> program, share(plans, weights->bytes()));
  FOLIOT_ASSIGN_OR_RETURN(PageTable pages, PageTable::reserve(*memory_.page_cache, weights->bytes()));
  const CpuExecutable::Place place{
      .memory = memory_, .threads = options_.threads / options_.lanes, .engine = engine_, .stream = stream_};
  return std::unique_ptr<Executable>(
      std::make_unique<CpuExecutable>(place, plans, std::move(program), std::move(weights), std::move(pages)));
}

}  // namespace

std::unique_ptr<CpuDevice> make_cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<OneDnnDevice>(options);
}

std::optional<uint32_t> threads_of(std::string_view fingerprint) {
  const size_t mark = fingerprint.rfind(kThreads);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view number = fingerprint.substr(mark + kThreads.size());
  uint32_t threads = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), threads);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) return std::nullopt;
  return threads;
}

}  // namespace foliot
