#include "answer/selection/selected_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "answer/inference/kept_query.h"
#include "answer/inference/layer_call_id.h"
#include "answer/inference/refused_answer.h"
#include "answer/selection/combined_answer.h"
#include "foundation/base/hash.h"
#include "foundation/base/units.h"

namespace foliot {
namespace {

TimePoint deadline_of_models(TimePoint arrival, TimePoint deadline) {
  if (deadline.is_infinite() || deadline <= arrival) return deadline;
  return deadline - least_reserve(arrival, deadline);
}

// The same error, of the application that was called.
CallError renamed(CallError error, std::string_view model, std::string_view application) {
  const std::string from = fmt::format("model '{}'", model);
  if (error.message.starts_with(from)) error.message.replace(0, from.size(), fmt::format("model '{}'", application));
  return error;
}

// Whether no model could answer a call that was right, and that its client still waits for.
bool deserves_default(const CallError& error) {
  return (error.http_status == 503 || error.http_status == 504) && error.reason != to_string(Refusal::kDraining);
}

// Whether another model could answer what this one did not: not where the call itself is wrong, the caller is
// over its limits or gone, or no model can be reached.
bool is_of_the_model(const CallError& error) {
  if (error.reason == to_string(Refusal::kDraining) || error.reason == to_string(Refusal::kDisconnected)) return false;
  return error.http_status == 503 || error.http_status == 504 || error.reason == to_string(Refusal::kModelError);
}

// As many as its inputs say and have bytes for; nullopt: these are not of this interface.
std::optional<uint32_t> rows_of(const ModelInfo& info, const Query& query) {
  if (!info.batching) return 1;
  if (query.inputs.empty() || query.inputs.front().shape.empty()) return std::nullopt;
  const int64_t rows = query.inputs.front().shape.front();
  if (rows < 1 || rows > int64_t{1} << 20 || query.inputs.front().bytes.size() < static_cast<uint64_t>(rows)) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(rows);
}

// "application 'a' (policy exp3), which asks 'x', with the probabilities x 0.80, y 0.20".
std::string describe(const Application& application, const Selection& selection) {
  std::string asked;
  for (const uint32_t model : selection.models) {
    asked += fmt::format("{}'{}'", asked.empty() ? "" : ", ", application.models[model]);
  }
  std::string weights;
  for (size_t model = 0; model < application.models.size(); ++model) {
    weights +=
        fmt::format("{}{} {:.3g}", weights.empty() ? "" : ", ", application.models[model], selection.weights[model]);
  }
  return fmt::format("application '{}' (policy {}), which asks {}, with the {} {}", application.name,
                     application.policy_name, asked, application.asks_several ? "weights" : "probabilities", weights);
}

bool is_same(const Application& a, const Application& b) {
  return a.content == b.content && a.status.message() == b.status.message();
}

}  // namespace

// A call of an application, until it has its answer and all models that it asked have ended.
class SelectedInference::Call {
 public:
  // One of the models that are asked, and the sink of its answer.
  struct Member final : public AnswerSink {
    Member(Call& owner, uint32_t model) : call(owner), position(model) {}
    void on_answer(CallId, std::unique_ptr<Answer> given) override { call.on_answer(*this, std::move(given)); }
    void refuse(CallError why) { error = renamed(std::move(why), name(), call.info->name); }
    const std::string& name() const { return call.application().models[position]; }

    Call& call;
    const uint32_t position;  // in the application's models
    CallId below;
    bool pending = false;
    std::unique_ptr<Answer> answer;        // null: none yet, or never
    std::optional<Prediction> prediction;  // set if it is answered
    std::optional<CallError> error;        // set if it is refused
  };

