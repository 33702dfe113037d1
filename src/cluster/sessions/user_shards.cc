#include "cluster/sessions/user_shards.h"

#include <algorithm>
#include <span>

#include "foundation/base/check.h"

namespace foliot {

// Of a user, from all other front ends.
struct UserShards::Pull {
  CallPtr call;
  uint64_t epoch = 0;
  size_t left = 0;
  bool is_complete = true;
  std::function<void(bool)> done;
};

size_t UserShards::others() const {
  const auto& names = view_.names();
  return names.size() - static_cast<size_t>(std::ranges::count(names, options_.name));
}

std::vector<std::string> UserShards::homes_of(const std::string& model, uint64_t user) const {
  return view_.homes_of(user, store_.replicas(model));
}

bool UserShards::is_home(const std::string& model, uint64_t user) const {
  const std::vector<std::string> homes = homes_of(model, user);
  return std::ranges::find(homes, options_.name) != homes.end();
}

void UserShards::set_homes(const Homes& homes, TimePoint now) {
  now_ = now;
  if (homes.epoch == view_.epoch()) return;
  view_ = HomeView(homes);
  named_at_ = now;
  done_from_.clear();
  pulled_.clear();
  announced_to_.clear();
  announcing_to_.clear();
  handed_over_ = false;
  hand_over_at(now);
  for (auto& [id, call] : calls_) {
    if (!call.retry_at.is_infinite()) call.retry_at = now;
  }
}

// ---- Other front ends

void UserShards::ask(const std::string& home, HomeCall call, Duration timeout, OnReply on_reply) {
  if (!peers_.is_connected(home)) return on_reply(nullptr);
  call.id = ++last_id_;
  call.epoch = view_.epoch();
  call.timeout = timeout;
  asked_.emplace(call.id, Asked{home, now_ + timeout, std::move(on_reply)});
  peers_.send(home, call);
}

void UserShards::on_reply(const HomeReply& reply, TimePoint now) {
  now_ = now;
  const auto found = asked_.find(reply.id);
  if (found == asked_.end()) return;
  const OnReply on_reply = std::move(found->second.on_reply);
  asked_.erase(found);
  on_reply(&reply);
}

void UserShards::on_connected(const std::string& /*home*/, TimePoint now) {
  now_ = now;
  // A change that did not reach it may be here only.
  hand_over_at(now);
}

void UserShards::on_lost(const std::string& home, TimePoint now) {
  now_ = now;
  std::vector<OnReply> lost;
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    if (asked->second.home == home) lost.push_back(std::move(asked->second.on_reply));
    asked = asked->second.home == home ? asked_.erase(asked) : std::next(asked);
  }
  for (const OnReply& on_reply : lost) on_reply(nullptr);
}

void UserShards::reply(uint64_t channel, uint64_t id, Served served) {
  peers_.reply(channel, {.id = id, .outcome = served.outcome, .users = {}, .bytes = served.bytes});
}

void UserShards::on_call(uint64_t channel, const HomeCall& call, TimePoint now) {
  now_ = now;
  const uint64_t id = call.id;
  const auto models = store_.models();
  const bool names_model = call.kind != HomeCallKind::kDone;
  const bool is_known = !names_model || std::ranges::find(models, call.model) != models.end();
  if (call.epoch != view_.epoch() || !is_known) return reply(channel, id, {HomeOutcome::kStale, {}});
  switch (call.kind) {
    case HomeCallKind::kCall:
      return serve(std::make_shared<const ShardCall>(ShardCall{.model = call.model,
                                                               .user = call.user,
                                                               .changes = call.changes,
                                                               .deadline = now + call.timeout,
                                                               .bytes = {call.bytes.begin(), call.bytes.end()}}),
                   [this, channel, id](Served served) { reply(channel, id, std::move(served)); });
    case HomeCallKind::kMerge:
      if (!is_home(call.model, call.user)) return reply(channel, id, {HomeOutcome::kStale, {}});
      return merge(call.model, call.bytes, [this, channel, id](HomeOutcome outcome) {
        reply(channel, id, {outcome, {}});
      });
    case HomeCallKind::kDigests: return on_digests(channel, call);
    case HomeCallKind::kPull: return on_pull(channel, call);
    case HomeCallKind::kDone: done_from_.insert(call.caller); return reply(channel, id, {});
    case HomeCallKind::kFacts: return reply(channel, id, {HomeOutcome::kDone, store_.facts(call.model)});
    case HomeCallKind::kExport: return on_export(channel, call);
  }
  FOLIOT_CHECK(false);
}

