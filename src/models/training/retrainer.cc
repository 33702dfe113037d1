#include "models/training/retrainer.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "answer/personal/items/personal_version.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "foundation/process/child_process.h"
#include "models/training/made_versions.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLookInterval = Duration::seconds(1);
// `foliot retrain` ends its trainer at the limit itself, and says so.
constexpr Duration kGrace = Duration::seconds(10);
constexpr const char* kNoteFile = "last_retraining";
constexpr std::array kOutcomes = {"taken", "not_taken", "failed"};  // by RetrainOutcome

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

prometheus::ClientMetric& add(prometheus::MetricFamily& family, const std::string& model) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label.push_back({"model", model});
  return metric;
}

}  // namespace

void Retrainer::open() {
  const MutexLock lock(mutex_);  // the metrics may be asked for already
  for (const PersonalModels::Retrained& each : models_.retrained()) {
    if (options_.peers != nullptr) remove_gathered(*each.observations);
    Model& model = retrained_.emplace_back(Model{.spec = each.spec,
                                                 .state = *each.observations,
                                                 .schedule = {each.spec->retrain, options_.now()},
                                                 .records_before = std::nullopt});
    shown_.push_back({.model = each.spec->name});
    read_note(model);
  }
}

Status Retrainer::start() {
  if (retrained_.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "foliot-retrain", .nice = 10}, [this] {
                            MutexLock lock(mutex_);
                            while (!stopping_) {
                              lock.unlock();
                              const bool was_due = look();
                              lock.lock();
                              const Duration pause = was_due ? Duration() : kLookInterval;
                              stopped_.wait_for(mutex_, pause, [this]() REQUIRES(mutex_) { return stopping_.load(); });
                            }
                          }));
  return Status();
}

void Retrainer::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

bool Retrainer::look() {
  if (options_.peers != nullptr && !lead()) return false;
  Model* chosen = nullptr;
  RetrainSchedule::Facts of_chosen;
  std::string why;
  for (Model& model : retrained_) {
    if (chosen != nullptr && chosen->schedule.last() <= model.schedule.last()) continue;
    const std::optional<RetrainSchedule::Facts> known = options_.peers == nullptr ? facts(model) : shared_facts(model);
    const std::string reason = known ? model.schedule.why(options_.now(), *known) : "";
    if (reason.empty()) continue;
    chosen = &model;
    of_chosen = *known;
    why = reason;
  }
  if (chosen == nullptr) return false;
  retrain(*chosen, of_chosen, why);
  return true;
}

// Records of the log from before this process began count as an observation each.
std::optional<RetrainSchedule::Facts> Retrainer::facts(Model& model) const {
  const std::optional<PersonalModels::Statistics> statistics = models_.statistics(model.spec->name);
  if (!statistics) return std::nullopt;
  const PersonalStatistics& learned = statistics->learned;
  const uint64_t observed = statistics->counters->observations;
  if (!model.records_before) {
    const uint64_t known = std::max(model.noted.second, learned.trained_number) + observed;
    model.records_before = learned.log_number - std::min(known, learned.log_number);
  }
  return RetrainSchedule::Facts{.version = learned.version,
                                .quality = learned.retrain,
                                .observations = *model.records_before + observed,
                                .of_version = learned.observations,
                                .withheld = learned.withheld};
}

void Retrainer::retrain(Model& model, const RetrainSchedule::Facts& with, const std::string& why) {
  const auto log = [&](bool is_failure, const std::string& line) {
    options_.log(is_failure, fmt::format("personal model '{}': {}", model.spec->name, line));
  };
  const auto statistics = models_.statistics(model.spec->name);
  const uint64_t record = statistics ? statistics->learned.log_number : 0;
  const TimePoint began = options_.now();
  const auto position = static_cast<size_t>(&model - retrained_.data());
  {
    const MutexLock lock(mutex_);
    shown_[position].is_running = true;
  }
  log(false, fmt::format("is retrained: {}", why));
  const std::optional<Ended> ended =
      options_.peers == nullptr ? train(model, with.version) : train_for_all(model, with.version);
  const TimePoint now = options_.now();
  {
    const MutexLock lock(mutex_);
    Shown& shown = shown_[position];
    shown.is_running = false;
    if (!ended) return;
    ++shown.counts[static_cast<size_t>(ended->outcome)];
    shown.last_duration = now - began;
    shown.is_failing = ended->outcome == RetrainOutcome::kFailed;
  }
  model.schedule.end(began, with, now, ended->outcome);
  if (ended->outcome != RetrainOutcome::kFailed) note(model, record);
  log(ended->outcome == RetrainOutcome::kFailed, ended->report);
}