  Call(SelectedInference& from, CallId number, std::shared_ptr<Served> called,
       std::shared_ptr<const ModelInfo> interface, ServedApplication::Selected chosen, const Query& query,
       const Caller& by)
      : id(number),
        served(std::move(called)),
        info(std::move(interface)),
        selected(std::move(chosen)),
        caller(by),
        client_id(query.id),
        context(query.context),
        arrival(query.arrival),
        deadline(deadline_of(query, *info)),
        rows(rows_of(*info, query)),
        requested(query.outputs.begin(), query.outputs.end()),
        asks_several(selected.selection.models.size() > 1),
        inference_(from) {
    for (const uint32_t model : selected.selection.models) members.emplace_back(*this, model);
  }
  const Application& application() const { return *selected.application; }
  // Whether it is answered when its time has come, whatever its models do. Where one model is asked and
  // there is nothing in its place, only a refusal would come earlier.
  bool is_timed() const {
    return !deadline.is_infinite() && deadline > arrival && (asks_several || !application().defaults.empty());
  }

  // Asks the models. False: all of them refused at once.
  bool start(const Query& query) {
    Query asked = query;
    if (is_timed() && !keep_inputs(asked)) return false;
    asked.version = {};
    asked.context = {};
    asked.deadline = deadline_of_models(arrival, deadline);
    asked.deadline_origin = applied_deadline(query, *info).origin;
    asked.optional = is_timed();
    // Each once, and what is compared, too.
    asked.outputs.clear();
    if (!query.outputs.empty()) asked.outputs.push_back(compared_name());
    for (const std::string_view output : query.outputs) {
      if (std::ranges::count(asked.outputs, output) == 0) asked.outputs.push_back(output);
    }
    if (!asks_several && std::ranges::count(selected.selection.available, true) > 1) again_.emplace(asked);
    for (Member& member : members) ask(asked, member);
    ask_others();
    return pending_ > 0;
  }

  void cancel() {
    if (answered) return;
    cancelled = true;
    for (const Member& member : members) {
      if (member.pending) inference_.below_.cancel(member.below);
    }
  }

  // How it ended; only of one that asks one model at a time.
  ServedApplication::Tries tries() const {
    ServedApplication::Tries tries{.missed = missed_,
                                   .answered = {},
                                   .cancelled = cancelled,
                                   .given = deadline - arrival,
                                   .taken = inference_.now_() - arrival};
    const Member& last = members.back();
    if (last.prediction) tries.answered = last.position;
    // Without an error its time is up, and it runs.
    const bool blamed = !last.error || is_of_the_model(*last.error);
    if (!last.prediction && !cancelled && blamed) tries.missed.push_back(selected.selection);
    return tries;
  }
  // Of several that were asked: those to blame for having no answer.
  std::vector<uint32_t> failed_models() const {
    std::vector<uint32_t> failed;
    for (const Member& member : members) {
      const bool blamed = !member.error || is_of_the_model(*member.error);
      if (asks_several && !member.prediction && blamed) failed.push_back(member.position);
    }
    return failed;
  }
  bool any_answered() const {
    return std::ranges::any_of(members, [](const Member& member) { return member.prediction.has_value(); });
  }
  // Of the prediction's outputs, those that were asked for.
  std::vector<uint32_t> requested_in(const Prediction& prediction) const {
    std::vector<uint32_t> positions;
    for (uint32_t i = 0; requested.empty() && i < prediction.outputs.size(); ++i) positions.push_back(i);
    for (const std::string& name : requested) {
      const auto found =
          std::ranges::find(prediction.outputs, name, [](const auto& output) { return output.spec.name; });
      if (found != prediction.outputs.end()) {
        positions.push_back(static_cast<uint32_t>(found - prediction.outputs.begin()));
      }
    }
    return positions;
  }

  const CallId id;
  const std::shared_ptr<Served> served;
  const std::shared_ptr<const ModelInfo> info;
  ServedApplication::Selected selected;  // the last one, where others were asked before
  const Caller caller;
  const std::string client_id;
  const std::string context;
  const TimePoint arrival;
  const TimePoint deadline;
  const std::optional<uint32_t> rows;
  const std::vector<std::string> requested;  // outputs; empty: all
  const bool asks_several;                   // models at a time
  std::deque<Member> members;                // in the order in which they were asked
  TimePoint due;                             // of one that is timed
  bool cancelled = false;
  bool answered = false;  // and some models have not ended

