#include "answer/own_policies/policy_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Where the tensors of a call lie, as python/foliot/selection.py describes them.
struct Layout {
  explicit Layout(size_t models)
      : state(aligned_tensor_bytes(3 * sizeof(int64_t))),
        weights(state + aligned_tensor_bytes(OwnPolicy::kStateMax * sizeof(double))),
        losses(weights + aligned_tensor_bytes(PolicyProcess::kFeedbackMax * models * sizeof(double))),
        inputs_end(losses + aligned_tensor_bytes(PolicyProcess::kFeedbackMax * models * sizeof(double))),
        out_counts(inputs_end),
        out_state(out_counts + aligned_tensor_bytes(2 * sizeof(int64_t))),
        out_weights(out_state + aligned_tensor_bytes(OwnPolicy::kStateMax * sizeof(double))),
        end(out_weights + aligned_tensor_bytes(models * sizeof(double))) {}

  uint64_t state, weights, losses, inputs_end, out_counts, out_state, out_weights, end;
};

}  // namespace

Result<std::unique_ptr<PolicyProcess>> PolicyProcess::start(const OwnPolicyOptions& policy, const PolicyPlace& place,
                                                            ContainerProcess::OnLine on_line,
                                                            const std::function<bool()>& cancelled) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(policy.file, error);
  if (error) return Status::internal(fmt::format("{}: {}", policy.file.string(), error.message()));
  std::string names;
  for (const std::string& model : policy.models) names += (names.empty() ? "" : "\n") + model;
  const std::string name = file.filename().string();
  const ContainerOptions options{.name = name,
                                 .folder = file.parent_path(),
                                 .module = "foliot.selection",
                                 .python = policy.python,
                                 .package = place.package,
                                 .launcher = place.launcher,
                                 .environment = {"FOLIOT_POLICY=" + name, "FOLIOT_POLICY_MODELS=" + names},
                                 .memory_bytes = kMemoryBytes,
                                 .disk_bytes = kDiskBytes,
                                 .safety = place.safety};
  FOLIOT_ASSIGN_OR_RETURN(auto process, ContainerProcess::start(options, std::move(on_line), cancelled));
  const Layout layout(policy.models.size());
  const ContainerDescription& described = process->description();
  if (described.input_bytes(1) != layout.inputs_end || described.output_bytes(1) != layout.end - layout.inputs_end) {
    return Status::internal("its description is not that of a policy");
  }
  FOLIOT_RETURN_IF_ERROR(process->share_memory(layout.end));
  return std::unique_ptr<PolicyProcess>(new PolicyProcess(std::move(process), policy));
}

PolicyProcess::PolicyProcess(std::unique_ptr<ContainerProcess> process, const OwnPolicyOptions& policy)
    : process_(std::move(process)), models_(policy.models.size()), combines_(policy.combines) {}

Result<OwnPolicy::Part> PolicyProcess::ask(const ServedApplication::OwnWork& work) {
  FOLIOT_CHECK(work.feedback.size() <= kFeedbackMax && work.state.size() <= OwnPolicy::kStateMax);
  write(work);
  FOLIOT_RETURN_IF_ERROR(process_->call_listening(1, 0, Layout(models_).inputs_end, kTimeout));
  return read();
}

void PolicyProcess::write(const ServedApplication::OwnWork& work) {
  const Layout layout(models_);
  const auto put = [memory = process_->memory()](uint64_t at, const auto& values) {
    const std::span bytes = std::as_bytes(std::span(values));
    std::ranges::copy(bytes, memory.subspan(at).begin());
  };
  put(0, std::array<int64_t, 3>{work.begins ? 1 : 0, static_cast<int64_t>(work.state.size()),
                                static_cast<int64_t>(work.feedback.size())});
  put(layout.state, work.state);
  std::vector<double> losses(models_);
  for (size_t i = 0; i < work.feedback.size(); ++i) {
    const LearnedFeedback& feedback = *work.feedback[i];
    for (size_t model = 0; model < models_; ++model) {
      const std::optional<double>& loss = feedback.losses[model];
      losses[model] = loss ? std::clamp(*loss, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
    }
    const uint64_t row = i * models_ * sizeof(double);
    put(layout.weights + row, feedback.selection.weights);
    put(layout.losses + row, losses);
  }
}

// The process may write to the memory at any time: what is checked is a copy.
Result<OwnPolicy::Part> PolicyProcess::read() const {
  const Layout layout(models_);
  const auto take = [this](uint64_t at, void* to, size_t bytes) {
    std::memcpy(to, process_->memory().data() + at, bytes);
  };
  std::array<int64_t, 2> counts{};
  take(layout.out_counts, counts.data(), sizeof(counts));
  if (counts[0] < 0 || counts[0] > static_cast<int64_t>(OwnPolicy::kStateMax)) {
    return Status::internal(fmt::format("it returned a state of {} numbers", counts[0]));
  }
  if ((counts[1] != 0) != combines_) {
    return Status::invalid_argument(fmt::format("its class Policy has {} method combine: set combines = {} in [policy]",
                                                combines_ ? "no" : "a", !combines_));
  }
  OwnPolicy::Part part{.weights = std::vector<double>(models_),
                       .state = std::vector<double>(static_cast<size_t>(counts[0]))};
  take(layout.out_state, part.state.data(), part.state.size() * sizeof(double));
  take(layout.out_weights, part.weights.data(), part.weights.size() * sizeof(double));
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (!std::ranges::all_of(part.state, is_finite) || !std::ranges::all_of(part.weights, is_share)) {
    return Status::internal("it returned numbers that are none of a policy");
  }
  return part;
}

Status PolicyProcess::listen(Duration most) {
  if (process_->listen(most) && process_->alive()) return Status();
  return Status::unavailable(fmt::format("its process has ended: {}", process_->ending()));
}

}  // namespace foliot
