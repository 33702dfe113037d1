#include "app/commands/sampled_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/core/tensor_part.h"
#include "foundation/core/visit_reading.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Of each batch size: so many batches, or as many as there is time for, and some in any case.
constexpr size_t kSampledBatchesMost = 100, kSampledBatchesLeast = 10;
constexpr Duration kSampledBatchTime = Duration::seconds(2);
constexpr size_t kSampledWarmUps = 3;
constexpr double kSampledQuantiles[] = {0.5, 0.99};

// A row of `from`, padded with zeros to the extents of `to`. REQUIRES: none of these is smaller.
void copy_padded(const std::byte* from, std::span<const int64_t> from_shape, std::byte* to,
                 std::span<const int64_t> to_shape, uint64_t element_bytes) {
  if (from_shape.empty()) {
    std::memcpy(to, from, element_bytes);
    return;
  }
  uint64_t from_bytes = element_bytes;
  uint64_t to_bytes = element_bytes;
  for (const int64_t extent : from_shape.subspan(1)) from_bytes *= static_cast<uint64_t>(extent);
  for (const int64_t extent : to_shape.subspan(1)) to_bytes *= static_cast<uint64_t>(extent);
  if (from_bytes == to_bytes) {
    std::memcpy(to, from, from_bytes * static_cast<uint64_t>(from_shape.front()));
    return;
  }
  for (int64_t i = 0; i < from_shape.front(); ++i) {
    copy_padded(from + static_cast<uint64_t>(i) * from_bytes, from_shape.subspan(1),
                to + static_cast<uint64_t>(i) * to_bytes, to_shape.subspan(1), element_bytes);
  }
}

Shape row_shape(const NpyArray& array) { return {array.shape.begin() + 1, array.shape.end()}; }

bool fits(const Shape& row, const Shape& extents) {
  return std::ranges::equal(row, extents, [](int64_t own, int64_t most) { return own <= most; });
}