 private:
  void ask(Query& asked, Member& member) {
    const std::string why = inference_.describes_selections_ ? description() : "";
    asked.selection = why;
    asked.name = member.name();
    Started started = inference_.below_.start(asked, {caller.tenant, caller.mailbox, member});
    if (auto* error = std::get_if<CallError>(&started)) return member.refuse(std::move(*error));
    member.below = std::get<CallId>(started);
    member.pending = true;
    ++pending_;
  }
  // While the model that was asked has refused, and there is time and another one: asks that.
  void ask_others() {
    while (pending_ == 0 && again_ && !answered && !cancelled) {
      Member& last = members.back();
      if (!last.error || !is_of_the_model(*last.error)) return;
      if (inference_.now_() >= deadline_of_models(arrival, deadline)) return;
      std::vector<uint32_t> asked;
      for (const Member& member : members) asked.push_back(member.position);
      std::optional<Selection> next = served->application.select_again(selected, asked, context);
      if (!next) return;
      last.answer.reset();  // what it occupies is the next one's
      missed_.push_back(std::exchange(selected.selection, *std::move(next)));
      Query again = again_->query();
      ask(again, members.emplace_back(*this, selected.selection.models.front()));
    }
  }
  std::string description() const {
    std::string text = describe(application(), selected.selection);
    for (const Selection& missed : missed_) {
      text += fmt::format(", after '{}'", application().models[missed.models.front()]);
    }
    return text;
  }

  bool keep_inputs(Query& asked) {
    KeptInputs& all = inference_.inputs_;
    if (all.copy(asked)) {
      inputs_ = asked.owner;
      return true;
    }
    const std::string why = fmt::format(
        "calls of applications that are under way, or whose models run late, hold {} of inputs, and these would be "
        "more "
        "than the {} that are allowed (--bodies-max)",
        format_bytes(all.bytes()), format_bytes(all.bytes_max()));
    const TimePoint now = inference_.now_();
    for (Member& member : members) {
      member.refuse(call_error(Refusal::kOverload, member.name(), why, arrival, now, TimePoint()));
    }
    return false;
  }
  const std::string& compared_name() const {
    const std::string& named = application().agreement.output;
    return named.empty() ? info->outputs.front().name : named;
  }

  void on_answer(Member& member, std::unique_ptr<Answer> answer) {
    // The outputs leave now, as far as the model is concerned.
    if (!answered && answer->served()) member.prediction = take_prediction(*answer);
    answer->settle();
    if (!answer->served()) {
      member.prediction.reset();
      member.refuse(answer->error());
    }
    if (!answered) member.answer = std::move(answer);
    member.pending = false;
    --pending_;
    ask_others();
    if (pending_ == 0) inference_.finish(id);
  }

