#include "answer/model_calls/inference_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "answer/inference/foreign_clients.h"
#include "answer/model_calls/adapted_inputs.h"
#include "foundation/base/check.h"
#include "foundation/base/units.h"
#include "foundation/core/bounded_row.h"
#include "foundation/core/linear_extent.h"
#include "foundation/core/tensor_part.h"

namespace foliot {
namespace {

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::vector<std::string_view> names;
  names.reserve(specs.size());
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// "[rows,3,sequence]": the shape that a client has to send.
std::string expected_shape(const ModelInfo& model, const TensorSpec& spec) {
  std::vector<std::string> extents;
  if (model.batching) extents.emplace_back("rows");
  for (size_t i = 0; i < spec.shape.size(); ++i)
    extents.push_back(spec.shape[i] >= 0 ? std::to_string(spec.shape[i])
                      : spec.bound       ? fmt::format("0..{}", spec.bound->shape[i])
                                         : spec.dimension_names[i]);
  return fmt::format("[{}]", fmt::join(extents, ","));
}

// Copies the box that two row-major tensors have in common.
void copy_box(const std::byte* from, std::span<const int64_t> from_shape, std::byte* to,
              std::span<const int64_t> to_shape, size_t element_bytes) {
  size_t from_stride = element_bytes;
  size_t to_stride = element_bytes;
  for (size_t i = 1; i < from_shape.size(); ++i) {
    from_stride *= static_cast<size_t>(from_shape[i]);
    to_stride *= static_cast<size_t>(to_shape[i]);
  }
  const auto extent = static_cast<size_t>(std::min(from_shape[0], to_shape[0]));
  if (std::equal(from_shape.begin() + 1, from_shape.end(), to_shape.begin() + 1)) {
    std::memcpy(to, from, extent * from_stride);
    return;
  }
  for (size_t i = 0; i < extent; ++i)
    copy_box(from + i * from_stride, from_shape.subspan(1), to + i * to_stride, to_shape.subspan(1), element_bytes);
}

void copy_rows(std::span<const std::byte> from, const Shape& from_shape, std::string& to, const Shape& to_shape,
               size_t element_bytes, uint32_t rows) {
  Shape from_all{rows};
  Shape to_all{rows};
  from_all.insert(from_all.end(), from_shape.begin(), from_shape.end());
  to_all.insert(to_all.end(), to_shape.begin(), to_shape.end());
  copy_box(from.data(), from_all, reinterpret_cast<std::byte*>(to.data()), to_all, element_bytes);
}

// What the call asks for, or else the task by default.
TaskRequirements requirements_of(const Query& query, const ModelInfo& model) {
  TaskRequirements asked;
  if (model.task == nullptr) return asked;
  asked.accuracy = query.accuracy.value_or(model.task->accuracy);
  const double nanodollars = query.cost.value_or(HUGE_VAL) * 1e9;
  if (nanodollars < static_cast<double>(TaskRequirements::kNoCostLimit)) {
    asked.cost_nanodollars_most = std::llround(nanodollars);
  }
  return asked;
}

}  // namespace

InferenceCall::InferenceCall(std::shared_ptr<const ModelInfo> model, const Query& query, const CallLimits& limits)
    : model_(std::move(model)),
      id_(query.id),
      arrival_(query.arrival),
      deadline_(foliot::applied_deadline(query, *model_)),
      offline_(query.request_class == RequestClass::kOffline),
      optional_(query.optional),
      requirements_(requirements_of(query, *model_)),
      body_bytes_(query.body_bytes),
      inputs_owner_(query.owner),
      limits_(limits) {}

Result<std::unique_ptr<InferenceCall>> InferenceCall::make(std::shared_ptr<const ModelInfo> model, const Query& query,
                                                           const CallLimits& limits) {
  std::unique_ptr<InferenceCall> call(new InferenceCall(std::move(model), query, limits));
  const std::vector<TensorView>* sent = &query.inputs;
  AdaptedInputs adapted;
  if (takes_other_forms(call->model())) {
    Result<AdaptedInputs> result = adapt_inputs(call->model(), query.inputs);
    if (!result.ok()) return result.status().with_context(fmt::format("model '{}'", call->model().name));
    adapted = std::move(result).value();
    sent = &adapted.views;
    call->converted_ = std::move(adapted.converted);
  }
  Result<std::vector<const TensorView*>> inputs = call->match_inputs(*sent);
  Status status = inputs.status();
  if (status.ok()) status = call->read_shapes(*inputs);
  if (status.ok()) status = call->choose_bucket();
  if (status.ok()) status = call->take_inputs(*inputs);
  if (status.ok()) status = call->choose_outputs(query);
  if (status.ok()) status = call->take_stages();
  if (!status.ok()) return status.with_context(fmt::format("model '{}'", call->model().name));
  call->completions_.reserve(call->rows_);
  return call;
}

// The inputs in the model's order.
Result<std::vector<const TensorView*>> InferenceCall::match_inputs(const std::vector<TensorView>& sent) const {
  const std::vector<TensorSpec>& specs = model_->inputs;
  std::vector<const TensorView*> matched(specs.size());
  for (const TensorView& input : sent) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == input.name; });
    if (spec == specs.end())
      return Status::invalid_argument(
          fmt::format("unknown input '{}'; the inputs are {}", input.name, names_of(specs)));
    const TensorView*& place = matched[static_cast<size_t>(spec - specs.begin())];
    if (place != nullptr) return Status::invalid_argument(fmt::format("input '{}' was sent twice", input.name));
    place = &input;
  }
  for (size_t i = 0; i < specs.size(); ++i)
    if (matched[i] == nullptr)
      return Status::invalid_argument(
          fmt::format("input '{}' is missing; the inputs are {}", specs[i].name, names_of(specs)));
  return matched;
}