void UserShards::on_digests(uint64_t channel, const HomeCall& call) {
  if (!is_quiet()) return reply(channel, call.id, {HomeOutcome::kStale, {}});
  HomeReply answer{.id = call.id};
  for (const UserDigest& digest : call.digests) {
    const Result<UserDigest> own = store_.digest(call.model, digest.user);
    if (!own.ok()) return reply(channel, call.id, {HomeOutcome::kFailed, {}});
    if (*own != digest) answer.users.push_back(digest.user);
  }
  peers_.reply(channel, answer);
}

void UserShards::on_pull(uint64_t channel, const HomeCall& call) {
  if (!is_quiet()) return reply(channel, call.id, {HomeOutcome::kStale, {}});
  const Result<UserDigest> own = store_.digest(call.model, call.user);
  Result<WireBytes> copy = WireBytes();
  if (own.ok() && *own != call.digests.front()) copy = store_.copy(call.model, call.user);
  if (!own.ok() || !copy.ok()) return reply(channel, call.id, {HomeOutcome::kFailed, {}});
  reply(channel, call.id, {HomeOutcome::kDone, *std::move(copy)});
}

// ---- Retraining

void UserShards::on_export(uint64_t channel, const HomeCall& call) {
  if (!is_settled()) return reply(channel, call.id, {HomeOutcome::kStale, {}});
  const auto is_wanted = [&](uint64_t user) {
    const std::vector<std::string> homes = homes_of(call.model, user);
    return homes.front() == options_.name && std::ranges::find(homes, call.caller) == homes.end();
  };
  const Result<ShardStore::Exported> exported = store_.exported(call.model, call.user, is_wanted);
  if (!exported.ok()) return reply(channel, call.id, {HomeOutcome::kFailed, {}});
  HomeReply answer{.id = call.id, .bytes = exported->copies};
  if (exported->pass != 0) answer.users = {exported->pass};
  peers_.reply(channel, answer);
}

std::optional<std::vector<std::string>> UserShards::led() const {
  std::vector<std::string> names = view_.names();
  if (names.empty() || names.front() != options_.name || !is_settled()) return std::nullopt;
  names.erase(names.begin());
  return names;
}

void UserShards::ask_for_training(const std::string& home, HomeCallKind kind, const std::string& model, uint64_t pass,
                                  OnAnswer done, TimePoint now) {
  now_ = now;
  const auto on_reply = [done = std::move(done)](const HomeReply* reply) {
    if (reply == nullptr || reply->outcome != HomeOutcome::kDone) return done(std::nullopt);
    done(ShardStore::Exported{.pass = reply->users.empty() ? 0 : reply->users.front(),
                              .copies = {reply->bytes.begin(), reply->bytes.end()}});
  };
  ask(home, {.kind = kind, .model = model, .user = pass, .caller = options_.name}, options_.call_max, on_reply);
}

// ---- Calls of clients

void UserShards::call(ShardCall call, Done done, TimePoint now) {
  now_ = now;
  if (is_stopped_) return done({ShardResult::End::kUnreachable, {}});
  if (calls_.size() >= options_.calls_max) return done({ShardResult::End::kFull, {}});
  call.deadline = std::min(call.deadline, now + options_.call_max);
  const uint64_t id = ++last_id_;
  calls_.emplace(id, Call{.call = std::make_shared<const ShardCall>(std::move(call)), .done = std::move(done)});
  attempt(id);
}