std::optional<Retrainer::Ended> Retrainer::train(const Model& model, const std::string& served) {
  const fs::path& folder = model.spec->folder;
  const auto failed = [](std::string_view why) {
    return Ended{.outcome = RetrainOutcome::kFailed, .report = fmt::format("retraining failed: {}", why)};
  };
  const std::string before = newest_name(folder);
  const Status ran = run_command(model, {folder, model.state});
  if (stopping_) return std::nullopt;
  if (!ran.ok()) return failed(ran.message());
  const std::string name = newest_name(folder);
  if (name == before) return failed(fmt::format("its command left no version above {} in {}", before, folder.string()));
  const Result<PersonalVersion> made = PersonalVersion::open(folder / name);
  // Its number may be that of a version which has left since an operator took another one.
  const VersionRequest request{.version = models_.is_chosen(model.spec->name) ? name : ""};
  const Status taken = made.ok() ? models_.load(model.spec->name, request) : made.status();
  if (!taken.ok()) set_aside(folder / name, folder);
  if (!made.ok()) return failed(fmt::format("version {} cannot be used: {}", name, taken.message()));
  if (!taken.ok()) return Ended{.outcome = RetrainOutcome::kNotTaken, .report = std::string(taken.message())};
  std::ofstream(folder / name / kMadeByServer) << "\n";
  remove_older(folder, name, served);
  return Ended{.outcome = RetrainOutcome::kTaken,
               .report = fmt::format("version {} is better on what is withheld from trainers, and is served", name)};
}

std::vector<std::string> Retrainer::command(const Model& model, const Place& place) const {
  std::vector<std::string> command = model.spec->retrain.command;
  if (command.empty()) {
    const std::string limit = fmt::format("{}ns", model.spec->retrain.time_limit.nanoseconds());
    command = options_.program;
    command.insert(command.end(), {"retrain", "{folder}", "--state", "{state}", "--time-limit", limit});
  } else {
    command.insert(command.begin(), "/usr/bin/env");  // looks for it in PATH
  }
  for (std::string& word : command) {
    replace_all(word, "{folder}", place.folder.string());
    replace_all(word, "{state}", place.state.string());
  }
  return command;
}

Status Retrainer::run_command(const Model& model, const Place& place) const {
  ChildOptions options{.command = command(model, place), .environment = {}};
  for (char** variable = environ; *variable != nullptr; ++variable) options.environment.emplace_back(*variable);
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::start(options));
  std::string printed, complained;
  const TimePoint deadline = options_.now() + model.spec->retrain.time_limit + kGrace;
  while (child.listen(Duration::milliseconds(100), printed, complained)) {
    printed.clear();
    if (complained.size() > kComplaintBytesMax) complained.erase(0, complained.size() - kComplaintBytesMax);
    if (stopping_) return Status::unavailable("the server stops");
    if (options_.now() < deadline) continue;
    return Status::resource_exhausted(
        fmt::format("its command did not end within time_limit, {}", format_duration(model.spec->retrain.time_limit)));
  }
  if (child.succeeded()) return Status();
  if (complained.size() > kComplaintBytesMax) complained.erase(0, complained.size() - kComplaintBytesMax);
  while (!complained.empty() && complained.back() == '\n') complained.pop_back();
  return Status::internal(fmt::format("{}: {}", child.ending(), escaped(complained)));
}

// In a cluster another front end may lead tomorrow.
fs::path Retrainer::note_file(const Model& model) const {
  return options_.peers == nullptr ? model.state / kNoteFile : model.spec->folder / (std::string(".") + kNoteFile);
}

// Nanoseconds of the wall clock, and the last record of the log.
bool Retrainer::read_note(Model& model) const {
  std::ifstream in(note_file(model));
  std::pair<int64_t, uint64_t> note;
  if (!(in >> note.first >> note.second) || note == model.noted) return false;
  model.noted = note;
  const int64_t ago = std::max<int64_t>(options_.wall().nanoseconds() - note.first, 0);
  model.schedule = {model.spec->retrain, options_.now() - Duration::nanoseconds(ago)};
  return true;
}

// One that is not on disk costs a retraining that comes too soon after a restart.
void Retrainer::note(Model& model, uint64_t record) const {
  const fs::path file = note_file(model);
  const fs::path partial = file.string() + ".new";
  std::ofstream out(partial, std::ios::trunc);
  model.noted = {options_.wall().nanoseconds(), record};
  out << model.noted.first << ' ' << record << '\n';
  out.close();
  std::error_code ignored;
  if (out) fs::rename(partial, file, ignored);
}

std::string Retrainer::text() const {
  using prometheus::MetricType;
  prometheus::MetricFamily total{
      "foliot_retrain_total", "Retrainings by the server, by outcome", MetricType::Counter, {}};
  prometheus::MetricFamily duration{
      "foliot_retrain_last_duration_seconds", "Time that the last retraining took", MetricType::Gauge, {}};
  prometheus::MetricFamily failing{"foliot_retrain_failing", "1: the last retraining failed", MetricType::Gauge, {}};
  prometheus::MetricFamily running{"foliot_retrain_running", "1: a retraining runs", MetricType::Gauge, {}};
  const MutexLock lock(mutex_);
  if (shown_.empty()) return "";
  for (const Shown& shown : shown_) {
    const std::string& name = shown.model;
    for (size_t i = 0; i < kOutcomes.size(); ++i) {
      prometheus::ClientMetric& metric = add(total, name);
      metric.label.push_back({"outcome", kOutcomes[i]});
      metric.counter.value = static_cast<double>(shown.counts[i]);
    }
    add(duration, name).gauge.value = shown.last_duration.to_seconds();
    add(failing, name).gauge.value = shown.is_failing ? 1 : 0;
    add(running, name).gauge.value = shown.is_running ? 1 : 0;
  }
  return prometheus::TextSerializer().Serialize({total, duration, failing, running});
}

}  // namespace foliot
