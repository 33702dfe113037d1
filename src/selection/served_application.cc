#include "selection/served_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "selection/tensor_values.h"

namespace foliot {
namespace {

Prediction::Output default_output(const TensorSpec& spec, const std::vector<double>& row, bool batching,
                                  uint64_t rows) {
  Shape shape = spec.shape;
  if (batching) shape.insert(shape.begin(), static_cast<int64_t>(rows));
  std::vector<double> values(element_count(shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = row[i % row.size()];
  return {spec, shape, false, from_doubles(spec.type, values)};
}

}  // namespace

ServedApplication::ServedApplication(Application application, uint64_t seed)
    : application_(std::move(application)),
      random_(seed),
      states_(application_.status.ok() ? application_.policy->init() : SelectionState(), application_.contexts_max),
      feedback_(application_.feedback_window, application_.feedback_max),
      means_(application_.models.size()) {
  statistics_.models.resize(application_.models.size());
}

void ServedApplication::update(ApplicationInterface interface) {
  const std::lock_guard lock(mutex_);
  const bool ready = interface.state == ModelState::kReady;
  available_ = ready ? std::move(interface.available) : std::vector<bool>();
}

std::optional<Selection> ServedApplication::select(std::string_view context) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::count(available_, true) == 0) return std::nullopt;
  Selection selection = application_.policy->select(states_.find(context), available_, random_);
  for (const uint32_t model : selection.models) ++statistics_.models[model].selections;
  return selection;
}

ServedApplication::Combined ServedApplication::combine(const Selection& selection, Predictions predictions,
                                                       bool batching, TenantId tenant, std::string_view context,
                                                       TimePoint now) {
  const AgreementRule& rule = application_.agreement;
  const bool some_missing = std::ranges::count(predictions, nullptr) > 0;
  std::vector<RunningMeans> means(selection.models.size());
  if (some_missing && selection.models.size() > 1) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < means.size(); ++i) means[i] = means_[selection.models[i]];
  }
  std::vector<MemberAnswer> answers;
  for (size_t i = 0; i < selection.models.size(); ++i) {
    answers.push_back({selection.weights[selection.models[i]], predictions[i], &means[i]});
  }
  Combined combined{foliot::combine(rule, batching, answers), {}, 0};
  Prediction& prediction = combined.combination.prediction;
  const uint64_t rows = combined.combination.confidence.size();
  for (uint64_t row = 0; row < rows; ++row) {
    if (combined.combination.confidence[row] >= application_.confidence_min) continue;
    replace_row(prediction, row, rows);
    ++combined.default_rows;
  }
  AnsweredCall call{tenant, std::string(context), selection, {}};
  for (const Prediction* one : predictions) {
    const Prediction::Output* output = one == nullptr ? nullptr : compared_output(rule, *one);
    call.outputs.push_back(output == nullptr ? std::nullopt : std::optional(*output));
  }
  const std::lock_guard lock(mutex_);
  combined.feedback_id = feedback_.add(std::move(call), now);
  ++statistics_.answers;
  statistics_.partial += some_missing ? 1 : 0;
  statistics_.defaults += combined.default_rows > 0 ? 1 : 0;
  for (size_t i = 0; i < selection.models.size(); ++i) {
    const uint32_t model = selection.models[i];
    if (predictions[i] == nullptr) ++statistics_.models[model].missing;
    if (predictions[i] != nullptr && application_.asks_several) means_[model].add(*predictions[i], rows);
  }
  return combined;
}

void ServedApplication::replace_row(Prediction& prediction, uint64_t row, uint64_t rows) const {
  for (Prediction::Output& output : prediction.outputs) {
    const size_t row_bytes = output.bytes.size() / rows;
    const Prediction::Output one = default_output(output.spec, application_.defaults.at(output.spec.name), true, 1);
    if (one.bytes.size() == row_bytes) output.bytes.replace(row * row_bytes, row_bytes, one.bytes);
  }
}

std::optional<Prediction> ServedApplication::defaults(const ModelInfo& info, uint64_t rows) const {
  if (application_.defaults.empty()) return std::nullopt;
  Prediction prediction;
  for (const TensorSpec& spec : info.outputs) {
    prediction.outputs.push_back(default_output(spec, application_.defaults.at(spec.name), info.batching, rows));
  }
  return prediction;
}

void ServedApplication::count_default() {
  const std::lock_guard lock(mutex_);
  ++statistics_.answers;
  ++statistics_.defaults;
}

void ServedApplication::count_refused() {
  const std::lock_guard lock(mutex_);
  ++statistics_.refusals;
}

