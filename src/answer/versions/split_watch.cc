#include "answer/versions/split_watch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "answer/inference/prediction.h"
#include "answer/inference/prediction_answer.h"
#include "answer/versions/agreement.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

uint64_t bytes_of(const Query& query) {
  uint64_t bytes = 0;
  for (const TensorView& input : query.inputs) bytes += input.bytes.size();
  return bytes;
}

// Keeps the inputs of a query whose caller alone has them.
void own_inputs(Query& query) {
  if (query.owner != nullptr) return;
  const auto bytes = std::make_shared<std::vector<std::vector<std::byte>>>();
  bytes->reserve(query.inputs.size());
  for (TensorView& input : query.inputs) {
    input.bytes = bytes->emplace_back(input.bytes.begin(), input.bytes.end());
  }
  query.owner = bytes;
}

VersionOutcome::End end_of(const CallError& error) {
  using End = VersionOutcome::End;
  constexpr std::array kMissed{Refusal::kUnmeetable, Refusal::kOverload, Refusal::kExpired, Refusal::kLate,
                               Refusal::kWorkerLost};
  if (error.reason.empty() || error.reason == to_string(Refusal::kModelError)) return End::kFailed;
  const bool missed = std::ranges::any_of(kMissed, [&](Refusal refusal) { return error.reason == to_string(refusal); });
  return missed ? End::kMissed : End::kOther;
}

uint64_t client_of(std::string_view key) {
  return key.empty() ? 0 : std::max<uint64_t>(1, hash64(std::as_bytes(std::span(key))));
}

}  // namespace

// What is known of a call and its copy. Both end on the thread of one mailbox.
struct SplitWatch::Pair {
  std::string name;
  uint64_t shadow = 0;
  std::shared_ptr<const Prediction> answered{};
  std::shared_ptr<const Prediction> copied{};
};

class SplitWatch::Call final : public AnswerSink {
 public:
  Call(SplitWatch& watch, std::string_view called, uint64_t number, const Query& query, const Caller& from)
      : name(called),
        version(number),
        arrival(query.arrival),
        client(client_of(query.split_key)),
        caller(from),
        watch_(watch) {}

  void on_answer(CallId call, std::unique_ptr<Answer> answer) override { watch_.end(*this, call, std::move(answer)); }

  const std::string name;
  const uint64_t version;
  const TimePoint arrival;
  const uint64_t client;
  const Caller caller;
  std::shared_ptr<Pair> pair{};

 private:
  SplitWatch& watch_;
};

class SplitWatch::Copy final : public AnswerSink {
 public:
  Copy(SplitWatch& watch, std::shared_ptr<Pair> of, uint64_t input_bytes, TimePoint begin)
      : pair(std::move(of)), bytes(input_bytes), arrival(begin), watch_(watch) {}

  void on_answer(CallId, std::unique_ptr<Answer> answer) override { watch_.end(*this, std::move(answer)); }

  const std::shared_ptr<Pair> pair;
  const uint64_t bytes;
  const TimePoint arrival;

 private:
  SplitWatch& watch_;
};

SplitWatch::SplitWatch(Inference& below, const ServedNames& names, const std::function<TimePoint()>& now)
    : below_(below), names_(names), now_(now) {}
SplitWatch::~SplitWatch() = default;

template <typename Add>
void SplitWatch::judge(const std::string& name, uint64_t version, Add add) {
  const std::shared_ptr<const VersionTable> table = names_.versions_of(name);
  if (table == nullptr || !table->rules.rollback || table->rules.split.empty()) return;
  const VersionRules& rules = table->rules;
  const VersionRules::Share& stable = rules.first();
  std::vector<std::pair<uint64_t, std::string>> worse;
  {
    const MutexLock lock(mutex_);
    Trials& trials = trials_[name];
    if (trials.split != rules.split) trials = {.split = rules.split};
    for (const VersionRules::Share& share : rules.split) {
      if (share.percent == 0 || share.version == stable.version) continue;
      if (version != share.version && version != stable.version) continue;
      const double part = share.percent / static_cast<double>(share.percent + stable.percent);
      CanaryTrial& trial = trials.canaries.try_emplace(share.version, part).first->second;
      if (!trial.verdict().empty()) continue;  // said already
      add(trial, version == share.version);
      if (std::string why = trial.verdict(); !why.empty()) {
        ++rollbacks_[{name, share.version}];
        worse.emplace_back(share.version, std::move(why));
      }
    }
  }
  for (const auto& [canary, why] : worse) on_worse_(name, canary, why);
}

Inference::Started SplitWatch::start(std::string_view name, uint64_t version, uint64_t shadow, const Query& query,
                                     const Caller& caller) {
  auto made = std::make_unique<Call>(*this, name, version, query, caller);
  Call& call = *made;
  {
    const MutexLock lock(mutex_);
    calls_.emplace(&call, std::move(made));
  }
  Inference::Started started = below_.start(query, {caller.tenant, caller.mailbox, call});
  if (const auto* const error = std::get_if<CallError>(&started)) {
    const VersionOutcome outcome{.end = end_of(*error), .client = call.client};
    judge(call.name, version, [&](CanaryTrial& trial, bool is_canary) { trial.add(is_canary, outcome); });
    const MutexLock lock(mutex_);
    calls_.erase(&call);
    return started;
  }
  // The answer comes through the mailbox of this thread, so not before this.
  if (shadow != 0) {
    call.pair = std::make_shared<Pair>(Pair{call.name, shadow});
    start_copy(call.pair, query, caller);
  }
  return started;
}

