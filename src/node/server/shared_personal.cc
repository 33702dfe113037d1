#include "node/server/shared_personal.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "answer/inference/call_error.h"
#include "answer/inference/tenant.h"
#include "answer/personal/storage/user_records.h"
#include "foundation/base/check.h"
#include "node/server/shared_retraining.h"

namespace foliot {
namespace {

// Whose copies are sent in one reply: all of the largest are less than a frame may have.
constexpr size_t kUsersAtOnce = 16;

}  // namespace

// A call that waits for its parts. On the loop's thread.
struct SharedPersonal::Joined {
  std::string model;
  TimePoint arrival;
  PersonalDone done;
  std::optional<TenantLease> lease;  // until the answer is passed on
  size_t left = 0;
  PersonalAnswer answer;
  std::optional<CallError> error;  // the first
};

SharedPersonal::SharedPersonal(PersonalModels& models, HomeLinks& links, std::string name,
                               std::function<TimePoint()> now)
    : models_(models), links_(links), now_(std::move(now)), shards_({.name = std::move(name)}, *this, links) {}

bool SharedPersonal::wait_until_answered(Duration timeout) {
  MutexLock lock(mutex_);
  return answered_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return in_flight_ == 0; });
}

void SharedPersonal::stop() {
  draining_ = true;
  shards_.stop();
  links_.handle_events(now_());
}

// ---- Calls of clients

void SharedPersonal::predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) {
  ByUser parts;
  for (size_t i = 0; i < pairs.size(); ++i) {
    Part& part = parts[pairs[i].user];
    part.call.method = SharedMethod::kPredict;
    part.call.items.push_back(pairs[i].item);
    part.places.push_back(i);
  }
  PersonalAnswer answer;
  answer.predictions.resize(pairs.size());
  start(call, std::move(parts), pairs.size(), std::move(answer), std::move(done));
}

void SharedPersonal::top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) {
  ByUser parts;
  for (size_t i = 0; i < query.users.size(); ++i) {
    Part& part = parts[query.users[i]];
    part.call = {.method = SharedMethod::kTopK, .k = query.k, .items = query.items};
    part.places.push_back(i);
  }
  PersonalAnswer answer;
  answer.lists.resize(query.users.size());
  start(call, std::move(parts), query.users.size(), std::move(answer), std::move(done));
}

void SharedPersonal::observe(const PersonalCall& call, std::vector<ItemObservation> observations, PersonalDone done) {
  ByUser parts;
  for (const ItemObservation& observation : observations) {
    Part& part = parts[observation.user];
    part.call.method = SharedMethod::kObserve;
    part.call.observations.push_back(observation);
  }
  start(call, std::move(parts), observations.size(), {}, std::move(done));
}

void SharedPersonal::forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) {
  ByUser parts;
  for (const uint64_t user : users) parts[user].call.method = SharedMethod::kForget;
  start(call, std::move(parts), users.size(), {}, std::move(done));
}

void SharedPersonal::start(const PersonalCall& call, ByUser parts, size_t requests, PersonalAnswer answer,
                           PersonalDone done) {
  if (models_.model(call.model) == nullptr) {
    return done(call_error(models_.has(call.model)
                               ? Status::unavailable(fmt::format("personal model '{}' is not ready", call.model))
                               : Status::not_found(fmt::format("unknown personal model '{}'", call.model))));
  }
  if (call.inputs != nullptr) {
    return done(call_error(Status::invalid_argument(
        fmt::format("the features of '{}' are in a table: name items without inputs", call.model))));
  }
  if (draining_) return done(call_error(Refusal::kDraining, call.model, "", call.arrival, now_(), {}));
  if (call.tenant != nullptr) {
    if (std::optional<CallError> over = call.tenant->enter(static_cast<uint32_t>(requests), now_())) {
      return done(*std::move(over));
    }
  }
  auto joined = std::make_shared<Joined>(Joined{.model = std::string(call.model),
                                                .arrival = call.arrival,
                                                .done = std::move(done),
                                                .lease = {},
                                                .left = parts.size(),
                                                .answer = std::move(answer),
                                                .error = {}});
  joined->lease.emplace(call.tenant, static_cast<uint32_t>(requests));
  {
    const MutexLock lock(mutex_);
    ++in_flight_;
  }
  if (parts.empty()) return finish(*joined);
  links_.post([this, joined, deadline = call.deadline, parts = std::move(parts)](TimePoint now) {
    for (const auto& [user, part] : parts) {
      ShardCall shard_call{.model = joined->model,
                           .user = user,
                           .changes = part.call.changes(),
                           .deadline = deadline,
                           .bytes = encode(part.call)};
      shards_.call(
          std::move(shard_call),
          [this, joined, part = part](const ShardResult& result) { finish_part(joined, part, result); }, now);
    }
  });
}