void UserShards::attempt(uint64_t id) {
  Call& open = calls_.at(id);
  const CallPtr call = open.call;
  open.retry_at = TimePoint::infinite_future();
  for (const std::string& home : homes_of(call->model, call->user)) {
    if (home == options_.name) {
      return serve(call, [this, id](Served served) { on_served(id, std::move(served)); });
    }
    if (peers_.is_connected(home)) {
      const auto on_reply = [this, id](const HomeReply* reply) {
        if (reply == nullptr) return on_served(id, {HomeOutcome::kStale, {}});
        on_served(id, {reply->outcome, {reply->bytes.begin(), reply->bytes.end()}});
      };
      return ask(home,
                 {.kind = HomeCallKind::kCall,
                  .changes = call->changes,
                  .model = call->model,
                  .user = call->user,
                  .bytes = call->bytes},
                 call->deadline - now_, on_reply);
    }
    if (call->changes) break;
  }
  retry_later(open);
}

void UserShards::on_served(uint64_t id, Served served) {
  const auto open = calls_.find(id);
  if (open == calls_.end()) return;  // its time was over
  switch (served.outcome) {
    case HomeOutcome::kDone: return finish(id, {ShardResult::End::kAnswered, std::move(served.bytes)});
    case HomeOutcome::kFailed: return finish(id, {ShardResult::End::kFailed, std::move(served.bytes)});
    case HomeOutcome::kStale:
    case HomeOutcome::kBehind: return retry_later(open->second);
  }
}

void UserShards::finish(uint64_t id, ShardResult result) {
  const auto open = calls_.find(id);
  const Done done = std::move(open->second.done);
  calls_.erase(open);
  done(std::move(result));
}

bool UserShards::knows(const ShardCall& call) const { return has_all() || pulled_.contains({call.model, call.user}); }

void UserShards::serve(const CallPtr& call, const OnServed& done) {
  const std::vector<std::string> homes = homes_of(call->model, call->user);
  const bool may = call->changes ? homes.size() == store_.replicas(call->model) && homes.front() == options_.name
                                 : is_home(call->model, call->user);
  if (!may) return done({HomeOutcome::kStale, {}});
  if (knows(*call)) return execute(call, done);
  pull(call, [this, call, done](bool complete) {
    // Just after homes were named the others may not know it yet, or not be connected.
    const bool waits = call->changes || now_ < named_at_ + options_.ask_max;
    if (!complete && waits) return done({HomeOutcome::kStale, {}});
    execute(call, done);
  });
}

void UserShards::execute(const CallPtr& call, const OnServed& done) {
  const uint64_t epoch = view_.epoch();
  // Homes may have changed meanwhile.
  const bool may = knows(*call) && is_quiet() && homes_of(call->model, call->user).front() == options_.name;
  if (call->changes && !may) return done({HomeOutcome::kStale, {}});
  if (call->changes) ++changing_[epoch];
  store_.execute(*call, [this, epoch, call, done](ShardStore::Executed executed) {
    if (call->changes) end_change(epoch);
    if (call->changes && epoch != view_.epoch()) return done({HomeOutcome::kStale, {}});
    if (executed.copy.empty()) return done({HomeOutcome::kDone, std::move(executed.reply)});
    const std::vector<std::string> homes = homes_of(call->model, call->user);
    if (homes.size() == 1) return done({HomeOutcome::kDone, std::move(executed.reply)});
    replicate(call, homes.back(), std::move(executed), done);
  });
}

void UserShards::replicate(const CallPtr& call, const std::string& home, ShardStore::Executed executed,
                           const OnServed& done) {
  const auto on_reply = [done, reply = std::move(executed.reply)](const HomeReply* answer) {
    if (answer == nullptr) return done({HomeOutcome::kStale, {}});
    if (answer->outcome == HomeOutcome::kDone) return done({HomeOutcome::kDone, reply});
    done({answer->outcome, {answer->bytes.begin(), answer->bytes.end()}});
  };
  ask(home, {.kind = HomeCallKind::kMerge, .model = call->model, .user = call->user, .bytes = executed.copy},
      std::max(call->deadline - now_, Duration()), on_reply);
}