  SelectedInference& inference_;
  std::shared_ptr<const void> inputs_;  // the copy that its models read; null: there is none
  std::optional<KeptQuery> again_;      // as models are asked; only where others may be
  std::vector<Selection> missed_;       // before the last one
  size_t pending_ = 0;
};

SelectedInference::SelectedInference(const Options& options, Inference& below, const ServedNames& names,
                                     CallStatistics& statistics, std::function<TimePoint()> now)
    : below_(below),
      names_(names),
      statistics_(statistics),
      now_(std::move(now)),
      seed_(options.seed),
      inputs_(options.inputs_bytes_max) {}

SelectedInference::~SelectedInference() = default;

uint64_t SelectedInference::layer_number(CallId call) { return layer_call_number(call); }

void SelectedInference::serve(std::vector<Application> applications, Catalog& catalog) {
  catalog_ = &catalog;
  watch_ = catalog.watch([this](const std::string& name, const Catalog::EntryPtr& entry) { on_change(name, entry); });
  const MutexLock lock(update_mutex_);
  for (Application& application : applications) add(std::move(application));
  index_models();
  for (const auto& served : all()) update(*served);
}

std::vector<std::string> SelectedInference::replace(std::vector<Application> applications) {
  std::vector<std::string> notes;
  std::set<std::string> present, removed;
  {
    const MutexLock lock(update_mutex_);
    std::vector<std::shared_ptr<Served>> changed;
    for (Application& application : applications) {
      present.insert(application.name);
      const std::shared_ptr<Served> known = find_any(application.name);
      if (known == nullptr) {
        changed.push_back(add(std::move(application)));
        continue;
      }
      Served& served = *known;
      const bool is_current = is_same(*served.application.application(), application);
      if (served.next ? is_same(*served.next, application) : is_current) continue;
      served.next.reset();
      if (!is_current) served.next = std::move(application);
      changed.push_back(known);
    }
    {
      const MutexLock map_lock(applications_mutex_);
      std::erase_if(applications_, [&](const auto& known) {
        if (!present.contains(known.first)) removed.insert(known.first);
        return !present.contains(known.first);
      });
    }
    index_models();
    for (const auto& served : changed) {
      update(*served);
      if (std::string note = note_of(*served); !note.empty()) notes.push_back(std::move(note));
      if (std::string note = served->application.application()->caution(); !note.empty())
        notes.push_back(std::move(note));
    }
  }
  // Each of these notifies the watches of the catalog, this one among them.
  for (const std::string& name : removed) {
    const Catalog::EntryPtr shown = catalog_->find(name);
    if (shown != nullptr && shown->role == EntryRole::kApplication) catalog_->remove(name);
  }
  return notes;
}

// What is not served as its file is now, and why; empty: it is.
std::string SelectedInference::note_of(const Served& served) const {
  const auto application = served.application.application();
  if (!served.next && application->status.ok()) return "";
  const Catalog::EntryPtr shown = catalog_->find(application->name);
  return fmt::format("application '{}': {}", application->name, shown == nullptr ? "" : shown->reason);
}

std::shared_ptr<SelectedInference::Served> SelectedInference::add(Application application) {
  const std::string name = application.name;
  const uint64_t seed = seed_ ^ hash64(std::as_bytes(std::span(name)));
  auto served = std::make_shared<Served>(std::move(application), seed);
  if (keeps_changes_) served->application.restore({});
  if (shares_learning_) served->application.share();
  const MutexLock lock(applications_mutex_);
  applications_[name] = served;
  any_.store(true, std::memory_order_release);
  return served;
}

void SelectedInference::index_models() {
  by_model_.clear();
  for (const auto& served : all()) {
    std::set<std::string> models;
    for (const std::string& model : served->application.application()->models) models.insert(model);
    if (served->next) models.insert(served->next->models.begin(), served->next->models.end());
    for (const std::string& model : models) by_model_[model].push_back(served.get());
  }
}

void SelectedInference::on_change(const std::string& name, const Catalog::EntryPtr& entry) {
  // Its own change of an application's entry comes here, too, from a thread that holds the lock.
  if (entry != nullptr && entry->role == EntryRole::kApplication) return;
  const MutexLock lock(update_mutex_);
  if (const std::shared_ptr<Served> own = find_any(name)) update(*own);
  const auto changed = by_model_.find(name);
  if (changed == by_model_.end()) return;
  for (Served* served : std::vector<Served*>(changed->second)) update(*served);
}

ApplicationInterface SelectedInference::interface_now(const Application& application) const {
  std::vector<Catalog::EntryPtr> entries;
  for (const std::string& model : application.models) entries.push_back(catalog_->find(model));
  return interface_of(application, entries);
}

// What is not served now has nothing to lose.
std::string SelectedInference::take_next(Served& served) {
  if (!served.next) return "";
  ApplicationInterface interface = interface_now(*served.next);
  if (interface.state == ModelState::kReady) {
    served.application.redefine(*std::exchange(served.next, std::nullopt), std::move(interface));
    index_models();
    return "";
  }
  return fmt::format("application.toml as it is now is not taken yet: {}", interface.reason);
}

void SelectedInference::update(Served& served) {
  const std::string waiting = take_next(served);
  const auto application = served.application.application();
  const Catalog::EntryPtr shown = catalog_->find(application->name);
  served.shadowed = shown != nullptr && shown->role != EntryRole::kApplication;
  ApplicationInterface interface = interface_now(*application);
  std::string reason = interface.reason;
  if (!waiting.empty()) reason = reason.empty() ? waiting : fmt::format("{}; {}", waiting, reason);
  CatalogEntry entry{.name = application->name,
                     .version = "1",
                     .state = interface.state,
                     .reason = std::move(reason),
                     .info = interface.info,
                     .wanted = true,
                     .role = EntryRole::kApplication,
                     .models = application->models};
  served.application.update(std::move(interface));
  if (!served.shadowed) catalog_->put(std::move(entry));
}

std::shared_ptr<SelectedInference::Served> SelectedInference::find(std::string_view name) const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  std::shared_ptr<Served> found = find_any(name);
  return found == nullptr || found->shadowed ? nullptr : found;
}

