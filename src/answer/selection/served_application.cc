#include "answer/selection/served_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "answer/selection/tensor_values.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"

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

// Gives a row that has too little confidence the default output.
void replace_row(const Application& application, Prediction& prediction, uint64_t row, uint64_t rows) {
  for (Prediction::Output& output : prediction.outputs) {
    const size_t row_bytes = output.bytes.size() / rows;
    const Prediction::Output one = default_output(output.spec, application.defaults.at(output.spec.name), true, 1);
    if (one.bytes.size() == row_bytes) output.bytes.replace(row * row_bytes, row_bytes, one.bytes);
  }
}

FeedbackRecord record_of(const Application& application, const AnsweredCall& call, const Observation& observation,
                         const std::vector<std::optional<double>>& losses, TimePoint now) {
  FeedbackRecord record{.id = std::string(observation.feedback_id),
                        .application = application.name,
                        .policy = application.policy_name,
                        .context = call.context,
                        .answered = call.answered,
                        .observed = now,
                        .models = {}};
  for (uint32_t model = 0; model < application.models.size(); ++model) {
    FeedbackRecord::Model& kept = record.models.emplace_back(FeedbackRecord::Model{.name = application.models[model]});
    if (call.selection.available[model]) kept.probability = call.selection.weights[model];
    kept.asked = std::ranges::binary_search(call.selection.models, model);
    if (losses[model]) kept.loss = std::clamp(*losses[model], 0.0, 1.0);
  }
  return record;
}

}  // namespace

std::optional<Prediction> default_prediction(const Application& application, const ModelInfo& info, uint64_t rows) {
  if (application.defaults.empty()) return std::nullopt;
  Prediction prediction;
  for (const TensorSpec& spec : info.outputs) {
    prediction.outputs.push_back(default_output(spec, application.defaults.at(spec.name), info.batching, rows));
  }
  return prediction;
}

ServedApplication::ServedApplication(Application application, uint64_t seed)
    : application_(std::make_shared<const Application>(std::move(application))),
      random_(seed),
      states_(application_->status.ok() ? application_->policy->init() : SelectionState(), application_->contexts_max),
      feedback_(application_->feedback_window, application_->feedback_max),
      means_(application_->models.size()),
      last_answers_(application_->models.size()) {
  statistics_.models.resize(application_->models.size());
}

std::shared_ptr<const Application> ServedApplication::application() const {
  const MutexLock lock(mutex_);
  return application_;
}

bool ServedApplication::is_learned_alike(const Application& application) const {
  return &application == application_.get() || application.learns_as() == application_->learns_as();
}

bool ServedApplication::takes_feedback_of(const Application& application) const {
  return &application == application_.get() ||
         (is_learned_alike(application) && application.agreement.output == application_->agreement.output);
}

void ServedApplication::redefine(Application application, ApplicationInterface interface) {
  FOLIOT_CHECK(application.status.ok());
  const MutexLock lock(mutex_);
  const auto before = std::exchange(application_, std::make_shared<const Application>(std::move(application)));
  if (!takes_feedback_of(*before)) feedback_.clear();
  feedback_.set_limits(application_->feedback_window, application_->feedback_max);
  if (before->learns_as() != application_->learns_as()) begin_anew();
  own_in_force_ = own_in_force_ && application_->own != nullptr && before->own != nullptr &&
                  before->own->options() == application_->own->options();
  for (const std::string& gone : states_.set_contexts_max(application_->contexts_max)) {
    note_change(gone);
    unshared_.forget(gone);
    own_feedback_.forget(gone);
  }
  if (before->models != application_->models) {
    means_.assign(application_->models.size(), {});
    std::vector<ApplicationStatistics::Model> models(application_->models.size());
    for (size_t i = 0; i < models.size(); ++i) {
      const auto known = std::ranges::find(before->models, application_->models[i]);
      if (known != before->models.end()) models[i] = statistics_.models[known - before->models.begin()];
    }
    statistics_.models = std::move(models);
  }
  available_ = std::move(interface.available);
}

void ServedApplication::begin_anew() {
  for (const std::string& gone : states_.reset(application_->policy->init())) note_change(gone);
  note_change("");
  suspects_.clear();
  last_answers_.assign(application_->models.size(), 0);
  unshared_.clear();
  own_feedback_.clear();
  own_in_force_ = false;
}

void ServedApplication::update(ApplicationInterface interface) {
  const MutexLock lock(mutex_);
  const bool ready = interface.state == ModelState::kReady;
  available_ = ready ? std::move(interface.available) : std::vector<bool>();
}

