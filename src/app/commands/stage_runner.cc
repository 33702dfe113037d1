#include "app/commands/stage_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "app/commands/container_launch_command.h"
#include "engine/compiler/program_runner.h"
#include "engine/container/container_engine.h"
#include "engine/container/container_process.h"
#include "engine/container/container_profile.h"
#include "engine/device/cpu/cpu_device.h"
#include "foundation/base/check.h"
#include "foundation/platform/clock.h"
#include "node/devices/compiled_model.h"
#include "node/replicas/replica_kinds.h"
#include "node/repository/container_model.h"

namespace foliot {
namespace {

constexpr uint64_t kStagePageBytes = uint64_t{16} << 20;  // as a server has by default; nothing depends on it here
// Of what one call takes: the first may compile.
constexpr Duration kStageCallTimeout = Duration::seconds(60);
constexpr double kStageQuantile = 0.99;

class CompiledStage : public StageRunner {
 public:
  CompiledStage(const ModelFolder& folder, Package package, uint32_t threads, const std::string& kind)
      : package_(std::move(package)), device_(make_cpu_device({.threads = threads})) {
    model_ = std::make_shared<const ModelInfo>(CompiledModel{folder, package_}.info(ModelId(0), kStagePageBytes, kind));
  }
  Status open() {
    FOLIOT_ASSIGN_OR_RETURN(runner_, ProgramRunner::create(*device_, *package_.program, package_.weights));
    return Status();
  }

  Result<Duration> run(BucketId bucket, std::span<const StageRow* const> rows,
                       std::vector<StageRow>& outputs) override {
    const std::vector<uint32_t>& sizes = package_.program->batch_sizes;
    const auto size = std::ranges::lower_bound(sizes, rows.size());
    FOLIOT_CHECK(size != sizes.end());
    const size_t position = bucket.value() * sizes.size() + static_cast<size_t>(size - sizes.begin());
    const Plan& plan = package_.program->plans[position];
    input_.assign(plan.input_bytes, std::byte{0});
    output_.resize(plan.output_bytes);
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const Tensor& tensor = plan.tensors[plan.inputs[i]];
      const uint64_t bytes = tensor.bytes / plan.batch_size;
      for (size_t row = 0; row < rows.size(); ++row) {
        FOLIOT_CHECK((*rows[row])[i].size() == bytes);
        std::memcpy(input_.data() + tensor.offset + row * bytes, (*rows[row])[i].data(), bytes);
      }
    }
    FOLIOT_ASSIGN_OR_RETURN(const Duration taken, runner_->run(position, input_, output_));
    outputs.assign(rows.size(), StageRow());
    for (const TensorIndex index : plan.outputs) {
      const Tensor& tensor = plan.tensors[index];
      const uint64_t bytes = tensor.bytes / plan.batch_size;
      for (size_t row = 0; row < rows.size(); ++row) {
        const auto begin = output_.begin() + static_cast<int64_t>(tensor.offset + row * bytes);
        outputs[row].emplace_back(begin, begin + static_cast<int64_t>(bytes));
      }
    }
    return taken;
  }

 private:
  const Package package_;
  const std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<ProgramRunner> runner_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

class ContainerStage : public StageRunner {
 public:
  explicit ContainerStage(std::unique_ptr<ContainerProcess> process) : process_(std::move(process)) {}

  Status open(const ModelFolder& folder, const std::vector<uint32_t>& batch_sizes) {
    const ContainerDescription& description = process_->description();
    FOLIOT_RETURN_IF_ERROR(process_->share_memory(container_memory_bytes(description, 1)));
    std::vector<uint32_t> sizes;
    for (const uint32_t size : batch_sizes) {
      if (size <= description.batch_size_max) sizes.push_back(size);
    }
    FOLIOT_ASSIGN_OR_RETURN(std::vector<Duration> durations, profile(*process_, sizes, {.quantile = kStageQuantile}));
    FOLIOT_ASSIGN_OR_RETURN(std::string kind, ReplicaKinds().take(folder.name));
    ModelInfo info = container_model(description, std::move(kind), std::move(sizes), std::move(durations));
    info.name = folder.name;
    info.version = folder.version;
    model_ = std::make_shared<const ModelInfo>(std::move(info));
    return Status();
  }

  Result<Duration> run(BucketId /*bucket*/, std::span<const StageRow* const> rows,
                       std::vector<StageRow>& outputs) override {
    const auto count = static_cast<uint32_t>(rows.size());
    uint64_t at = 0;
    for (size_t i = 0; i < model_->inputs.size(); ++i) {
      const uint64_t bytes = row_bytes(model_->inputs[i], Bucket());
      for (uint32_t row = 0; row < count; ++row) {
        FOLIOT_CHECK((*rows[row])[i].size() == bytes);
        std::ranges::copy((*rows[row])[i], process_->memory().subspan(at + row * bytes, bytes).begin());
      }
      at += aligned_tensor_bytes(bytes * count);
    }
    const uint64_t output_offset = process_->description().input_bytes(count);
    const TimePoint begin = monotonic_now();
    FOLIOT_RETURN_IF_ERROR(process_->call_listening(count, 0, output_offset, kStageCallTimeout));
    const Duration taken = monotonic_now() - begin;
    process_->listen(Duration());
    outputs.assign(count, StageRow());
    at = output_offset;
    for (const TensorSpec& output : model_->outputs) {
      const uint64_t bytes = row_bytes(output, Bucket());
      for (uint32_t row = 0; row < count; ++row) {
        const auto from = process_->memory().subspan(at + row * bytes, bytes);
        outputs[row].emplace_back(from.begin(), from.end());
      }
      at += aligned_tensor_bytes(bytes * count);
    }
    return taken;
  }

 private:
  const std::unique_ptr<ContainerProcess> process_;
};

}  // namespace

Result<std::unique_ptr<StageRunner>> run_compiled_stage(const ModelFolder& folder, Package package, uint32_t threads,
                                                        const std::string& kind) {
  auto stage = std::make_unique<CompiledStage>(folder, std::move(package), threads, kind);
  FOLIOT_RETURN_IF_ERROR(stage->open());
  return std::unique_ptr<StageRunner>(std::move(stage));
}

Result<std::unique_ptr<StageRunner>> run_container_stage(const ModelFolder& folder,
                                                         const std::vector<uint32_t>& batch_sizes) {
  FOLIOT_ASSIGN_OR_RETURN(const ContainerOptions options,
                          container_options(folder, container_launch_command(), python_package_folder()));
  const auto print = [name = folder.name](std::string_view line) {
    fmt::print(stderr, "replica {}: {}\n", name, line);
  };
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<ContainerProcess> process, ContainerProcess::start(options, print));
  auto stage = std::make_unique<ContainerStage>(std::move(process));
  FOLIOT_RETURN_IF_ERROR(stage->open(folder, batch_sizes));
  return std::unique_ptr<StageRunner>(std::move(stage));
}

}  // namespace foliot