void UserShards::pull(const CallPtr& call, const std::function<void(bool complete)>& done) {
  auto pull = std::make_shared<Pull>(Pull{.call = call, .epoch = view_.epoch(), .left = others(), .done = done});
  // One that cannot be read is not that of any copy.
  const Result<UserDigest> read = store_.digest(call->model, call->user);
  const UserDigest own = read.ok() ? *read : UserDigest{.user = call->user};
  const std::vector<std::string> names = view_.names();
  for (const std::string& name : names) {
    if (name == options_.name) continue;
    const auto on_reply = [this, pull](const HomeReply* reply) {
      if (reply == nullptr || reply->outcome != HomeOutcome::kDone) return end_pull(pull, false);
      if (reply->bytes.empty()) return end_pull(pull, true);
      merge(pull->call->model, reply->bytes,
            [this, pull](HomeOutcome outcome) { end_pull(pull, outcome != HomeOutcome::kFailed); });
    };
    ask(name, {.kind = HomeCallKind::kPull, .model = call->model, .user = call->user, .digests = {own}},
        std::min(options_.ask_max, call->deadline - now_), on_reply);
  }
}

void UserShards::end_pull(const std::shared_ptr<Pull>& pull, bool ok) {
  pull->is_complete = pull->is_complete && ok;
  if (--pull->left > 0) return;
  const bool is_complete = pull->is_complete && pull->epoch == view_.epoch();
  if (is_complete) {
    if (pulled_.size() >= options_.pulled_max) pulled_.clear();
    pulled_.insert({pull->call->model, pull->call->user});
  }
  pull->done(is_complete);
}

// ---- Changes

void UserShards::merge(const std::string& model, std::span<const std::byte> copy,
                       std::function<void(HomeOutcome)> done) {
  const uint64_t epoch = view_.epoch();
  ++changing_[epoch];
  store_.merge(model, copy, [this, epoch, done = std::move(done)](HomeOutcome outcome) {
    end_change(epoch);
    done(outcome);
  });
}

bool UserShards::is_quiet() const {
  return changing_.empty() || (changing_.size() == 1 && changing_.begin()->first == view_.epoch());
}

void UserShards::end_change(uint64_t epoch) {
  const auto changing = changing_.find(epoch);
  if (--changing->second == 0) changing_.erase(changing);
}

// ---- Handing over

void UserShards::hand_over_at(TimePoint when) {
  pass_ = 0;
  pass_at_ = when;
}

void UserShards::begin_pass() {
  pass_ = ++last_pass_;
  pass_at_ = TimePoint::infinite_future();
  pass_model_ = pass_place_ = pass_waits_ = 0;
  advance_pass();
}

void UserShards::advance_pass() {
  const std::vector<std::string> models = store_.models();
  while (pass_ != 0 && pass_waits_ == 0) {
    if (pass_model_ == models.size()) {
      pass_ = 0;
      handed_over_ = true;
      return announce();
    }
    auto batch = std::make_shared<Batch>(Batch{.model = models[pass_model_]});
    const Result<std::vector<UserDigest>> digests = store_.digests(batch->model, pass_place_, options_.batch);
    if (!digests.ok()) return fail_pass();
    for (const UserDigest& digest : *digests) batch->digests.emplace(digest.user, digest);
    if (batch->digests.empty()) {
      ++pass_model_;
      pass_place_ = 0;
    } else {
      hand_over(batch);
    }
  }
}

void UserShards::hand_over(const BatchPtr& batch) {
  std::map<std::string, std::vector<UserDigest>> of_home;
  for (const auto& [user, digest] : batch->digests) {
    for (const std::string& home : homes_of(batch->model, user)) {
      if (home == options_.name) continue;
      of_home[home].push_back(digest);
      ++batch->unconfirmed[user];
    }
  }
  const uint64_t pass = pass_;
  pass_waits_ += of_home.size();
  for (const auto& [home, digests] : of_home) {
    const auto on_reply = [this, pass, batch, to = home, sent = digests](const HomeReply* reply) {
      if (pass == pass_) on_wanted(batch, to, sent, reply);
    };
    ask(home, {.kind = HomeCallKind::kDigests, .model = batch->model, .digests = digests}, options_.ask_max, on_reply);
    if (pass != pass_) return;  // it could not be reached
  }
}