void SplitWatch::start_copy(const std::shared_ptr<Pair>& pair, const Query& query, const Caller& caller) {
  const uint64_t bytes = bytes_of(query);
  auto made = std::make_unique<Copy>(*this, pair, bytes, query.arrival);
  Copy& copy = *made;
  {
    const MutexLock lock(mutex_);
    if (copies_.size() >= kCopiesMax || copied_bytes_ + bytes > kCopiedBytesMax) {
      ++shadows_[{pair->name, pair->shadow}].skipped;
      return;
    }
    copied_bytes_ += bytes;
    copies_.emplace(&copy, std::move(made));
  }
  const std::string name = versioned_name(pair->name, std::to_string(pair->shadow));
  Query copied = query;
  copied.name = name;
  copied.selection = "shadow";
  copied.deadline = TimePoint::infinite_future();
  copied.deadline_origin = DeadlineOrigin::kUnknown;
  copied.request_class = RequestClass::kOffline;
  own_inputs(copied);
  const Inference::Started started = below_.start(copied, {nullptr, caller.mailbox, copy});
  if (!std::holds_alternative<CallError>(started)) return;
  const MutexLock lock(mutex_);
  ++shadows_[{pair->name, pair->shadow}].failed;
  copied_bytes_ -= bytes;
  copies_.erase(&copy);
}

void SplitWatch::end(Call& call, CallId id, std::unique_ptr<Answer> answer) {
  std::unique_ptr<Call> ended;
  {
    const MutexLock lock(mutex_);
    ended = std::move(calls_.extract(&call).mapped());
  }
  VersionOutcome outcome{.end = VersionOutcome::End::kServed, .latency = now_() - call.arrival, .client = call.client};
  if (!answer->served()) outcome.end = end_of(answer->error());
  judge(call.name, call.version, [&](CanaryTrial& trial, bool is_canary) { trial.add(is_canary, outcome); });
  if (call.pair != nullptr && answer->served()) {
    call.pair->answered = std::make_shared<const Prediction>(take_prediction(*answer));
    answer = std::make_unique<ComputedAnswer>(std::move(answer), call.pair->answered);
    compare(*call.pair);
  }
  call.caller.sink.on_answer(id, std::move(answer));
}

void SplitWatch::end(Copy& copy, std::unique_ptr<Answer> answer) {
  if (answer->served()) {
    copy.pair->copied = std::make_shared<const Prediction>(take_prediction(*answer));
    answer->settle();
  }
  const bool served = answer->served();
  std::unique_ptr<Copy> ended;
  {
    const MutexLock lock(mutex_);
    ended = std::move(copies_.extract(&copy).mapped());
    copied_bytes_ -= copy.bytes;
    Shadow& shadow = shadows_[{copy.pair->name, copy.pair->shadow}];
    if (served) {
      shadow.latency += now_() - copy.arrival;
    } else {
      ++shadow.failed;
    }
  }
  if (served) compare(*copy.pair);
}

void SplitWatch::compare(const Pair& pair) {
  if (pair.answered == nullptr || pair.copied == nullptr) return;
  const bool is_equal = agree(*pair.answered, *pair.copied);
  const MutexLock lock(mutex_);
  Shadow& shadow = shadows_[{pair.name, pair.shadow}];
  ++(is_equal ? shadow.agree : shadow.disagree);
}

void SplitWatch::add_loss(std::string_view name, uint64_t version, double loss) {
  judge(std::string(name), version, [&](CanaryTrial& trial, bool is_canary) { trial.add_loss(is_canary, loss); });
}

void SplitWatch::forget_gone() {
  const MutexLock lock(mutex_);
  std::erase_if(shadows_, [this](const auto& each) { return !names_.knows(each.first.first); });
  std::erase_if(rollbacks_, [this](const auto& each) { return !names_.knows(each.first.first); });
  std::erase_if(trials_, [this](const auto& each) { return !names_.knows(each.first); });
}

std::map<std::pair<std::string, uint64_t>, SplitWatch::Shadow> SplitWatch::shadows() const {
  const MutexLock lock(mutex_);
  return shadows_;
}

std::map<std::pair<std::string, uint64_t>, uint64_t> SplitWatch::rollbacks() const {
  const MutexLock lock(mutex_);
  return rollbacks_;
}

std::vector<SplitWatch::Evidence> SplitWatch::evidence() const {
  std::vector<Evidence> all;
  const MutexLock lock(mutex_);
  for (const auto& [name, trials] : trials_) {
    for (const auto& [version, trial] : trials.canaries) {
      Evidence& evidence = all.emplace_back(Evidence{.name = name, .version = version});
      std::ranges::transform(trial.tests(), evidence.tests.begin(), &RateComparison::evidence);
    }
  }
  return all;
}

}  // namespace foliot