void SharedPersonal::finish_part(const std::shared_ptr<Joined>& joined, const Part& part, const ShardResult& result) {
  std::optional<PersonalResult> read;
  switch (result.end) {
    case ShardResult::End::kAnswered: read = decode_shared_result(result.bytes); break;
    case ShardResult::End::kFailed:
      read = call_error(Status::unavailable("a front end that keeps the user cannot write; look at its log"));
      break;
    case ShardResult::End::kFull:
      read = call_error(Refusal::kOverload, joined->model, "", joined->arrival, now_(), {});
      break;
    case ShardResult::End::kUnreachable:
      read = call_error(Status::unavailable(
          "the front ends that keep the user could not be reached in time; try again with the same ids"));
      break;
  }
  if (!read) read = call_error(Status::internal("a front end has sent an answer that cannot be read"));
  if (auto* const error = std::get_if<CallError>(&*read)) {
    if (!joined->error) joined->error = std::move(*error);
  } else {
    auto& answer = std::get<PersonalAnswer>(*read);
    joined->answer.version = std::move(answer.version);
    for (size_t i = 0; i < std::min(answer.predictions.size(), part.places.size()); ++i) {
      joined->answer.predictions[part.places[i]] = answer.predictions[i];
    }
    for (const size_t place : part.places) {
      if (!answer.lists.empty()) joined->answer.lists[place] = answer.lists.front();
    }
  }
  if (--joined->left == 0) finish(*joined);
}

void SharedPersonal::finish(Joined& joined) {
  joined.lease.reset();
  if (joined.error) {
    joined.done(*std::move(joined.error));
  } else {
    joined.done(std::move(joined.answer));
  }
  const MutexLock lock(mutex_);
  if (--in_flight_ == 0) answered_.notify_all();
}

// ---- The users that are kept here

std::vector<std::string> SharedPersonal::models() const {
  std::vector<std::string> names;
  for (const auto& [name, replicas] : served_) names.push_back(name);
  return names;
}

size_t SharedPersonal::replicas(const std::string& model) const {
  const auto found = std::ranges::find(served_, model, &std::pair<std::string, size_t>::first);
  FOLIOT_CHECK(found != served_.end());
  return found->second;
}

Result<std::vector<UserDigest>> SharedPersonal::digests(const std::string& model, size_t& place, size_t count) {
  PersonalModel::UserPass& pass = handed_over_[model];
  if (place == 0) pass = {};
  ++place;  // the pass knows where it is
  return models_.model(model)->digests(pass, count);
}

Result<UserDigest> SharedPersonal::digest(const std::string& model, uint64_t user) {
  return models_.model(model)->digest(user);
}

Result<WireBytes> SharedPersonal::copy(const std::string& model, uint64_t user) {
  return models_.model(model)->copy(user);
}

WireBytes SharedPersonal::facts(const std::string& model) {
  const std::optional<PersonalModels::Statistics> statistics = models_.statistics(model);
  if (!statistics) return {};
  return encode(RetrainPeers::Facts{.version = statistics->learned.version,
                                    .quality = statistics->learned.retrain,
                                    .observations = statistics->counters->observations,
                                    .of_version = statistics->learned.observations});
}