void UserShards::on_wanted(const BatchPtr& batch, const std::string& home, const std::vector<UserDigest>& sent,
                           const HomeReply* reply) {
  if (reply == nullptr || reply->outcome != HomeOutcome::kDone) return fail_pass();
  const std::set<uint64_t> wanted(reply->users.begin(), reply->users.end());
  const uint64_t pass = pass_;
  for (const UserDigest& digest : sent) {
    if (wanted.contains(digest.user)) {
      send_copy(batch, home, digest.user);
      if (pass != pass_) return;
    } else {
      confirm(*batch, digest.user);
    }
  }
  --pass_waits_;
  advance_pass();
}

void UserShards::send_copy(const BatchPtr& batch, const std::string& home, uint64_t user) {
  const Result<WireBytes> copy = store_.copy(batch->model, user);
  if (!copy.ok()) return fail_pass();
  if (copy->empty()) return;  // it was dropped meanwhile
  ++pass_waits_;
  const uint64_t pass = pass_;
  const auto on_reply = [this, pass, batch, user](const HomeReply* reply) {
    if (pass != pass_) return;
    const bool has_it =
        reply != nullptr && (reply->outcome == HomeOutcome::kDone || reply->outcome == HomeOutcome::kBehind);
    if (!has_it) return fail_pass();
    confirm(*batch, user);
    --pass_waits_;
    advance_pass();
  };
  ask(home, {.kind = HomeCallKind::kMerge, .model = batch->model, .user = user, .bytes = *copy}, options_.ask_max,
      on_reply);
}

void UserShards::confirm(Batch& batch, uint64_t user) {
  if (--batch.unconfirmed.at(user) > 0 || is_home(batch.model, user)) return;
  const uint64_t epoch = view_.epoch();
  ++changing_[epoch];
  store_.drop(batch.model, batch.digests.at(user), [this, epoch] { end_change(epoch); });
}

// Another front end has other Homes, or cannot be reached, or cannot write; or a user cannot be read here.
void UserShards::fail_pass() { hand_over_at(now_ + options_.retry_after); }

void UserShards::announce() {
  const uint64_t epoch = view_.epoch();
  const std::vector<std::string> names = view_.names();
  for (const std::string& name : names) {
    if (name == options_.name || announced_to_.contains(name) || !announcing_to_.insert(name).second) continue;
    const auto on_reply = [this, epoch, to = name](const HomeReply* reply) {
      if (epoch != view_.epoch()) return;
      announcing_to_.erase(to);
      if (reply != nullptr && reply->outcome == HomeOutcome::kDone) announced_to_.insert(to);
    };
    ask(name, {.kind = HomeCallKind::kDone, .caller = options_.name}, options_.ask_max, on_reply);
  }
}

void UserShards::stop() {
  is_stopped_ = true;
  while (!calls_.empty()) finish(calls_.begin()->first, {ShardResult::End::kUnreachable, {}});
}

// ---- Time

TimePoint UserShards::tick(TimePoint now) {
  now_ = now;
  std::vector<OnReply> lost;
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    const bool is_over = asked->second.until <= now;
    if (is_over) lost.push_back(std::move(asked->second.on_reply));
    asked = is_over ? asked_.erase(asked) : std::next(asked);
  }
  for (const OnReply& on_reply : lost) on_reply(nullptr);
  std::vector<uint64_t> late;
  std::vector<uint64_t> due;
  for (const auto& [id, call] : calls_) {
    if (call.call->deadline <= now) {
      late.push_back(id);
    } else if (call.retry_at <= now) {
      due.push_back(id);
    }
  }
  for (const uint64_t id : late) finish(id, {ShardResult::End::kUnreachable, {}});
  for (const uint64_t id : due) {
    if (calls_.contains(id)) attempt(id);
  }
  if (pass_at_ <= now && is_quiet() && view_.epoch() != 0) begin_pass();
  if (handed_over_) announce();
  const bool waits = !asked_.empty() || !calls_.empty() || !pass_at_.is_infinite() || announced_to_.size() < others();
  return waits ? now + options_.retry_after : TimePoint::infinite_future();
}

}  // namespace foliot
