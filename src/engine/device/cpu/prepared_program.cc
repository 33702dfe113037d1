#include "engine/device/cpu/prepared_program.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>

#include "engine/device/cpu/families.h"
#include "engine/device/cpu/thread_limit.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

class KernelOnOneThread : public Kernel {
 public:
  explicit KernelOnOneThread(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  Status run(Addresses addresses) override {
    const ThreadLimit limit(true);
    return kernel_->run(addresses);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

Result<std::unique_ptr<Kernel>> make_kernel(const OperatorView& view, const dnnl::stream& stream) {
  const Operator& operation = view.operation();
  const Family* family = find_family(operation.kind);
  const bool own = operation.kernel.starts_with(kOwnKernel);
  if (family == nullptr || (own ? operation.kernel != family->own_name : family->describe == nullptr))
    return Status::invalid_argument(fmt::format("there is no kernel '{}'", operation.kernel));
  try {
    if (own) return family->make_own(view);
    const bool alone = omp_get_max_threads() > 1 && is_short(view);
    const ThreadLimit limit(alone);
    FOLIOT_ASSIGN_OR_RETURN(const PrimitiveRecipe recipe, family->describe(view));
    if (operation.kernel != recipe.descriptor.impl_info_str())
      return Status::invalid_argument(
          fmt::format("was compiled for kernel '{}', and oneDNN now chooses '{}'; compile "
                      "the model anew",
                      operation.kernel, recipe.descriptor.impl_info_str()));
    FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, make_primitive_kernel(view, recipe, stream));
    if (alone) kernel = std::make_unique<KernelOnOneThread>(std::move(kernel));
    return kernel;
  } catch (const dnnl::error& error) {
    return Status::invalid_argument(fmt::format("oneDNN refuses it: {}", error.what()));
  }
}

// Feeds a hash with everything that a plan consists of, each thing self-delimiting.
class PlanHash {
 public:
  void add(uint64_t number) { hash_.update(std::as_bytes(std::span(&number, 1))); }
  void add(double number) { hash_.update(std::as_bytes(std::span(&number, 1))); }
  void add(int64_t number) { add(static_cast<uint64_t>(number)); }
  void add(uint32_t number) { add(uint64_t{number}); }
  void add(const std::string& text) {
    add(uint64_t{text.size()});
    hash_.update(std::as_bytes(std::span(text)));
  }
  template <typename T>
  void add(const std::vector<T>& items) {
    add(uint64_t{items.size()});
    for (const T& item : items) add(item);
  }
  void add(const Tensor& tensor) {
    add(tensor.name);
    add(uint64_t{static_cast<uint8_t>(tensor.type)});
    add(tensor.shape);
    add(tensor.layout);
    add(tensor.bytes);
    add(uint64_t{static_cast<uint8_t>(tensor.place)});
    add(tensor.offset);
    add(tensor.alias_of);
    add(tensor.alias_offset);
  }
  void add(Function function) { add(uint64_t{static_cast<uint8_t>(function)}); }
  void add(const PostOperation& operation) {
    add(uint64_t{static_cast<uint8_t>(operation.kind)});
    add(operation.function);
    add(operation.alpha);
    add(operation.beta);
    add(operation.input);
  }
  void add(const Operator& operation) {
    add(uint64_t{static_cast<uint16_t>(operation.kind)});
    add(operation.name);
    add(operation.inputs);
    add(operation.outputs);
    add(uint64_t{operation.attributes.values().size()});
    for (const auto& [name, value] : operation.attributes.values()) {
      add(name);
      add(uint64_t{value.index()});
      std::visit([this](const auto& held) { add(held); }, value);
    }
    add(operation.post_operations);
    add(operation.scratchpad);
    add(operation.kernel);
  }
  void add(const Plan& plan) {
    add(plan.tensors);
    add(plan.operators);
    add(plan.inputs);
    add(plan.outputs);
    for (uint64_t bytes : {plan.workspace_bytes, plan.input_bytes, plan.output_bytes}) add(bytes);
  }
  std::string digest() const { return hash_.digest_hex(); }

 private:
  StreamHash hash_;
};

}  // namespace

Status PreparedProgram::prepare(uint32_t position, uint32_t width, const Plan& plan, const dnnl::engine& engine,
                                const dnnl::stream& stream) {
  FOLIOT_CHECK(position < plans_.size() && is_lane_interval({0, width}, lanes_));
  PreparedPlan& prepared = plans_[position];
  Width& made = prepared.width[width_index(width)];
  if (made.ready) return Status();
  std::vector<LaneKernels> intervals(lanes_ / width);
  for (LaneKernels& interval : intervals) {
    interval.addresses.resize(plan.tensors.size());
    for (const Operator& operation : plan.operators) {
      auto kernel = make_kernel(OperatorView(operation, plan.tensors, engine), stream);
      if (!kernel.ok())
        return kernel.status().with_context(fmt::format("operator '{}' ({}, batch size {})", operation.name,
                                                        to_string(operation.kind), plan.batch_size));
      if ((*kernel)->failed_rows() != nullptr) interval.refusing.push_back(interval.kernels.size());
      interval.kernels.push_back(std::move(kernel).value());
    }
  }
  if (prepared.locations.empty()) {
    for (const Tensor& tensor : plan.tensors) prepared.locations.push_back({tensor.place, tensor.offset});
    prepared.watch = NanWatch(plan);
  }
  made.intervals = std::move(intervals);
  made.ready = true;
  return Status();
}

Status PreparedProgram::run(uint32_t position, LaneInterval lanes, OperatorRange range, const Bases& bases,
                            RowSet* failed_rows) {
  FOLIOT_CHECK(position < plans_.size() && is_lane_interval(lanes, lanes_));
  PreparedPlan& prepared = plans_[position];
  Width& width = prepared.width[width_index(lanes.count)];
  FOLIOT_CHECK(width.ready);
  LaneKernels& interval = width.intervals[lanes.first / lanes.count];
  const auto last = std::min<size_t>(range.last, interval.kernels.size());
  FOLIOT_CHECK(range.first <= last);
  std::byte* const base[] = {bases.weights, bases.workspace, bases.input, bases.output};
  for (size_t i = 0; i < prepared.locations.size(); ++i)
    interval.addresses[i] = base[static_cast<size_t>(prepared.locations[i].place)] + prepared.locations[i].offset;
  for (size_t i = range.first; i < last; ++i) {
    const bool watches = failed_rows != nullptr && prepared.watch.watches(i);
    if (watches) NanWatch::begin();
    FOLIOT_RETURN_IF_ERROR(interval.kernels[i]->run(interval.addresses));
    if (watches) prepared.watch.end(i, interval.addresses, *failed_rows);
  }
  for (const size_t i : interval.refusing) {
    if (failed_rows != nullptr && i >= range.first && i < last) *failed_rows |= *interval.kernels[i]->failed_rows();
  }
  return Status();
}

std::string plans_key(std::span<const Plan> plans) {
  PlanHash hash;
  hash.add(uint64_t{plans.size()});
  for (const Plan& plan : plans) hash.add(plan);
  return hash.digest();
}

}  // namespace foliot
