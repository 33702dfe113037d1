#include "answer/cache/cached_inference.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "answer/cache/prediction_shelf.h"
#include "answer/inference/kept_query.h"
#include "answer/inference/layer_call_id.h"
#include "answer/inference/prediction_answer.h"
#include "answer/inference/refused_answer.h"
#include "foundation/base/mutex.h"

namespace foliot {
namespace {

constexpr size_t kFollowersMax = 1024;  // of one call; others compute

}  // namespace

// A call that has no answer yet, and the sink of the layer below while it leads.
class CachedInference::Call final : public AnswerSink {
 public:
  enum class State : uint8_t {
    kFollows,
    kLeads,     // a flight; its thread goes on with it
    kComputed,  // by the layer below
  };

  Call(CachedInference& cache, CallId number, std::shared_ptr<const ModelInfo> called, const Query& query,
       const Caller& from, const PredictionKey& same)
      : id(number),
        model(std::move(called)),
        kept(query),
        caller(from),
        deadline(deadline_of(query, *model)),
        key(same),
        cache_(cache) {}

  // Ends the earlier or is the more urgent the smaller it is.
  std::tuple<bool, TimePoint> urgency() const {
    return {kept.query().request_class == RequestClass::kOffline, deadline};
  }
  void on_answer(CallId, std::unique_ptr<Answer> answer) override { cache_.on_answer(*this, std::move(answer)); }

  const CallId id;
  const std::shared_ptr<const ModelInfo> model;
  const KeptQuery kept;
  const Caller caller;
  const TimePoint deadline;
  const PredictionKey key;
  State state = State::kFollows;
  CallId below;  // in kComputed

 private:
  CachedInference& cache_;
};

struct CachedInference::Part {
  // The call that computes what others wait for.
  struct Flight {
    CallId leader;
    std::vector<CallId> followers;
  };

  explicit Part(uint64_t bytes_max) : shelf(bytes_max) {}