std::optional<ServedApplication::Selected> ServedApplication::select(std::string_view context) {
  const MutexLock lock(mutex_);
  if (std::ranges::count(available_, true) == 0) return std::nullopt;
  std::optional<Selection> probe = select_probe();
  const bool is_probe = probe.has_value();
  Selection selection = is_probe ? *std::move(probe) : choose(states_.find(context), available_, random_);
  for (const uint32_t model : selection.models) ++statistics_.models[model].selections;
  return Selected{application_, std::move(selection), is_probe};
}

Selection ServedApplication::choose(const SelectionState& state, const std::vector<bool>& available,
                                    Random& random) const {
  const OwnPolicy* own = application_->own.get();
  if (own != nullptr && !own_in_force_) return own->select_by_fallback(state, available, random);
  return application_->policy->select(state, available, random);
}

// The other one that answered last: if that does not answer either, it is hardly the model. While none has
// answered yet, one of them by chance.
std::optional<Selection> ServedApplication::select_probe() {
  if (suspects_.empty() || probing_) return std::nullopt;
  std::vector<uint32_t> suspected;
  for (const Suspect& suspect : suspects_) suspected.push_back(suspect.selection.models.front());
  std::vector<bool> others = available_without(suspected);
  if (others.empty()) suspects_.clear();  // all of them: no model is to blame
  if (others.empty()) return std::nullopt;
  uint32_t known = 0;
  uint64_t latest = 0;
  for (uint32_t model = 0; model < others.size(); ++model) {
    if (others[model] && last_answers_[model] > latest) latest = last_answers_[known = model];
  }
  if (latest == 0) known = draw(all_of(others, std::vector<double>(others.size(), 1)).weights, random_).models.front();
  probing_ = true;
  Selection selection = only(known, others.size());
  selection.available.assign(others.size(), false);  // what a replay of the log makes of it
  selection.available[known] = true;
  return selection;
}

std::vector<bool> ServedApplication::available_without(std::span<const uint32_t> models) const {
  std::vector<bool> available = available_;
  for (const uint32_t model : models) available[model] = false;
  return std::ranges::count(available, true) > 0 ? available : std::vector<bool>();
}

std::optional<Selection> ServedApplication::select_again(const Selected& selected, std::span<const uint32_t> asked,
                                                         std::string_view context) {
  const MutexLock lock(mutex_);
  if (tries_left_ < asked.size() || available_.empty() || !is_learned_alike(*selected.application)) return std::nullopt;
  const std::vector<bool> available = available_without(asked);
  if (available.empty()) return std::nullopt;
  Selection selection = choose(states_.find(context), available, random_);
  ++statistics_.models[selection.models.front()].selections;
  return selection;
}

void ServedApplication::conclude(const Selected& selected, std::string_view context, const Tries& tries) {
  const MutexLock lock(mutex_);
  if (selected.is_probe) probing_ = false;
  if (tries.answered) {
    tries_left_ = std::min(tries_left_ + 1, kTriesInVainMax);
    if (is_learned_alike(*selected.application)) last_answers_[*tries.answered] = ++answers_in_order_;
  } else if (!tries.missed.empty()) {
    tries_left_ -= std::min<uint32_t>(tries_left_, static_cast<uint32_t>(tries.missed.size()) - 1);
  }
  if (!is_learned_alike(*selected.application)) return;
  for (const Selection& missed : tries.missed) ++statistics_.models[missed.models.front()].missing;
  const bool learns = !states_.own().values.empty() || application_->own != nullptr;
  if (!learns || tries.cancelled) return;
  if (tries.answered) {
    for (const Selection& missed : tries.missed) learn_miss(missed, std::string(context));
  }
  if (selected.is_probe) return decide_suspects(tries);
  const bool is_open = !tries.answered && tries.missed.size() == 1;
  if (is_open && suspects_.size() < kSuspectsMax) {
    suspects_.push_back({tries.missed.front(), std::string(context), tries.given});
  }
}

void ServedApplication::decide_suspects(const Tries& probe) {
  for (const Suspect& suspect : std::exchange(suspects_, {})) {
    const bool is_other = probe.answered && suspect.selection.models.front() != *probe.answered;
    if (is_other && probe.taken <= suspect.given) learn_miss(suspect.selection, suspect.context);
  }
}

// A context that has had no feedback yet begins as the application, with what that has learned by then.
void ServedApplication::learn_miss(const Selection& selection, const std::string& context) {
  std::vector<std::optional<double>> losses(application_->models.size());
  losses[selection.models.front()] = 1;
  AnsweredCall call{.tenant = {}, .context = {}, .selection = selection, .outputs = {}};
  if (!context.empty() && states_.peek(context) != nullptr) call.context = context;
  FOLIOT_CHECK(learn(call, losses).ok());
}