Result<ShardStore::Exported> SharedPersonal::exported(const std::string& model, uint64_t pass,
                                                      const std::function<bool(uint64_t user)>& is_wanted) {
  auto& [number, users] = exports_[model];
  if (pass == 0) {
    pass = number = ++last_export_;
    users = {};
  }
  if (pass != number) return Status::unavailable("another front end has begun to gather the users of this one");
  FOLIOT_ASSIGN_OR_RETURN(const PersonalModel::Copies some,
                          models_.model(model)->copies(users, kUsersAtOnce, is_wanted));
  return Exported{.pass = some.is_over ? 0 : number, .copies = encode(some.copies)};
}

void SharedPersonal::merge(const std::string& model, std::span<const std::byte> copy,
                           std::function<void(HomeOutcome)> done) {
  PersonalModel* const kept = models_.model(model);
  const std::optional<UserRecord> record = decode_record(copy);
  if (!record || !record->generation) return done(HomeOutcome::kFailed);
  const auto written = [this, kept, user = record->user, generation = *record->generation, done](const Status& status) {
    links_.post([=](TimePoint /*now*/) {
      if (!status.ok()) return done(HomeOutcome::kFailed);
      const Result<UserDigest> digest = kept->digest(user);
      if (!digest.ok()) return done(HomeOutcome::kFailed);
      done(digest->generation > generation ? HomeOutcome::kBehind : HomeOutcome::kDone);
    });
  };
  if (const Status status = kept->merge(copy, written); !status.ok()) done(HomeOutcome::kFailed);
}

void SharedPersonal::drop(const std::string& model, const UserDigest& digest, std::function<void()> done) {
  models_.model(model)->drop(digest, [this, done = std::move(done)](const Status& /*written*/) {
    links_.post([done](TimePoint /*now*/) { done(); });
  });
}

void SharedPersonal::execute(const ShardCall& call, std::function<void(Executed)> done) {
  std::optional<SharedCall> shared = decode_shared_call(call.user, call.bytes);
  if (!shared || shared->changes() != call.changes) {
    return done({.reply = encode(call_error(Status::internal("a front end has sent a call that cannot be read")))});
  }
  carry_out(call, *shared, std::move(done));
}

void SharedPersonal::carry_out(const ShardCall& call, const SharedCall& shared, std::function<void(Executed)> done) {
  std::vector<uint64_t> ids;
  for (const ItemObservation& observation : shared.observations) ids.push_back(observation.id);
  const auto on_done = [this, model = call.model, user = call.user, changes = call.changes, ids,
                        done = std::move(done)](const PersonalResult& result) {
    links_.post([=, this](TimePoint /*now*/) {
      Executed executed{.reply = encode(result)};
      const bool has_changed = changes && std::holds_alternative<PersonalAnswer>(result);
      if (has_changed) {
        Result<WireBytes> copy = models_.model(model)->copy(user, ids);
        if (!copy.ok()) return done({.reply = encode(call_error(copy.status()))});
        executed.copy = *std::move(copy);
      }
      done(std::move(executed));
    });
  };
  const PersonalCall here{.model = call.model, .arrival = now_(), .deadline = call.deadline};
  switch (shared.method) {
    case SharedMethod::kPredict: {
      std::vector<UserItem> pairs;
      for (const uint64_t item : shared.items) pairs.push_back({call.user, item});
      return models_.predict(here, std::move(pairs), on_done);
    }
    case SharedMethod::kTopK:
      return models_.top_k(here, {.users = {call.user}, .items = shared.items, .k = shared.k}, on_done);
    case SharedMethod::kObserve: return models_.observe(here, shared.observations, on_done);
    case SharedMethod::kForget: return models_.forget(here, {call.user}, on_done);
  }
  FOLIOT_CHECK(false);
}

}  // namespace foliot