Status InferenceCall::read_shapes(std::span<const TensorView* const> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) FOLIOT_RETURN_IF_ERROR(read_shape(model_->inputs[i], *inputs[i]));
  rows_ = std::max<uint32_t>(rows_, 1);
  return Status::ok_status();
}

Status InferenceCall::read_shape(const TensorSpec& spec, const TensorView& input) {
  if (input.datatype != to_string(spec.type))
    return Status::invalid_argument(
        fmt::format("input '{}': expected datatype {}, got '{}'", spec.name, to_string(spec.type), input.datatype));

  const size_t leading = model_->batching ? 1 : 0;
  bool fits = input.shape.size() == spec.shape.size() + leading;
  for (size_t i = 0; fits && i < spec.shape.size(); ++i) {
    const int64_t extent = input.shape[i + leading];
    fits = spec.shape[i] >= 0 ? extent == spec.shape[i]
           : spec.bound       ? extent >= 0 && extent <= spec.bound->shape[i]
                              : extent > 0;
  }
  if (!fits)
    return Status::invalid_argument(fmt::format("input '{}': expected shape {}, got {}", spec.name,
                                                expected_shape(*model_, spec), to_string(input.shape)));

  if (model_->batching) FOLIOT_RETURN_IF_ERROR(read_rows(spec, input.shape[0]));
  for (size_t i = 0; i < spec.shape.size(); ++i)
    if (spec.shape[i] < 0 && !spec.bound)
      FOLIOT_RETURN_IF_ERROR(read_dimension(spec, spec.dimension_names[i], input.shape[i + leading]));
  return Status::ok_status();
}

Status InferenceCall::read_rows(const TensorSpec& spec, int64_t rows) {
  const int64_t rows_max = std::max(limits_.rows_max, model_->batch_size_max());
  if (rows < 1 || rows > rows_max)
    return Status::invalid_argument(
        fmt::format("input '{}': expected 1 to {} rows in one call (half of --requests-in-flight-max), got {}",
                    spec.name, rows_max, rows));
  if (rows_ != 0 && rows_ != rows)
    return Status::invalid_argument(fmt::format("input '{}': expected {} rows like input '{}', got {}", spec.name,
                                                rows_, model_->inputs.front().name, rows));
  rows_ = static_cast<uint32_t>(rows);
  return Status::ok_status();
}

Status InferenceCall::read_dimension(const TensorSpec& spec, std::string_view dimension, int64_t extent) {
  for (const auto& [name, known] : dimensions_)
    if (name == dimension) {
      if (known == extent) return Status::ok_status();
      return Status::invalid_argument(fmt::format("input '{}': expected {} = {} like the other inputs, got {}",
                                                  spec.name, dimension, known, extent));
    }
  dimensions_.emplace_back(dimension, extent);
  return Status::ok_status();
}

bool InferenceCall::is_leading(std::string_view dimension) const {
  return !model_->batching && std::ranges::any_of(model_->inputs, [&](const TensorSpec& spec) {
    return !spec.dimension_names.empty() && spec.dimension_names.front() == dimension;
  });
}