// Those that the client computed.
Result<std::vector<std::optional<double>>> ServedApplication::sent_losses(const Observation& observation,
                                                                          const AnsweredCall& call) const {
  std::vector<std::optional<double>> losses(application_.models.size());
  for (const Observation::Loss& sent : observation.losses) {
    if (std::isnan(sent.loss)) return Status::invalid_argument("a loss is NaN; it must be a number from 0 to 1");
    if (sent.model.empty()) {
      if (call.selection.models.size() != 1) {
        return Status::invalid_argument(fmt::format(
            "the call asked {} models; send a loss for each of them by name: {{\"loss\": {{\"{}\": 0.5}}}}, "
            "or a label",
            call.selection.models.size(), application_.models[call.selection.models.front()]));
      }
      losses[call.selection.models.front()] = sent.loss;
      continue;
    }
    const auto found = std::ranges::find(application_.models, sent.model);
    const auto model = static_cast<uint32_t>(found - application_.models.begin());
    if (found == application_.models.end() || !std::ranges::binary_search(call.selection.models, model)) {
      return Status::invalid_argument(fmt::format("model '{}' was not asked by the call", sent.model.substr(0, 255)));
    }
    losses[model] = sent.loss;
  }
  return losses;
}

Result<std::vector<std::optional<double>>> ServedApplication::losses_of(const Observation& observation,
                                                                        const AnsweredCall& call) const {
  if (!observation.losses.empty()) return sent_losses(observation, call);
  if (observation.outputs.size() != 1) return Status::invalid_argument("feedback needs a label, or a loss");
  const TensorView& sent = observation.outputs.front();
  const std::string_view bytes(reinterpret_cast<const char*>(sent.bytes.data()), sent.bytes.size());
  const std::optional<DataType> type = parse_data_type(sent.datatype);
  if (!type || !(is_label(*type) || is_number(*type))) return Status::invalid_argument("the label must be numbers");
  const std::vector<double> label = to_doubles(*type, bytes);
  std::vector<std::optional<double>> losses(application_.models.size());
  bool any = false;
  for (size_t i = 0; i < call.selection.models.size(); ++i) {
    if (!call.outputs[i]) continue;
    FOLIOT_ASSIGN_OR_RETURN(losses[call.selection.models[i]], loss_of(application_.agreement, *call.outputs[i], label));
    any = true;
  }
  if (any) return losses;
  return Status::invalid_argument(fmt::format(
      "no label can be compared with the answer: none of its models' outputs was kept, as those beyond {} KiB are not; "
      "send a loss",
      FeedbackStore::kOutputBytesMax >> 10));
}

Status ServedApplication::observe(const Observation& observation, TimePoint now) {
  const TenantId tenant = observation.tenant ? observation.tenant->id() : TenantId();
  const std::lock_guard lock(mutex_);
  FOLIOT_ASSIGN_OR_RETURN(const AnsweredCall* call, feedback_.find(observation.feedback_id, tenant, now));
  FOLIOT_ASSIGN_OR_RETURN(const auto losses, losses_of(observation, *call));
  if (!call->context.empty()) {
    if (const std::string* evicted = states_.evicted_by(call->context)) note_change(*evicted);
    note_change(call->context);
    SelectionState& state = states_.make(call->context);
    FOLIOT_RETURN_IF_ERROR(application_.policy->observe(state, call->selection, losses));
  }
  FOLIOT_RETURN_IF_ERROR(application_.policy->observe(states_.own(), call->selection, losses));
  note_change("");
  feedback_.close(observation.feedback_id);
  ++statistics_.feedbacks;
  for (size_t model = 0; model < losses.size(); ++model) {
    if (!losses[model]) continue;
    ++statistics_.models[model].feedbacks;
    statistics_.models[model].losses += std::clamp(*losses[model], 0.0, 1.0);
  }
  return Status();
}

void ServedApplication::note_change(const std::string& context) {
  if (keeps_changes_) changed_.insert(context);
}

void ServedApplication::restore(std::span<const Learned> learned) {
  const std::lock_guard lock(mutex_);
  keeps_changes_ = true;
  if (!application_.status.ok()) return;
  for (const Learned& one : learned) {
    Result<SelectionState> state = application_.policy->parse(one.state.value_or(""));
    if (!state.ok()) continue;
    (one.context.empty() ? states_.own() : states_.make(one.context)) = *std::move(state);
  }
}

std::vector<ServedApplication::Learned> ServedApplication::take_changes() {
  const std::lock_guard lock(mutex_);
  std::vector<Learned> changes;
  for (const std::string& context : std::exchange(changed_, {})) {
    const SelectionState* state = context.empty() ? &states_.own() : states_.peek(context);
    changes.push_back({context, state == nullptr ? std::nullopt : std::optional(to_bytes(*state))});
  }
  return changes;
}

ApplicationStatistics ServedApplication::statistics() const {
  const std::lock_guard lock(mutex_);
  ApplicationStatistics copy = statistics_;
  copy.contexts = states_.size();
  if (std::ranges::count(available_, true) == 0) return copy;
  Random random = random_;  // a look changes no choice
  const Selection now = application_.policy->select(states_.own(), available_, random);
  for (size_t model = 0; model < copy.models.size(); ++model) copy.models[model].weight = now.weights[model];
  return copy;
}

}  // namespace foliot