ServedApplication::Combined ServedApplication::combine(const Selected& selected, Predictions predictions,
                                                       std::vector<uint32_t> failed, bool batching, TenantId tenant,
                                                       std::string_view context, TimePoint now) {
  const Application& application = *selected.application;
  const Selection& selection = selected.selection;
  const AgreementRule& rule = application.agreement;
  const bool some_missing = std::ranges::count(predictions, nullptr) > 0;
  std::vector<RunningMeans> means(selection.models.size());
  if (some_missing && selection.models.size() > 1) {
    const MutexLock lock(mutex_);
    const bool known = application.models == application_->models;
    for (size_t i = 0; known && i < means.size(); ++i) means[i] = means_[selection.models[i]];
  }
  std::vector<MemberAnswer> answers;
  for (size_t i = 0; i < selection.models.size(); ++i) {
    answers.push_back({selection.weights[selection.models[i]], predictions[i], &means[i]});
  }
  Combined combined{foliot::combine(rule, batching, answers), {}, 0};
  Prediction& prediction = combined.combination.prediction;
  const uint64_t rows = combined.combination.confidence.size();
  for (uint64_t row = 0; row < rows; ++row) {
    if (combined.combination.confidence[row] >= application.confidence_min) continue;
    replace_row(application, prediction, row, rows);
    ++combined.default_rows;
  }
  AnsweredCall call{tenant, std::string(context), selection, {}, std::move(failed)};
  for (const Prediction* one : predictions) {
    const Prediction::Output* output = one == nullptr ? nullptr : compared_output(rule, *one);
    call.outputs.push_back(output == nullptr ? std::nullopt : std::optional(*output));
  }
  const MutexLock lock(mutex_);
  if (takes_feedback_of(application)) combined.feedback_id = feedback_.add(std::move(call), now);
  ++statistics_.answers;
  statistics_.partial += some_missing ? 1 : 0;
  statistics_.defaults += combined.default_rows > 0 ? 1 : 0;
  if (application.models != application_->models) return combined;
  for (size_t i = 0; i < selection.models.size(); ++i) {
    const uint32_t model = selection.models[i];
    if (predictions[i] == nullptr) ++statistics_.models[model].missing;
    if (predictions[i] != nullptr && application.asks_several) means_[model].add(*predictions[i], rows);
  }
  return combined;
}

void ServedApplication::count_default() {
  const MutexLock lock(mutex_);
  ++statistics_.answers;
  ++statistics_.defaults;
}

void ServedApplication::count_refused() {
  const MutexLock lock(mutex_);
  ++statistics_.refusals;
}

void ServedApplication::count_expired() {
  const MutexLock lock(mutex_);
  ++statistics_.expired;
}