Status InferenceCall::choose_bucket() {
  bool has_leading = false;
  const auto fits = [&](const Bucket& bucket) {
    return std::all_of(dimensions_.begin(), dimensions_.end(), [&](const auto& dimension) {
      const auto declared = bucket.dimensions.find(std::string(dimension.first));
      if (declared == bucket.dimensions.end()) return false;
      // The model computes one row of it with another, so that padding would change the result.
      const bool leads = is_leading(dimension.first);
      has_leading = has_leading || leads;
      return leads ? dimension.second == declared->second : dimension.second <= declared->second;
    });
  };
  const auto bucket = std::find_if(model_->buckets.begin(), model_->buckets.end(), fits);
  if (bucket != model_->buckets.end()) {
    bucket_ = BucketId(static_cast<uint16_t>(bucket - model_->buckets.begin()));
    return Status::ok_status();
  }
  std::vector<std::string> sent;
  for (const auto& [name, extent] : dimensions_) sent.push_back(fmt::format("{} = {}", name, extent));
  std::vector<std::string> declared;
  for (const Bucket& candidate : model_->buckets) {
    std::vector<std::string> sizes;
    for (const auto& [name, extent] : dimensions_) {
      const auto size = candidate.dimensions.find(std::string(name));
      if (size != candidate.dimensions.end()) sizes.push_back(fmt::format("{} = {}", name, size->second));
    }
    declared.push_back(fmt::format("{}", fmt::join(sizes, ", ")));
  }
  if (has_leading) {
    return Status::invalid_argument(fmt::format(
        "{} is none of the sizes that the model was compiled for: [{}]. Its first dimension is no batch and "
        "is not padded; list the size under [buckets] in model.toml",
        fmt::join(sent, ", "), fmt::join(declared, "], [")));
  }
  return Status::invalid_argument(fmt::format("{} fits no declared bucket; expected at most one of [{}]",
                                              fmt::join(sent, ", "), fmt::join(declared, "], [")));
}

Status InferenceCall::take_inputs(std::span<const TensorView* const> inputs) {
  inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = model_->inputs[i];
    if (spec.bound) {
      FOLIOT_RETURN_IF_ERROR(take_bounded_input(spec, *inputs[i], inputs_[i]));
      continue;
    }
    const Shape sent_shape = client_shape(spec);
    const Shape shape = bucket_shape(spec);
    const uint64_t expected = byte_size(spec.type, sent_shape) * rows_;
    if (inputs[i]->bytes.size() != expected)
      return Status::invalid_argument(fmt::format("input '{}': expected {} bytes for {} of shape {}, got {}", spec.name,
                                                  expected, to_string(spec.type), to_string(inputs[i]->shape),
                                                  inputs[i]->bytes.size()));
    Input& input = inputs_[i];
    input.row_bytes = byte_size(spec.type, shape);
    input.bytes = inputs[i]->bytes;
    // One with a deadline may be answered before its device has read them.
    const bool stay = inputs_owner_ != nullptr || deadline_.at.is_infinite();
    if (shape == sent_shape && stay) continue;
    input.padded.resize(input.row_bytes * rows_);
    copy_rows(input.bytes, sent_shape, input.padded, shape, size_of(spec.type), rows_);
    input.bytes = std::as_bytes(std::span(input.padded));
  }
  return Status::ok_status();
}

Status InferenceCall::take_bounded_input(const TensorSpec& spec, const TensorView& sent, Input& input) {
  input.row_bytes = bounded_row_bytes(spec);
  FOLIOT_RETURN_IF_ERROR(check_room("input", spec, input.row_bytes));
  const Shape extents(sent.shape.begin() + (model_->batching ? 1 : 0), sent.shape.end());
  FOLIOT_ASSIGN_OR_RETURN(input.padded, to_rows(spec, extents, rows_, sent.bytes));
  input.bytes = std::as_bytes(std::span(input.padded));
  body_bytes_ += input.padded.size();
  return Status();
}

Status InferenceCall::check_room(std::string_view kind, const TensorSpec& spec, uint64_t row_bytes) const {
  if (rows_ <= model_->batch_size_max() || row_bytes <= limits_.output_bytes_max / rows_) return Status();
  return Status::invalid_argument(
      fmt::format("{} '{}': {} of each of {} rows are more than the {} that are allowed (--tensor-max); send "
                  "fewer rows in one call",
                  kind, spec.name, format_bytes(row_bytes), rows_, format_bytes(limits_.output_bytes_max)));
}