Duration sampled_quantile(std::vector<Duration>& durations, double quantile) {
  std::ranges::sort(durations);
  const double rank = std::ceil(quantile * static_cast<double>(durations.size()));
  return durations[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

SampledProfile::SampledProfile(const ModelInfo& served, std::vector<StageRunner*> runners, ProgressBar& bar)
    : served_(served), pipeline_(*served.pipeline), runners_(std::move(runners)), bar_(bar) {
  FOLIOT_CHECK(runners_.size() == pipeline_.stages.size());
}

Result<StageProfiles> SampledProfile::measure(const std::map<std::string, NpyArray>& calls, const std::string& file) {
  FOLIOT_RETURN_IF_ERROR(take_calls(calls, file));
  outputs_.resize(pipeline_.stages.size());
  conditions_.resize(pipeline_.stages.size());
  counts_.resize(pipeline_.stages.size());
  StageProfiles profiles;
  for (uint32_t i = 0; i < pipeline_.stages.size(); ++i) {
    const PipelineStage& stage = pipeline_.stages[i];
    Status status = run_stage(i);
    if (!status.ok()) return status.with_context(fmt::format("stage '{}'", stage.name));
    if (inputs_.empty()) {
      return Status::invalid_argument(
          fmt::format("{}: none of its {} calls visits stage '{}': add calls that do, or measure without --calls", file,
                      count_, stage.name));
    }
    const Runnable& runnable = runners_[i]->model()->only();
    auto quantiles = measure_stage(i, runnable.batch_sizes);
    if (!quantiles.ok()) return quantiles.status().with_context(fmt::format("stage '{}'", stage.name));
    KindProfile kind{runnable.kind, runnable.batch_sizes, *std::move(quantiles)};
    kind.raise_to_smaller();
    FOLIOT_RETURN_IF_ERROR(kind.check());
    StageProfile profile{.stage = stage.name, .kinds = {std::move(kind)}};
    profile.scale_factor = static_cast<double>(inputs_.size()) / static_cast<double>(count_);
    if (stage.for_each) profile.visits_shares = visits_shares(i);
    profiles.emplace(stage.name, std::move(profile));
    forget_what_none_takes(i);
  }
  return profiles;
}

// ---- Calls ----

Status SampledProfile::check_array(const TensorSpec& input, const NpyArray& array, const std::string& file) const {
  const std::string where = fmt::format("{}: '{}'", file, input.name);
  if (array.type != input.type || array.shape.size() != input.shape.size() + 1) {
    return Status::invalid_argument(fmt::format("{} has {} {}, and must have {} and, after the calls, {}", where,
                                                to_string(array.type), to_string(array.shape), to_string(input.type),
                                                to_string(input.shape)));
  }
  const auto rows = static_cast<size_t>(array.shape.front());
  if (rows == 0 || (count_ > 0 && rows != count_)) {
    return Status::invalid_argument(
        fmt::format("{} has {} calls, and must have {}", where, rows,
                    count_ > 0 ? fmt::format("{}, as the other inputs have", count_) : "at least one"));
  }
  return Status();
}

// The first that all inputs fit in, as for a call.
Status SampledProfile::choose_bucket(const std::map<std::string, NpyArray>& calls, const std::string& file) {
  for (size_t bucket = 0; bucket < served_.buckets.size(); ++bucket) {
    const bool all_fit = std::ranges::all_of(served_.inputs, [&](const TensorSpec& input) {
      return fits(row_shape(calls.at(input.name)), shape_in(input, served_.buckets[bucket]));
    });
    if (!all_fit) continue;
    bucket_ = BucketId(static_cast<uint16_t>(bucket));
    return Status();
  }
  std::string most;
  for (const TensorSpec& input : served_.inputs) {
    most += fmt::format("{}'{}' of at most {}", most.empty() ? "" : ", ", input.name,
                        to_string(shape_in(input, served_.buckets.back())));
  }
  return Status::invalid_argument(fmt::format("{}: its calls are larger than the pipeline takes: {}", file, most));
}

Status SampledProfile::take_calls(const std::map<std::string, NpyArray>& calls, const std::string& file) {
  for (const auto& [name, array] : calls) {
    if (std::ranges::find(served_.inputs, name, &TensorSpec::name) == served_.inputs.end()) {
      return Status::invalid_argument(fmt::format("{}: the pipeline has no input '{}'", file, name));
    }
  }
  for (const TensorSpec& input : served_.inputs) {
    const auto found = calls.find(input.name);
    if (found == calls.end()) {
      return Status::invalid_argument(
          fmt::format("{}: has no array '{}', which is an input of the pipeline", file, input.name));
    }
    FOLIOT_RETURN_IF_ERROR(check_array(input, found->second, file));
    count_ = static_cast<size_t>(found->second.shape.front());
  }
  FOLIOT_RETURN_IF_ERROR(choose_bucket(calls, file));
  calls_.resize(count_);
  for (const TensorSpec& input : served_.inputs) {
    const NpyArray& array = calls.at(input.name);
    const Shape own = row_shape(array);
    const Shape extents = shape_in(input, served_.buckets[bucket_.value()]);
    const uint64_t own_bytes = byte_size(array.type, own);
    for (size_t i = 0; i < count_; ++i) {
      std::vector<std::byte>& tensor = calls_[i].emplace_back(byte_size(array.type, extents));
      if (own_bytes > 0) {
        copy_padded(array.bytes.data() + i * own_bytes, own, tensor.data(), extents, size_of(array.type));
      }
    }
  }
  return Status();
}

// ---- Stages ----

std::optional<uint32_t> SampledProfile::visits_of(uint32_t stage, size_t call) const {
  const PipelineStage& info = pipeline_.stages[stage];
  const auto is_there = [&](const TensorSource& source) {
    return !source.stage || outputs_[*source.stage][call] != nullptr;
  };
  const bool is_wanted = std::ranges::all_of(info.requires_all, [&](const PipelineStage::Requirement& each) {
    return outputs_[each.stage][call] != nullptr && (conditions_[each.stage][call] >> each.condition & 1) != 0;
  });
  const bool is_fed = std::ranges::all_of(
      info.inputs, [&](const std::vector<TensorSource>& sources) { return std::ranges::any_of(sources, is_there); });
  if (!is_wanted || !is_fed) return std::nullopt;
  if (!info.for_each) return 1;
  if (outputs_[info.for_each->stage][call] == nullptr) return std::nullopt;
  return counts_[info.for_each->stage][call];
}

StageRow SampledProfile::inputs_of(uint32_t stage, size_t call, uint32_t element) const {
  StageRow row;
  for (const std::vector<TensorSource>& sources : pipeline_.stages[stage].inputs) {
    const auto source = std::ranges::find_if(
        sources, [&](const TensorSource& each) { return !each.stage || outputs_[*each.stage][call] != nullptr; });
    const auto& whole =
        source->stage ? (*outputs_[*source->stage][call])[source->tensor] : calls_[call][source->tensor];
    const TensorPart part{source->each ? element : 0, source->each ? pipeline_.stages[stage].visits_most() : 1};
    const std::span<const std::byte> taken = part_of(std::span<const std::byte>(whole), part);
    row.emplace_back(taken.begin(), taken.end());
  }
  return row;
}

Status SampledProfile::run_stage(uint32_t stage) {
  inputs_.clear();
  outputs_[stage].resize(count_);
  conditions_[stage].resize(count_);
  counts_[stage].resize(count_);
  for (size_t call = 0; call < count_; ++call) {
    bar_.show(pipeline_.stages[stage].name, "calls", static_cast<double>(call) / static_cast<double>(count_));
    const std::optional<uint32_t> visits = visits_of(stage, call);
    if (visits) FOLIOT_RETURN_IF_ERROR(run_call(stage, call, *visits));
  }
  return Status();
}

// What the visits make lies one behind the other, and zeros follow.
Status SampledProfile::run_call(uint32_t stage, size_t call, uint32_t visits) {
  const PipelineStage& info = pipeline_.stages[stage];
  auto all = std::make_unique<StageRow>();
  for (const TensorSpec& output : info.model->outputs) {
    const Bucket& dimensions = info.model->buckets[bucket_of(stage).value()];
    all->emplace_back(byte_size(output.type, shape_in(output, dimensions)) * info.visits_most());
  }
  for (uint32_t element = 0; element < visits; ++element) {
    StageRow row = inputs_of(stage, call, element);
    const StageRow* const only = &row;
    std::vector<StageRow> outputs;
    FOLIOT_RETURN_IF_ERROR(runners_[stage]->run(bucket_of(stage), std::span(&only, 1), outputs).status());
    for (size_t i = 0; i < all->size(); ++i) {
      std::ranges::copy(outputs.front()[i], part_of(std::span((*all)[i]), {element, info.visits_most()}).begin());
    }
    if (!info.for_each) FOLIOT_RETURN_IF_ERROR(read(stage, call, *all));
    inputs_.push_back(std::move(row));
  }
  outputs_[stage][call] = std::move(all);
  return Status();
}

Status SampledProfile::read(uint32_t stage, size_t call, const StageRow& outputs) {
  const PipelineStage& info = pipeline_.stages[stage];
  const VisitReading reading = read_visit(info.conditions, info.count, info.model->outputs,
                                          [&](uint32_t output) { return std::span<const std::byte>(outputs[output]); });
  conditions_[stage][call] = reading.conditions;
  if (!info.count) return Status();
  const std::optional<uint32_t> count = whole_count(reading.count, info.count->at_most);
  counts_[stage][call] = count.value_or(0);
  if (count) return Status();
  return Status::invalid_argument(
      fmt::format("on call {} its output '{}' is {}, and must be a whole number from 0 to {}", call,
                  info.model->outputs[info.count->output].name, reading.count, info.count->at_most));
}

std::vector<double> SampledProfile::visits_shares(uint32_t stage) const {
  std::vector<double> shares(2);
  for (size_t call = 0; call < count_; ++call) {
    const uint32_t visits = visits_of(stage, call).value_or(0);
    if (visits >= shares.size()) shares.resize(visits + size_t{1});
    ++shares[visits];
  }
  return shares;
}

Result<std::vector<DurationQuantile>> SampledProfile::measure_stage(uint32_t stage,
                                                                    const std::vector<uint32_t>& batch_sizes) {
  std::vector<DurationQuantile> quantiles;
  for (const double each : kSampledQuantiles) quantiles.push_back({each, {}});
  for (const uint32_t size : batch_sizes) {
    bar_.show(pipeline_.stages[stage].name, fmt::format("batches of {}", size), 0);
    std::vector<Duration> durations;
    std::vector<StageRow> outputs;
    TimePoint begin;
    for (size_t i = 0; durations.size() < kSampledBatchesMost; ++i) {
      if (i == kSampledWarmUps) begin = monotonic_now();
      if (durations.size() >= kSampledBatchesLeast && monotonic_now() - begin > kSampledBatchTime) break;
      std::vector<const StageRow*> rows;
      for (uint32_t row = 0; row < size; ++row) rows.push_back(&inputs_[random_.below(inputs_.size())]);
      FOLIOT_ASSIGN_OR_RETURN(const Duration taken, runners_[stage]->run(bucket_of(stage), rows, outputs));
      if (i >= kSampledWarmUps) durations.push_back(taken);
    }
    for (DurationQuantile& quantile : quantiles) {
      quantile.of_batches.push_back(sampled_quantile(durations, quantile.quantile));
    }
  }
  return quantiles;
}

// Conditions are known already.
void SampledProfile::forget_what_none_takes(uint32_t stage) {
  for (uint32_t i = 0; i <= stage; ++i) {
    bool taken = false;
    for (uint32_t later = stage + 1; later < pipeline_.stages.size(); ++later) {
      for (const std::vector<TensorSource>& sources : pipeline_.stages[later].inputs) {
        taken = taken || std::ranges::any_of(sources, [i](const TensorSource& each) { return each.stage == i; });
      }
    }
    if (taken) continue;
    for (const std::unique_ptr<StageRow>& row : outputs_[i]) {
      if (row != nullptr) row->clear();
    }
  }
}

}  // namespace foliot