// Those that the client computed.
Result<std::vector<std::optional<double>>> ServedApplication::sent_losses(const Observation& observation,
                                                                          const AnsweredCall& call) const {
  std::vector<std::optional<double>> losses(application_->models.size());
  for (const Observation::Loss& sent : observation.losses) {
    if (std::isnan(sent.loss)) return Status::invalid_argument("a loss is NaN; it must be a number from 0 to 1");
    if (sent.model.empty()) {
      if (call.selection.models.size() != 1) {
        return Status::invalid_argument(fmt::format(
            "the call asked {} models; send a loss for each of them by name: {{\"loss\": {{\"{}\": 0.5}}}}, "
            "or a label",
            call.selection.models.size(), application_->models[call.selection.models.front()]));
      }
      losses[call.selection.models.front()] = sent.loss;
      continue;
    }
    const auto found = std::ranges::find(application_->models, sent.model);
    const auto model = static_cast<uint32_t>(found - application_->models.begin());
    if (found == application_->models.end() || !std::ranges::binary_search(call.selection.models, model)) {
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
  std::vector<std::optional<double>> losses(application_->models.size());
  bool any = false;
  for (size_t i = 0; i < call.selection.models.size(); ++i) {
    if (!call.outputs[i]) continue;
    FOLIOT_ASSIGN_OR_RETURN(losses[call.selection.models[i]],
                            loss_of(application_->agreement, *call.outputs[i], label));
    any = true;
  }
  if (any) return losses;
  return Status::invalid_argument(fmt::format(
      "no label can be compared with the answer: none of its models' outputs was kept, as those beyond {} KiB are not; "
      "send a loss",
      FeedbackStore::kOutputBytesMax >> 10));
}

Status ServedApplication::observe(const Observation& observation, TimePoint now, FeedbackSink* log) {
  const TenantId tenant = observation.tenant ? observation.tenant->id() : TenantId();
  const MutexLock lock(mutex_);
  FOLIOT_ASSIGN_OR_RETURN(const AnsweredCall* call, feedback_.find(observation.feedback_id, tenant, now));
  FOLIOT_ASSIGN_OR_RETURN(auto losses, losses_of(observation, *call));
  for (const uint32_t model : call->failed) losses[model] = losses[model].value_or(1);
  FOLIOT_RETURN_IF_ERROR(learn(*call, losses));
  if (log != nullptr) log->add_feedback(record_of(*application_, *call, observation, losses, now));
  feedback_.close(observation.feedback_id);
  ++statistics_.feedbacks;
  for (size_t model = 0; model < losses.size(); ++model) {
    if (!losses[model]) continue;
    ++statistics_.models[model].feedbacks;
    statistics_.models[model].losses += std::clamp(*losses[model], 0.0, 1.0);
  }
  return Status();
}

Status ServedApplication::learn(const AnsweredCall& call, const std::vector<std::optional<double>>& losses) {
  if (!call.context.empty()) {
    SelectionState& state = state_of(call.context);
    FOLIOT_RETURN_IF_ERROR(application_->policy->observe(state, call.selection, losses));
    note_change(call.context);
  }
  FOLIOT_RETURN_IF_ERROR(application_->policy->observe(states_.own(), call.selection, losses));
  note_change("");
  if (!shares_ && application_->own == nullptr) return Status();
  const auto feedback = std::make_shared<const LearnedFeedback>(LearnedFeedback{call.selection, losses});
  if (shares_) note_unshared(call.context, feedback);
  if (application_->own != nullptr) note_own(call.context, feedback);
  return Status();
}

// The application's, or the context's, made if it has none yet.
SelectionState& ServedApplication::state_of(const std::string& context) {
  if (context.empty()) return states_.own();
  if (const std::string* evicted = states_.evicted_by(context)) {
    note_change(*evicted);
    unshared_.forget(*evicted);
    own_feedback_.forget(*evicted);
  }
  return states_.make(context);
}

void ServedApplication::note_change(const std::string& context) {
  if (keeps_changes_) changed_.insert(context);
}

void ServedApplication::note_unshared(const std::string& context,
                                      const std::shared_ptr<const LearnedFeedback>& feedback) {
  bool kept = unshared_.add("", feedback);
  if (!context.empty()) kept = unshared_.add(context, feedback) && kept;
  if (!kept) ++statistics_.unshared;
}

void ServedApplication::restore(std::span<const Learned> learned) {
  const MutexLock lock(mutex_);
  keeps_changes_ = true;
  if (!application_->status.ok()) return;
  for (const Learned& one : learned) {
    Result<SelectionState> state = application_->policy->parse(one.state.value_or(""));
    if (!state.ok()) continue;
    (one.context.empty() ? states_.own() : states_.make(one.context)) = *std::move(state);
  }
}

std::vector<ServedApplication::Learned> ServedApplication::take_changes() {
  const MutexLock lock(mutex_);
  std::vector<Learned> changes;
  for (const std::string& context : std::exchange(changed_, {})) {
    const SelectionState* state = context.empty() ? &states_.own() : states_.peek(context);
    changes.push_back({context, state == nullptr ? std::nullopt : std::optional(to_bytes(*state))});
  }
  return changes;
}

void ServedApplication::share() {
  const MutexLock lock(mutex_);
  shares_ = true;
}

std::string ServedApplication::name_of_learning() const {
  const std::string learns_as = application_->learns_as();
  return fmt::format("{}:{}", application_->name, hash_hex(std::as_bytes(std::span(learns_as))));
}

std::string ServedApplication::shared_name() const {
  const MutexLock lock(mutex_);
  return name_of_learning();
}

std::vector<ServedApplication::Unshared> ServedApplication::unshared(const std::string& name,
                                                                     size_t contexts_max) const {
  const MutexLock lock(mutex_);
  std::vector<Unshared> all;
  if (name_of_learning() != name) return all;
  for (const std::string& context : unshared_.contexts()) {
    if (all.size() == contexts_max) break;
    const SelectionState* state = context.empty() ? &states_.own() : states_.peek(context);
    const UnsharedFeedback::Part& part = *unshared_.find(context);
    FOLIOT_CHECK(state != nullptr);
    // What a process makes of feedback is each front end's own.
    const OwnPolicy* own = application_->own.get();
    const std::string bytes = own == nullptr ? to_bytes(*state) : to_bytes(own->fallback_state(*state));
    all.push_back({{context, part.revision, bytes}, part.feedback.back()});
  }
  return all;
}

void ServedApplication::set_shared(const Unshared& known, uint64_t revision) {
  const MutexLock lock(mutex_);
  unshared_.shared(known.state.context, known.last, revision);
}

Status ServedApplication::take(const std::string& name, const SharedState& shared) {
  const MutexLock lock(mutex_);
  if (name_of_learning() != name) return Status();
  if (shared.bytes.empty()) {
    if (unshared_.find(shared.context) != nullptr) unshared_.set_revision(shared.context, shared.revision);
    return Status();
  }
  Result<SelectionState> parsed = application_->policy->parse(shared.bytes);
  if (!parsed.ok()) {
    unshared_.set_revision(shared.context, shared.revision);
    return Status::invalid_argument(fmt::format("application '{}', context '{}': {}", application_->name,
                                                shared.context, parsed.status().message()));
  }
  SelectionState& state = state_of(shared.context);
  if (application_->own != nullptr) application_->own->keep_part(state, *parsed);
  state = *std::move(parsed);
  for (const auto& feedback : unshared_.set_revision(shared.context, shared.revision).feedback) {
    FOLIOT_CHECK(application_->policy->observe(state, feedback->selection, feedback->losses).ok());
  }
  return Status();
}

void ServedApplication::note_own(const std::string& context, const std::shared_ptr<const LearnedFeedback>& feedback) {
  bool kept = own_feedback_.add("", feedback);
  if (!context.empty()) kept = own_feedback_.add(context, feedback) && kept;
  if (!kept) ++statistics_.own_unlearned;
}

std::shared_ptr<const OwnPolicy> ServedApplication::own_policy() const {
  const MutexLock lock(mutex_);
  return application_->status.ok() ? application_->own : nullptr;
}

std::optional<ServedApplication::OwnWork> ServedApplication::first_own_work() const {
  const MutexLock lock(mutex_);
  if (application_->own == nullptr) return std::nullopt;
  const std::span<const double> state = application_->own->own_state(states_.own());
  return OwnWork{.policy = application_->own,
                 .context = "",
                 .begins = !application_->own->has_part(states_.own()),
                 .state = {state.begin(), state.end()},
                 .feedback = {}};
}

std::optional<ServedApplication::OwnWork> ServedApplication::take_own_work(size_t feedback_max) {
  const MutexLock lock(mutex_);
  if (application_->own == nullptr || !application_->own->has_part(states_.own())) return std::nullopt;
  auto taken = own_feedback_.take(feedback_max);
  if (!taken) return std::nullopt;
  const SelectionState* of_context = taken->first.empty() ? nullptr : states_.peek(taken->first);
  const SelectionState& state = of_context == nullptr ? states_.own() : *of_context;
  const bool begins = !application_->own->has_part(state);
  const std::span<const double> own = application_->own->own_state(state);
  return OwnWork{.policy = application_->own,
                 .context = taken->first,
                 .begins = begins,
                 .state = {own.begin(), own.end()},
                 .feedback = std::move(taken->second)};
}

void ServedApplication::take_own_part(const OwnWork& work, const OwnPolicy::Part& part) {
  const MutexLock lock(mutex_);
  if (application_->own == nullptr || application_->own->options() != work.policy->options()) return;
  if (!work.context.empty() && states_.peek(work.context) == nullptr) return;
  SelectionState& state = work.context.empty() ? states_.own() : states_.make(work.context);
  application_->own->set_part(state, part);
  note_change(work.context);
  own_in_force_ = true;
}

void ServedApplication::fail_own(size_t lost) {
  const MutexLock lock(mutex_);
  own_in_force_ = false;
  ++statistics_.own_failures;
  statistics_.own_unlearned += lost;
}

ApplicationStatistics ServedApplication::statistics() const {
  const MutexLock lock(mutex_);
  ApplicationStatistics copy = statistics_;
  copy.application = application_;
  copy.contexts = states_.size();
  copy.own_in_force = own_in_force_;
  if (std::ranges::count(available_, true) == 0) return copy;
  Random random = random_;  // a look changes no choice
  const Selection now = choose(states_.own(), available_, random);
  for (size_t model = 0; model < copy.models.size(); ++model) copy.models[model].weight = now.weights[model];
  return copy;
}

}  // namespace foliot