Status InferenceCall::choose_outputs(const Query& query) {
  const std::vector<TensorSpec>& specs = model_->outputs;
  outputs_ = std::vector<Output>(specs.size());
  const size_t by_default = default_output_count(*model_);
  for (size_t i = 0; i < specs.size(); ++i) {
    outputs_[i].row_bytes = foliot::row_bytes(specs[i], model_->buckets[bucket_.value()]);
    FOLIOT_RETURN_IF_ERROR(check_room("output", specs[i], outputs_[i].row_bytes));
    if (query.outputs.empty() && i < by_default) requested_.push_back(static_cast<uint32_t>(i));
  }
  for (std::string_view name : query.outputs) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == name; });
    if (spec == specs.end())
      return Status::invalid_argument(fmt::format("unknown output '{}'; the outputs are {}", name, names_of(specs)));
    const auto index = static_cast<uint32_t>(spec - specs.begin());
    if (std::find(requested_.begin(), requested_.end(), index) != requested_.end())
      return Status::invalid_argument(fmt::format("output '{}' was asked for twice", name));
    requested_.push_back(index);
  }
  return Status::ok_status();
}

Shape InferenceCall::bucket_shape(const TensorSpec& spec) const {
  return shape_in(spec, model_->buckets[bucket_.value()]);
}

std::optional<int64_t> InferenceCall::client_extent(std::string_view name) const {
  const auto sent = [&](std::string_view dimension) -> std::optional<int64_t> {
    const auto found = std::ranges::find(dimensions_, dimension, &Dimensions::value_type::first);
    return found == dimensions_.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto extent = sent(name)) return extent;
  const std::optional<LinearExtent> linear = parse_linear_extent(name);
  const std::optional<int64_t> extent = linear ? sent(linear->dimension) : std::nullopt;
  return extent ? std::optional(linear->of(*extent)) : std::nullopt;
}

Shape InferenceCall::client_shape(const TensorSpec& spec) const {
  Shape shape = bucket_shape(spec);
  for (size_t i = 0; i < shape.size(); ++i)
    if (spec.shape[i] < 0) shape[i] = std::min(shape[i], client_extent(spec.dimension_names[i]).value_or(shape[i]));
  return shape;
}

bool InferenceCall::is_padded() const {
  return std::ranges::any_of(dimensions_, [&](const auto& dimension) {
    return dimension.second < model_->buckets[bucket_.value()].dimensions.at(std::string(dimension.first));
  });
}

bool InferenceCall::requested_is_padded(uint32_t i) const {
  if (const auto& collected = outputs_[requested_[i]].collected) return collected->padded;
  const TensorSpec& spec = requested_spec(i);
  for (size_t axis = 0; axis < spec.shape.size(); ++axis)
    if (spec.shape[axis] < 0 && !client_extent(spec.dimension_names[axis])) return is_padded();
  return false;
}

std::span<const std::byte> InferenceCall::input(uint32_t row, uint32_t index) const {
  FOLIOT_CHECK(row < rows_ && index < inputs_.size());
  const Input& input = inputs_[index];
  return input.bytes.subspan(row * input.row_bytes, input.row_bytes);
}

std::span<std::byte> InferenceCall::output(uint32_t row, uint32_t index) {
  FOLIOT_CHECK(row < rows_ && index < outputs_.size());
  Output& output = made_output(index);
  return std::as_writable_bytes(std::span(output.bytes)).subspan(row * output.row_bytes, output.row_bytes);
}

InferenceCall::Output& InferenceCall::made_output(uint32_t index) {
  Output& output = outputs_[index];
  std::call_once(output.is_made, [&] { output.bytes.resize(output.row_bytes * rows_); });
  return output;
}

Status InferenceCall::take_stages() {
  if (model_->pipeline == nullptr) return Status();
  const uint64_t row_bytes = StageTensors::row_bytes(*model_->pipeline, bucket_);
  if (rows_ > 1 && row_bytes > limits_.output_bytes_max / rows_) {
    return Status::invalid_argument(fmt::format(
        "what its stages compute takes {} for each of {} rows, more than the {} that are allowed for a call "
        "(--tensor-max); send fewer rows in one call",
        format_bytes(row_bytes), rows_, format_bytes(limits_.output_bytes_max)));
  }
  body_bytes_ += row_bytes * rows_;
  stages_ = std::make_unique<StageTensors>(model_->pipeline, bucket_, rows_);
  return Status();
}

