// UserShards: one front end's part in keeping the users of personal models on several front ends, as a state machine.
//
// Each user has a home, and with two replicas a second one (home_view.h). The home answers all calls for its users;
// other front ends pass calls on. A change, such as an observation, is answered once both homes have it on disk. While
// the first home cannot be reached, the second one answers reads; changes wait for the controller to name other homes.
//
// Safety rests on four rules:
//   1. Front ends answer each other only if they have the same Homes, by epoch. So both homes of a change agree on it.
//   2. A copy of a user is a set of observations with ids, and the number of times that the user was forgotten. Copies
//      merge in any order, any number of times: of the highest generation, the union.
//   3. With each new Homes every front end hands over all that it keeps to the homes of each user: first digests, then
//      the copies of which they differ. It drops a copy only where it is no home itself and all homes have confirmed
//      theirs. Handing over begins, digests are compared and changes are made only when all changes of earlier epochs
//      are on disk, drops among them.
//   4. Until all others have handed over, a home asks all of them for a user before it answers the first call for it.
//      If one does not answer, reads are answered from what is there (but for the first Options::ask_max of these
//      Homes, which others may receive later), and changes wait.
//
// Bounded: Options::calls_max calls of this front end's clients, beyond which they are refused (kFull); of other front
// ends as many each, since theirs are bounded alike. A handing over has one batch under way.
//
// Threading: belongs to the loop's thread, which also calls what it passes to the store.
#ifndef FOLIOT_CLUSTER_SESSIONS_USER_SHARDS_H_
#define FOLIOT_CLUSTER_SESSIONS_USER_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sessions/home_view.h"
#include "cluster/transport/message.h"
#include "cluster/transport/wire.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// A client's call for one user of a personal model.
struct ShardCall {
  std::string model;
  uint64_t user = 0;
  bool changes = false;  // it is no read
  TimePoint deadline = TimePoint::infinite_future();
  WireBytes bytes{};  // for ShardStore::execute()
};

// The users that this front end keeps. Functions that are passed to it are called once, by the loop's thread, or before
// the call returns.
class ShardStore {
 public:
  struct Executed {
    WireBytes reply{};
    WireBytes copy{};  // what the other home must have before the reply counts; empty: nothing
  };

  virtual ~ShardStore() = default;
  // In one order, which stays.
  virtual std::vector<std::string> models() const = 0;
  // 1 or 2.
  virtual size_t replicas(const std::string& model) const = 0;
  // Of `count` users at most, from `place` on, which moves on; empty: there are no more. Of what is on disk, as the
  // next two. One pass at a time; 0 begins it. Errors, as the next two: a user cannot be read.
  virtual Result<std::vector<UserDigest>> digests(const std::string& model, size_t& place, size_t count) = 0;
  // Of an unknown user: zeros.
  virtual Result<UserDigest> digest(const std::string& model, uint64_t user) = 0;
  // Empty: the user is unknown.
  virtual Result<WireBytes> copy(const std::string& model, uint64_t user) = 0;
  // kDone: it is on disk; kBehind: a copy of a later generation is; kFailed.
  virtual void merge(const std::string& model, std::span<const std::byte> copy,
                     std::function<void(HomeOutcome)> done) = 0;
  // Without effect if the user has changed meanwhile.
  virtual void drop(const std::string& model, const UserDigest& digest, std::function<void()> done) = 0;
  virtual void execute(const ShardCall& call, std::function<void(Executed)> done) = 0;

  // For the front end that retrains the models of all.
  virtual WireBytes facts(const std::string& /*model*/) { return {}; }
  struct Exported {
    uint64_t pass = 0;  // to go on with; 0: that was all
    WireBytes copies{};
  };
  // Returns copies of the users that `is_wanted` says. `pass`: 0 begins one. Errors: another pass has begun; a user
  // cannot be read.
  virtual Result<Exported> exported(const std::string& /*model*/, uint64_t /*pass*/,
                                    const std::function<bool(uint64_t user)>& /*is_wanted*/) {
    return Exported();
  }
};

// Links to the other front ends.
class ShardPeers {
 public:
  virtual ~ShardPeers() = default;
  virtual bool is_connected(const std::string& home) const = 0;
  // REQUIRES: it is connected.
  virtual void send(const std::string& home, const HomeCall& call) = 0;
  // Without effect if the channel has closed.
  virtual void reply(uint64_t channel, const HomeReply& reply) = 0;
};

// How a call ended.
struct ShardResult {
  enum class End : uint8_t {
    kAnswered,    // `bytes` is the reply of ShardStore::execute()
    kFailed,      // `bytes` is the reason why a home could not carry it out
    kFull,        // Options::calls_max
    kUnreachable  // its time is over, and no home could carry it out
  };
  End end = End::kAnswered;
  WireBytes bytes{};
};

class UserShards {
 public:
  struct Options {
    std::string name;           // of this front end
    size_t calls_max = 16'384;  // of clients
    // Longer than a change of Homes takes to reach all.
    Duration call_max = Duration::seconds(10);          // of a call without a deadline
    Duration retry_after = Duration::milliseconds(10);  // after an attempt that found no home
    Duration ask_max = Duration::seconds(1);            // for a reply of another front end to what no client waits for
    size_t batch = 64;                                  // users that are handed over at a time
    size_t pulled_max = 100'000;                        // users that are remembered by rule 4
  };
  using Done = std::function<void(ShardResult)>;