  mutable Mutex mutex;
  PredictionShelf shelf GUARDED_BY(mutex);
  std::unordered_map<PredictionKey, Flight, Hash128Hash> flights GUARDED_BY(mutex);
  std::unordered_map<uint64_t, std::unique_ptr<Call>> calls GUARDED_BY(mutex);  // not answered, by value of CallId
};

struct CachedInference::Ended {
  std::unique_ptr<Call> call;
  std::vector<std::unique_ptr<Call>> followers;
};

CachedInference::CachedInference(uint64_t bytes_max, Inference& below, const ServedNames& names,
                                 CallStatistics& statistics, std::function<TimePoint()> now)
    : below_(below), names_(names), statistics_(statistics), now_(std::move(now)) {
  for (auto& part : parts_) part = std::make_unique<Part>(bytes_max / kParts);
}

CachedInference::~CachedInference() = default;

CachedInference::Part& CachedInference::part_of(const PredictionKey& key) const { return *parts_[key.high % kParts]; }
CachedInference::Part& CachedInference::part_of(CallId call) const { return *parts_[layer_call_number(call) % kParts]; }

Inference::Started CachedInference::start(const Query& query, const Caller& caller) {
  const Result<std::shared_ptr<const ModelInfo>> found = names_.find_model(query.name, query.version);
  if (!found.ok() || !(*found)->cache || (*found)->content.empty() || names_.draining()) {
    return below_.start(query, caller);
  }
  const TimePoint begin = now_();
  const PredictionKey key = prediction_key(secret_, **found, query);
  const CallId id = layer_call_id(Layer::kCache, next_.fetch_add(kParts) + key.high % kParts);
  auto call = std::make_unique<Call>(*this, id, *found, query, caller, key);
  Call& started = *call;
  Part& part = part_of(key);
  {
    MutexLock lock(part.mutex);
    if (std::shared_ptr<const Prediction> prediction = part.shelf.find(key)) {
      lock.unlock();
      std::unique_ptr<Answer> answer = answer_of(started, std::move(prediction));
      post_answer(std::move(call), std::move(answer));
      return id;
    }
    const auto [flight, first] = part.flights.try_emplace(key, Part::Flight{id, {}});
    if (first) {
      started.state = Call::State::kLeads;
    } else if (part.calls.at(flight->second.leader.value())->urgency() <= started.urgency() &&
               flight->second.followers.size() < kFollowersMax) {
      flight->second.followers.push_back(id);
      part.calls.emplace(id.value(), std::move(call));
      return id;
    }
    part.calls.emplace(id.value(), std::move(call));
  }
  statistics_.of(*started.model)->count_cache_miss(now_() - begin);
  if (std::optional<CallError> error = compute(started)) {
    end(started, nullptr);
    return *std::move(error);
  }
  return id;
}

std::optional<CallError> CachedInference::compute(Call& call) {
  Started started = below_.start(call.kept.query(), {call.caller.tenant, call.caller.mailbox, call});
  if (auto* error = std::get_if<CallError>(&started)) return std::move(*error);
  // Its answer comes through the mailbox of this thread, so not before this.
  const MutexLock lock(part_of(call.key).mutex);
  call.state = Call::State::kComputed;
  call.below = std::get<CallId>(started);
  return std::nullopt;
}

void CachedInference::on_answer(Call& call, std::unique_ptr<Answer> answer) {
  std::shared_ptr<const Prediction> prediction;
  if (answer->served() && answer->quality() == Quality::kComplete) {
    prediction = std::make_shared<const Prediction>(take_prediction(*answer));
  }
  Ended ended = end(call, prediction);
  for (std::unique_ptr<Call>& follower : ended.followers) {
    std::unique_ptr<Answer> shared = answer_of(*follower, prediction);
    post_answer(std::move(follower), std::move(shared));
  }
  if (prediction) answer = std::make_unique<ComputedAnswer>(std::move(answer), std::move(prediction));
  ended.call->caller.sink.on_answer(ended.call->id, std::move(answer));
}

CachedInference::Ended CachedInference::end(Call& call, const std::shared_ptr<const Prediction>& prediction) {
  Part& part = part_of(call.key);
  Ended ended;
  const MutexLock lock(part.mutex);
  if (prediction) part.shelf.insert(call.key, prediction);
  const auto take = [&](CallId id) REQUIRES(part.mutex) { return std::move(part.calls.extract(id.value()).mapped()); };
  const auto flight = part.flights.find(call.key);
  const bool led = flight != part.flights.end() && flight->second.leader == call.id;
  if (led && prediction) {
    for (const CallId follower : flight->second.followers) ended.followers.push_back(take(follower));
    part.flights.erase(flight);
  } else if (led) {
    replace_leader(part, call.key);
  }
  ended.call = take(call.id);
  return ended;
}

void CachedInference::replace_leader(Part& part, const PredictionKey& key) {
  part.mutex.assert_held();  // Part is defined after this function is declared
  const auto flight = part.flights.find(key);
  std::vector<CallId>& followers = flight->second.followers;
  if (followers.empty()) {
    part.flights.erase(flight);
    return;
  }
  const auto next = std::ranges::min_element(
      followers, {}, [&](CallId follower) REQUIRES(part.mutex) { return part.calls.at(follower.value())->urgency(); });
  const CallId leader = flight->second.leader = *next;
  followers.erase(next);
  Call& call = *part.calls.at(leader.value());
  call.state = Call::State::kLeads;
  call.caller.mailbox.post([this, leader] { go_on(leader); });
}

void CachedInference::go_on(CallId id) {
  Part& part = part_of(id);
  Call* call = nullptr;
  {
    const MutexLock lock(part.mutex);
    const auto found = part.calls.find(id.value());
    if (found == part.calls.end()) return;  // cancelled
    call = found->second.get();
  }
  std::optional<CallError> error = compute(*call);
  if (!error) return;
  Ended ended = end(*call, nullptr);
  auto answer = std::make_unique<RefusedAnswer>(ended.call->model, ended.call->kept.query().id, *std::move(error));
  ended.call->caller.sink.on_answer(id, std::move(answer));
}

void CachedInference::cancel(CallId id) {
  if (!is_of_layer(id, Layer::kCache)) return below_.cancel(id);
  Part& part = part_of(id);
  std::unique_ptr<Call> cancelled;
  {
    MutexLock lock(part.mutex);
    const auto found = part.calls.find(id.value());
    if (found == part.calls.end()) return;
    if (found->second->state == Call::State::kComputed) {
      const CallId below = found->second->below;
      lock.unlock();
      return below_.cancel(below);
    }
    const PredictionKey key = found->second->key;
    if (found->second->state == Call::State::kLeads) {
      replace_leader(part, key);
    } else {
      std::erase(part.flights.at(key).followers, id);
    }
    cancelled = std::move(part.calls.extract(found).mapped());
  }
  const TimePoint now = now_();
  const Query& query = cancelled->kept.query();
  statistics_.of(*cancelled->model)->count_failed(now - query.arrival);
  auto answer = std::make_unique<RefusedAnswer>(
      cancelled->model, query.id,
      call_error(Refusal::kCancelled, cancelled->model->name, "", query.arrival, now, TimePoint()));
  post_answer(std::move(cancelled), std::move(answer));
}

void CachedInference::post_answer(std::unique_ptr<Call> call, std::unique_ptr<Answer> answer) {
  // Copied before the call goes with it: std::function copies what it holds.
  const Caller& caller = call->caller;
  caller.mailbox.post([call = std::shared_ptr<Call>(std::move(call)),
                       answer = std::make_shared<std::unique_ptr<Answer>>(std::move(answer))] {
    call->caller.sink.on_answer(call->id, std::move(*answer));
  });
}

std::unique_ptr<Answer> CachedInference::answer_of(const Call& call, std::shared_ptr<const Prediction> prediction) {
  const Query& query = call.kept.query();
  return std::make_unique<PredictionAnswer>(call.model, query.id, query.arrival, call.deadline, std::move(prediction),
                                            statistics_.of(*call.model), now_);
}

CacheStatistics CachedInference::cache_statistics() const {
  CacheStatistics sum;
  for (const auto& part : parts_) {
    const MutexLock lock(part->mutex);
    sum.bytes += part->shelf.bytes();
    sum.predictions += part->shelf.size();
    sum.evictions += part->shelf.evictions();
  }
  return sum;
}

}  // namespace foliot