std::span<const std::byte> InferenceCall::input_of(uint32_t slot, uint32_t row, uint32_t index) {
  const auto [stage, element] = stages_->slots().at(slot);
  const TensorSource source = stages_->source(row, stage, index);
  const std::span<const std::byte> whole = tensor_of(source, row);
  return source.each ? part_of(whole, {element, stages_->slots().count(stage)}) : whole;
}

std::span<const std::byte> InferenceCall::tensor_of(const TensorSource& source, uint32_t row) {
  return source.stage ? stages_->outputs(row, *source.stage, source.tensor) : input(row, source.tensor);
}

std::span<std::byte> InferenceCall::output_of(uint32_t slot, uint32_t row, uint32_t index) {
  return stages_->output(row, slot, index);
}

VisitReading InferenceCall::finish(uint32_t slot, uint32_t row) { return stages_->finish(row, slot); }

void InferenceCall::finish_empty(uint32_t stage, uint32_t row) { stages_->finish_empty(row, stage); }

void InferenceCall::collect() {
  if (!served()) return;
  if (stages_ != nullptr) return collect_stages();
  for (const uint32_t index : requested_) {
    const TensorSpec& spec = model_->outputs[index];
    Output& output = made_output(index);
    if (spec.bound) output.collected = from_rows(spec, rows_, std::as_bytes(std::span(output.bytes)));
  }
}

void InferenceCall::collect_stages() {
  for (uint32_t index = 0; index < outputs_.size(); ++index) {
    for (uint32_t row = 0; row < rows_; ++row) {
      std::span<std::byte> to = output(row, index);
      if (const std::optional<TensorSource> source = stages_->source_of_output(row, index)) {
        std::span<const std::byte> from = tensor_of(*source, row);
        if (source->stage) from = from.first(stages_->computed_bytes(row, *source->stage, source->tensor));
        std::ranges::copy(from, to.begin());
        to = to.subspan(from.size());
      }
      fill(to, model_->outputs[index].type, model_->pipeline->outputs[index].fill);
    }
  }
}

void InferenceCall::fail(std::string_view reason) {
  const MutexLock lock(failure_mutex_);
  if (failure_.empty()) failure_ = reason.substr(0, kFailureBytesMax);
}

bool InferenceCall::complete(const Completion& completion) {
  FOLIOT_CHECK(completions_.size() < rows_);
  completions_.push_back(completion);
  return completions_.size() == rows_;
}

void InferenceCall::settle(TimePoint now) {
  FOLIOT_CHECK(completions_.size() == rows_);
  const Refusal reason = served() ? Refusal::kNone : refusal().refusal;
  for (Completion& row : completions_) {
    if (row.refusal == Refusal::kCancelled) row.refusal = reason;
    if (!row.served()) continue;
    if (now > deadline_.at) {
      row.refusal = Refusal::kLate;
      row.earliest_completion = row.finished;
    }
    row.finished = now;
  }
}

std::vector<Completion>::const_iterator InferenceCall::refused() const {
  return std::ranges::find_if(completions_, [](const Completion& row) { return !row.served(); });
}

const TaskVariant* InferenceCall::variant() const {
  return model_->task == nullptr ? nullptr : model_->task->find(completions_.front().model);
}

Shape InferenceCall::requested_shape(uint32_t i) const {
  const auto& collected = outputs_[requested_[i]].collected;
  Shape shape = collected ? collected->extents : client_shape(requested_spec(i));
  if (model_->batching) shape.insert(shape.begin(), rows_);
  return shape;
}

std::string InferenceCall::take_requested(uint32_t i) {
  if (auto& collected = outputs_[requested_[i]].collected) return std::move(collected->bytes);
  const TensorSpec& spec = requested_spec(i);
  std::string& padded = made_output(requested_[i]).bytes;
  const Shape wanted = client_shape(spec);
  const Shape shape = bucket_shape(spec);
  if (wanted == shape) return std::move(padded);
  std::string cropped(byte_size(spec.type, wanted) * rows_, '\0');
  copy_rows(std::as_bytes(std::span(padded)), shape, cropped, wanted, size_of(spec.type), rows_);
  return cropped;
}

}  // namespace foliot