  // Both outlive it.
  UserShards(Options options, ShardStore& store, ShardPeers& peers)
      : options_(std::move(options)), store_(store), peers_(peers) {}

  // The controller names other front ends. One that is lost changes nothing.
  void set_homes(const Homes& homes, TimePoint now);
  // Exactly one result, now or later.
  void call(ShardCall call, Done done, TimePoint now);

  void on_call(uint64_t channel, const HomeCall& call, TimePoint now);
  void on_reply(const HomeReply& reply, TimePoint now);
  void on_connected(const std::string& home, TimePoint now);
  void on_lost(const std::string& home, TimePoint now);
  // Returns when it is to be called again at the latest.
  TimePoint tick(TimePoint now);
  // The loop has ended: all calls end as unreachable, and those that follow.
  void stop();

  // The first of all front ends retrains models for all, once users are where they are to be: there it returns the
  // names of the others, elsewhere nullopt.
  std::optional<std::vector<std::string>> led() const;
  // A call of kind kFacts or kExport. `done` is called once, nullopt if no front end of these Homes has answered.
  using OnAnswer = std::function<void(std::optional<ShardStore::Exported>)>;
  void ask_for_training(const std::string& home, HomeCallKind kind, const std::string& model, uint64_t pass,
                        OnAnswer done, TimePoint now);

  // All others have handed over what they keep, and this one has.
  bool is_settled() const { return handed_over_ && announced_to_.size() == others() && has_all(); }
  size_t calls() const { return calls_.size(); }

 private:
  // null: none came.
  using OnReply = std::function<void(const HomeReply*)>;
  struct Served {
    HomeOutcome outcome = HomeOutcome::kDone;
    WireBytes bytes{};
  };
  using OnServed = std::function<void(Served)>;
  using CallPtr = std::shared_ptr<const ShardCall>;
  struct Asked {
    std::string home;
    TimePoint until;
    OnReply on_reply;
  };
  struct Call {
    CallPtr call;
    Done done;
    TimePoint retry_at = TimePoint::infinite_future();  // infinite: an attempt is under way
  };
  // Users whose copies other homes must confirm.
  struct Batch {
    std::string model;
    std::map<uint64_t, UserDigest> digests{};
    std::map<uint64_t, size_t> unconfirmed{};  // homes
  };
  using BatchPtr = std::shared_ptr<Batch>;
  struct Pull;

  size_t others() const;
  bool has_all() const { return done_from_.size() == others(); }
  std::vector<std::string> homes_of(const std::string& model, uint64_t user) const;
  bool is_home(const std::string& model, uint64_t user) const;
  void ask(const std::string& home, HomeCall call, Duration timeout, OnReply on_reply);
  void reply(uint64_t channel, uint64_t id, Served served);

  void attempt(uint64_t id);
  void retry_later(Call& call) { call.retry_at = now_ + options_.retry_after; }
  void on_served(uint64_t id, Served served);
  void finish(uint64_t id, ShardResult result);
  // As a home of the user.
  void serve(const CallPtr& call, const OnServed& done);
  void execute(const CallPtr& call, const OnServed& done);
  void replicate(const CallPtr& call, const std::string& home, ShardStore::Executed executed, const OnServed& done);
  bool knows(const ShardCall& call) const;
  void pull(const CallPtr& call, const std::function<void(bool complete)>& done);
  void end_pull(const std::shared_ptr<Pull>& pull, bool ok);
  void merge(const std::string& model, std::span<const std::byte> copy, std::function<void(HomeOutcome)> done);
  void on_digests(uint64_t channel, const HomeCall& call);
  void on_pull(uint64_t channel, const HomeCall& call);
  void on_export(uint64_t channel, const HomeCall& call);

  // Changes of earlier epochs are on disk.
  bool is_quiet() const;
  void end_change(uint64_t epoch);
  void hand_over_at(TimePoint when);
  void begin_pass();
  void advance_pass();
  void hand_over(const BatchPtr& batch);
  void on_wanted(const BatchPtr& batch, const std::string& home, const std::vector<UserDigest>& sent,
                 const HomeReply* reply);
  void send_copy(const BatchPtr& batch, const std::string& home, uint64_t user);
  void confirm(Batch& batch, uint64_t user);
  void fail_pass();
  void announce();

  const Options options_;
  ShardStore& store_;
  ShardPeers& peers_;
  TimePoint now_;  // of the last event
  bool is_stopped_ = false;
  HomeView view_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Asked> asked_;
  std::map<uint64_t, Call> calls_;
  std::map<uint64_t, size_t> changing_;  // changes under way, by the epoch in which they began

  // Of this epoch:
  TimePoint named_at_;
  std::set<std::string> done_from_;                    // that have handed over
  std::set<std::pair<std::string, uint64_t>> pulled_;  // model and user
  TimePoint pass_at_ =
      TimePoint::infinite_future();  // the handing over begins then; infinite: it is under way, or over
  uint64_t pass_ = 0;                // its number; 0: none is under way
  uint64_t last_pass_ = 0;
  size_t pass_model_ = 0;
  size_t pass_place_ = 0;
  size_t pass_waits_ = 0;  // for replies
  bool handed_over_ = false;
  std::set<std::string> announced_to_;   // that this one has handed over
  std::set<std::string> announcing_to_;  // likewise; no reply yet
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_USER_SHARDS_H_