std::shared_ptr<SelectedInference::Served> SelectedInference::find_any(std::string_view name) const {
  const ReaderLock lock(applications_mutex_);
  const auto found = applications_.find(name);
  return found == applications_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<SelectedInference::Served>> SelectedInference::all() const {
  std::vector<std::shared_ptr<Served>> all;
  const ReaderLock lock(applications_mutex_);
  for (const auto& [name, served] : applications_) all.push_back(served);
  return all;
}

Inference::Started SelectedInference::start(const Query& query, const Caller& caller) {
  const std::shared_ptr<Served> served = find(query.name);
  if (served == nullptr) return below_.start(query, caller);
  const Result<std::shared_ptr<const ModelInfo>> info = names_.find(query.name, query.version);
  if (!info.ok()) return call_error(info.status());
  if (const Status status = check_no_requirements(query, query.name); !status.ok()) return call_error(status);
  std::optional<ServedApplication::Selected> selected = served->application.select(query.context);
  if (!selected) {
    return call_error(
        Status::unavailable(fmt::format("model '{}' is not ready: its models have just left", query.name)));
  }
  const CallId id = layer_call_id(Layer::kSelection, next_.fetch_add(1));
  auto call = std::make_unique<Call>(*this, id, served, *info, *std::move(selected), query, caller);
  if (call->start(query)) {
    if (call->is_timed()) {
      call->due = timer_.due(call->arrival, call->deadline);
      timer_.add(id, call->due, caller.mailbox);
    }
    Shard& shard = shard_of(id);
    const MutexLock lock(shard.mutex);
    shard.calls.emplace(id.value(), std::move(call));
    return id;
  }
  conclude(*call);
  CallError error = error_of(*call);
  std::unique_ptr<Answer> answer = default_answer(*call, error);
  if (answer == nullptr) {
    served->application.count_refused();
    statistics_.of(**info)->count_failed(now_() - query.arrival);
    return error;
  }
  caller.mailbox.post([&sink = caller.sink, id, answer = std::make_shared<std::unique_ptr<Answer>>(std::move(answer))] {
    sink.on_answer(id, std::move(*answer));
  });
  return id;
}

void SelectedInference::conclude(const Call& call) {
  if (!call.asks_several) call.served->application.conclude(call.selected, call.context, call.tries());
}

SelectedInference::Call* SelectedInference::find_call(CallId id) {
  Shard& shard = shard_of(id);
  const MutexLock lock(shard.mutex);
  const auto found = shard.calls.find(id.value());
  return found == shard.calls.end() ? nullptr : found->second.get();
}

void SelectedInference::finish(CallId id) {
  std::unique_ptr<Call> call;
  {
    Shard& shard = shard_of(id);
    const MutexLock lock(shard.mutex);
    call = std::move(shard.calls.extract(id.value()).mapped());
  }
  if (call->answered) return;
  if (call->is_timed()) timer_.remove(id, call->due);
  std::unique_ptr<Answer> answer = answer_of(*call);
  call->caller.sink.on_answer(id, std::move(answer));
}

void SelectedInference::expire(CallId id) {
  Call* const call = find_call(id);
  if (call == nullptr) return;
  call->answered = true;
  call->served->application.count_expired();
  std::unique_ptr<Answer> answer = answer_of(*call);
  call->caller.sink.on_answer(id, std::move(answer));
}

// Of the model that was asked first, unless it has not ended, or has answered one that was cancelled.
CallError SelectedInference::error_of(const Call& call) const {
  const std::optional<CallError>& first = call.members.front().error;
  if (first && !call.any_answered()) return *first;
  if (call.cancelled) return call_error(Refusal::kCancelled, call.info->name, "", call.arrival, now_(), {});
  return call_error(Refusal::kLate, call.info->name, "none of its models has answered in time", call.arrival, now_(),
                    {}, {.at = call.deadline});
}

std::unique_ptr<Answer> SelectedInference::answer_of(Call& call) {
  ServedApplication& application = call.served->application;
  conclude(call);
  if (!call.any_answered() || call.cancelled) {
    CallError error = error_of(call);
    if (auto answer = call.cancelled ? nullptr : default_answer(call, error)) return answer;
    application.count_refused();
    statistics_.of(*call.info)->count_failed(now_() - call.arrival);
    return std::make_unique<RefusedAnswer>(call.info, call.client_id, std::move(error));
  }
  std::vector<const Prediction*> predictions;
  std::string answered;
  std::string missing;
  for (const Call::Member& member : call.members) {
    // One that was asked in place of another is the only one that is combined.
    if (call.asks_several || &member == &call.members.back()) {
      predictions.push_back(member.prediction ? &*member.prediction : nullptr);
    }
    std::string& names = member.prediction ? answered : missing;
    names += names.empty() ? member.name() : "," + member.name();
  }
  const TenantId tenant = call.caller.tenant ? call.caller.tenant->id() : TenantId();
  ServedApplication::Combined combined = application.combine(call.selected, predictions, call.failed_models(),
                                                             call.info->batching, tenant, call.context, now_());
  const std::vector<double>& confidence = combined.combination.confidence;
  const double least = confidence.empty() ? 1 : *std::ranges::min_element(confidence);
  std::vector<AnswerParameter> parameters{{"confidence", least}, {"models", std::move(answered)}};
  if (!missing.empty()) parameters.push_back({"missing", std::move(missing)});
  if (combined.default_rows > 0) parameters.push_back({"default", static_cast<int64_t>(combined.default_rows)});
  if (!combined.feedback_id.empty()) parameters.push_back({"feedback_id", std::move(combined.feedback_id)});
  if (!call.asks_several) {
    for (AnswerParameter& parameter : call.members.back().answer->parameters()) {
      parameters.push_back(std::move(parameter));
    }
  }
  const bool all_default = combined.default_rows > 0 && combined.default_rows == confidence.size();
  const bool partial = std::ranges::count(predictions, nullptr) > 0 || combined.default_rows > 0;
  std::vector<uint32_t> outputs = call.requested_in(combined.combination.prediction);
  CombinedAnswer::Parts parts{.info = call.info,
                              .id = call.client_id,
                              .arrival = call.arrival,
                              .deadline = call.deadline,
                              .rows = static_cast<uint32_t>(confidence.size()),
                              .prediction = std::move(combined.combination.prediction),
                              .outputs = std::move(outputs),
                              .quality = all_default ? Quality::kDefault
                                         : partial   ? Quality::kPartial
                                                     : Quality::kComplete,
                              .parameters = std::move(parameters),
                              .answers = {},
                              .counters = statistics_.of(*call.info),
                              .timer = call.answered ? &timer_ : nullptr,
                              .due = call.due};
  for (Call::Member& member : call.members) parts.answers.push_back(std::move(member.answer));
  return std::make_unique<CombinedAnswer>(std::move(parts), now_);
}

std::unique_ptr<Answer> SelectedInference::default_answer(Call& call, const CallError& why) {
  if (!deserves_default(why) || !call.rows) return nullptr;
  std::optional<Prediction> prediction = default_prediction(call.application(), *call.info, *call.rows);
  if (!prediction) return nullptr;
  std::string missing;
  for (const Call::Member& member : call.members) missing += missing.empty() ? member.name() : "," + member.name();
  call.served->application.count_default();
  std::vector<uint32_t> outputs = call.requested_in(*prediction);
  return std::make_unique<CombinedAnswer>(CombinedAnswer::Parts{.info = call.info,
                                                                .id = call.client_id,
                                                                .arrival = call.arrival,
                                                                .deadline = call.deadline,
                                                                .rows = *call.rows,
                                                                .prediction = *std::move(prediction),
                                                                .outputs = std::move(outputs),
                                                                .quality = Quality::kDefault,
                                                                .parameters = {{"confidence", 0.0},
                                                                               {"models", std::string()},
                                                                               {"missing", std::move(missing)},
                                                                               {"default", int64_t{*call.rows}}},
                                                                .answers = {},
                                                                .counters = statistics_.of(*call.info),
                                                                .timer = call.answered ? &timer_ : nullptr,
                                                                .due = call.due},
                                          now_);
}

void SelectedInference::cancel(CallId id) {
  if (!is_of_layer(id, Layer::kSelection)) return below_.cancel(id);
  // It ends on this thread, so not before this.
  if (Call* const call = find_call(id)) call->cancel();
}

Status SelectedInference::observe(const Observation& observation) {
  const std::shared_ptr<Served> served = find(observation.name);
  if (served == nullptr && observation.feedback_id.empty()) return below_.observe(observation);
  if (served == nullptr) {
    const Status status = names_.find(observation.name, observation.version).status();
    if (status.code() == StatusCode::kNotFound) {
      return Status::not_found(fmt::format("unknown application '{}'", observation.name));
    }
    return Status::unimplemented(
        fmt::format("'{}' is a model, which takes no feedback; an application does", observation.name));
  }
  FOLIOT_RETURN_IF_ERROR(names_.find(observation.name, observation.version).status());
  if (observation.feedback_id.empty()) {
    return Status::unimplemented(fmt::format(
        "application '{}' learns from feedback on its answers only, by their feedback_id", observation.name));
  }
  return served->application.observe(observation, now_(), feedback_log_);
}

void SelectedInference::restore(std::span<const Learned> learned) {
  const MutexLock lock(update_mutex_);
  keeps_changes_ = true;
  for (const auto& served : all()) {
    const auto application = served->application.application();
    const std::string learns_as = application->learns_as();
    std::vector<ServedApplication::Learned> own;
    for (const Learned& one : learned) {
      if (one.application == application->name && one.learns_as == learns_as) own.push_back(one.learned);
    }
    served->application.restore(own);
  }
}

std::vector<SelectedInference::Learned> SelectedInference::take_changes() {
  std::vector<Learned> changes;
  // While no definition changes, which would be another one's to learn.
  const MutexLock lock(update_mutex_);
  for (const auto& served : all()) {
    const auto application = served->application.application();
    const std::string learns_as = application->learns_as();
    for (ServedApplication::Learned& one : served->application.take_changes()) {
      changes.push_back({application->name, learns_as, std::move(one)});
    }
  }
  return changes;
}

void SelectedInference::share_learning() {
  const MutexLock lock(update_mutex_);
  shares_learning_ = true;
  for (const auto& served : all()) served->application.share();
}

std::vector<std::shared_ptr<ServedApplication>> SelectedInference::served_applications() const {
  std::vector<std::shared_ptr<ServedApplication>> applications;
  for (const auto& served : all()) applications.emplace_back(served, &served->application);
  return applications;
}

SelectedInference::Statistics SelectedInference::application_statistics() const {
  Statistics statistics;
  for (const auto& served : all()) {
    ApplicationStatistics one = served->application.statistics();
    auto application = one.application;
    statistics.emplace_back(std::move(application), std::move(one));
  }
  return statistics;
}

}  // namespace foliot
