// Users of personal models on several front ends, under faults: links that are reset or silent, front ends that stand
// still, end and come back, one that never does, and controllers that lose them. Whatever happens, an observation that
// was acknowledged is with both homes of its user at the end, and one that was forgotten with no front end.
//
// FOLIOT_HOME_SEEDS is the number of seeds that are run, FOLIOT_HOME_SEED the first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sessions/home_registry.h"
#include "foundation/base/random.h"
#include "foundation/base/test_time.h"
#include "virtual/cluster/simulated_home.h"

namespace foliot {
namespace {

constexpr uint64_t kUsers = 12;

// What goes wrong: nothing; the controller loses front ends, so that users move; everything.
enum class Faults { kNone, kMoves, kAll };

class MovedUsers {
 public:
  MovedUsers(uint64_t seed, Faults faults) : random_(seed), faults_(faults) {
    const size_t count = 3 + random_.below(2);
    for (size_t i = 0; i < count; ++i) {
      auto place = std::make_unique<Place>();
      place->name = fmt::format("home{}", i);
      place->host = network_.add_host(place->name);
      places_.push_back(std::move(place));
      loop_.at(instant(ms(static_cast<int64_t>(random_.below(300)))), [this, i] { start(i); });
    }
    for (uint64_t user = 0; user < kUsers; ++user) next_request(user, ms(1100));
  }

  void run() {
    const TimePoint calm = instant(ms(5000));
    if (faults_ != Faults::kNone) next_fault(ms(1200), calm);
    loop_.run_until(calm);
    heal();
    loop_.run_until(loop_.now() + ms(4000));
    accepts_ = false;
    loop_.run_until(loop_.now() + ms(3000));
    check();
  }
  uint64_t observed() const { return observed_; }
  uint64_t forgotten() const { return forgotten_; }
  uint64_t unanswered() const { return unanswered_; }  // attempts
  uint64_t checked_reads() const { return checked_reads_; }
  uint64_t reads_while_one_is_gone() const { return reads_while_one_is_gone_; }
  uint64_t changes_after_a_loss() const { return changes_after_a_loss_; }

 private:
  struct Place {
    std::string name;
    HostId host = 0;
    HomeDisk disk;
    std::vector<std::unique_ptr<SimulatedHome>> lives;  // the last one is this one
    bool is_up = false;
    bool is_lost = false;  // for good
    uint64_t session = 0;  // of the controller; 0: it has none
    TimePoint named_at;    // the last list that the controller sent arrives then
    SimulatedHome& home() { return *lives.back(); }
  };
  // What a user's one client knows.
  struct User {
    std::set<uint64_t> acknowledged;  // and not forgotten since
    std::set<uint64_t> forgotten;
    bool is_uncertain = false;  // a forget was not acknowledged, and may yet happen
  };

  TimePoint instant(Duration when) const { return TimePoint() + when; }
  void after(Duration wait, std::function<void()> event) {
    events_.push_back(std::move(event));
    loop_.at(loop_.now() + wait, [this, index = events_.size() - 1] { std::exchange(events_[index], nullptr)(); });
  }
  Duration some(int64_t milliseconds_max) {
    return Duration::microseconds(
        static_cast<int64_t>(1 + random_.below(static_cast<uint64_t>(milliseconds_max) * 1000)));
  }

  // ---- Front ends and their controller

  void start(size_t index) {
    Place& place = *places_[index];
    if (place.is_up || place.is_lost) return;
    place.is_up = true;
    place.lives.push_back(
        std::make_unique<SimulatedHome>(loop_, network_, place.host, place.name, place.disk, random_.next()));
    after(some(50), [this, index] { join(index, true); });
  }
  // A front end that was restarted takes the place of its earlier life.
  void join(size_t index, bool is_restarted) {
    Place& place = *places_[index];
    if (!place.is_up || (place.session != 0 && !is_restarted)) return;
    place.session = ++last_session_;
    ASSERT_TRUE(registry_.join(place.session, place.home().offer(), loop_.now()).ok());
    name();
    after(HomeRegistry::kFirstAfter, [this] { name(); });
  }
  void leave(size_t index) {
    registry_.leave(std::exchange(places_[index]->session, 0));
    name();
  }
  void name() {
    const std::optional<Homes> homes = registry_.take(loop_.now());
    if (!homes) return;
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = *places_[i];
      if (place.session == 0) continue;
      place.named_at = std::max(place.named_at, loop_.now() + some(faults_ == Faults::kAll ? 20 : 3));
      ++lists_;
      ++lists_under_way_;
      after(place.named_at - loop_.now(), [this, i, session = place.session, life = place.lives.size(),
                                           homes = *homes] {
        const bool is_there = places_[i]->session == session && places_[i]->is_up && places_[i]->lives.size() == life;
        if (is_there) places_[i]->home().set_homes(homes);
        --lists_under_way_;
      });
    }
  }
  void stop(size_t index) {
    Place& place = *places_[index];
    if (!place.is_up) return;
    place.is_up = false;
    place.home().links().kill(false);
    after(some(100), [this, index, session = place.session] {
      if (places_[index]->session == session && session != 0) leave(index);
    });
  }

  // ---- Faults

  void next_fault(Duration wait, TimePoint calm) {
    if (loop_.now() + wait >= calm) return;
    after(wait, [this, calm] {
      cause(faults_ == Faults::kAll ? random_.below(6) : kControllerLoses);
      next_fault(faults_ == Faults::kAll ? some(400) : ms(100) + some(300), calm);
    });
  }
  static constexpr uint64_t kControllerLoses = 5;
  void cause(uint64_t fault) {
    const size_t index = random_.below(places_.size());
    Place& place = *places_[index];
    switch (fault) {
      case 0: network_.reset_some_link(); break;
      case 1: {
        const HostId from = place.host;
        const HostId to = places_[random_.below(places_.size())]->host;
        if (from == to) break;
        network_.block(from, to);
        after(some(300), [this, from, to] { network_.unblock(from, to); });
        break;
      }
      case 2: {
        if (!place.is_up) break;
        SimulatedHome* const home = &place.home();
        home->links().freeze();
        after(some(300), [home] { home->links().resume(); });
        break;
      }
      case 3: {
        stop(index);
        after(ms(120) + some(1000), [this, index] { start(index); });
        break;
      }
      case 4: {
        if (!place.is_up || has_lost_ || random_.below(4) > 0) break;
        has_lost_ = place.is_lost = true;
        stop(index);
        break;
      }
      case kControllerLoses: {
        if (!place.is_up || place.session == 0) break;
        leave(index);
        after(some(faults_ == Faults::kAll ? 300 : 90), [this, index] { join(index, false); });
        break;
      }
      default: break;
    }
  }
  void heal() {
    for (size_t i = 0; i < places_.size(); ++i) {
      after(ms(1500), [this, i] { start(i); });
    }
  }
  bool is_one_gone() const {
    return std::ranges::any_of(places_, [](const auto& place) { return !place->is_up; });
  }

  // ---- Clients: one for each user, which asks any front end, one request after the other

  void next_request(uint64_t user, Duration wait) {
    after(wait, [this, user] {
      if (!accepts_) return;
      const uint64_t drawn = random_.below(100);
      const HomeRequest request = drawn < 60   ? HomeRequest::kObserve
                                  : drawn < 95 ? HomeRequest::kRead
                                               : HomeRequest::kForget;
      send(user, request, ++last_id_, 3);
    });
  }
  void send(uint64_t user, HomeRequest request, uint64_t id, int attempts) {
    std::vector<size_t> up;
    for (size_t i = 0; i < places_.size(); ++i) {
      // One that the controller has lost answers reads from what it knew then.
      if (places_[i]->is_up && (faults_ == Faults::kAll || places_[i]->session != 0)) up.push_back(i);
    }
    if (up.empty() || attempts == 0) return give_up(user, request);
    Place& place = *places_[up[random_.below(up.size())]];
    const bool one_is_gone = is_one_gone();
    // Reads find all that was acknowledged, if all front ends are there and know the same list meanwhile.
    const bool is_checked = request == HomeRequest::kRead && faults_ != Faults::kAll && lists_under_way_ == 0;
    const uint64_t lists = lists_;
    auto answered = std::make_shared<bool>(false);
    place.home().call(request, user, id, ms(600), [=, this](bool ok, const std::set<uint64_t>& ids) {
      if (std::exchange(*answered, true)) return;
      if (!ok) {
        ++unanswered_;
        return send(user, request, id, attempts - 1);
      }
      if (is_checked && lists == lists_) check_read(user, ids);
      note(user, request, id, attempts == 3, one_is_gone);
    });
    after(ms(1000), [=, this] {
      if (std::exchange(*answered, true)) return;
      ++unanswered_;
      send(user, request, id, attempts - 1);  // the front end has ended, or stands still
    });
  }
  void give_up(uint64_t user, HomeRequest request) {
    if (request == HomeRequest::kForget) users_[user].is_uncertain = true;
    next_request(user, some(40));
  }
  void note(uint64_t user, HomeRequest request, uint64_t id, bool is_first_attempt, bool one_is_gone) {
    User& known = users_[user];
    switch (request) {
      case HomeRequest::kRead:
        if (one_is_gone) ++reads_while_one_is_gone_;
        break;
      case HomeRequest::kObserve:
        ++observed_;
        if (has_lost_) ++changes_after_a_loss_;
        // An earlier attempt may still be on its way, and come after a forget.
        if (is_first_attempt) {
          known.acknowledged.insert(id);
        } else {
          repeated_[user].insert(id);
        }
        break;
      case HomeRequest::kForget:
        ++forgotten_;
        if (!is_first_attempt) known.is_uncertain = true;
        known.forgotten.merge(known.acknowledged);
        known.acknowledged.clear();
        repeated_[user].clear();
        break;
    }
    next_request(user, some(40));
  }

  void check_read(uint64_t user, const std::set<uint64_t>& ids) {
    ++checked_reads_;
    for (const uint64_t id : users_[user].acknowledged) {
      EXPECT_TRUE(ids.contains(id)) << "a read of user " << user << " does not find observation " << id;
    }
  }

  // ---- At the end

  void check() {
    for (const auto& place : places_) {
      if (place->is_lost) continue;
      ASSERT_TRUE(place->is_up);
      EXPECT_TRUE(place->home().shards().is_settled()) << place->name;
      EXPECT_EQ(place->home().shards().calls(), 0u) << place->name;
    }
    Homes homes{.epoch = 1, .homes = {}};
    for (const auto& place : places_) {
      if (!place->is_lost) homes.homes.push_back({place->name, "here:1"});
    }
    const HomeView view(homes);
    for (uint64_t user = 0; user < kUsers; ++user) check_user(user, view.homes_of(user, 2));
  }
  void check_user(uint64_t user, const std::vector<std::string>& homes) {
    const User& known = users_[user];
    std::vector<HomeDisk::User> copies;
    for (const auto& place : places_) {
      if (place->is_lost) continue;
      const bool is_home = std::ranges::find(homes, place->name) != homes.end();
      const auto kept = place->disk.users.find(user);
      if (!is_home) {
        EXPECT_TRUE(kept == place->disk.users.end()) << place->name << " keeps user " << user << " and is no home";
        continue;
      }
      const std::set<uint64_t> ids = kept == place->disk.users.end() ? std::set<uint64_t>() : kept->second.ids;
      copies.push_back(kept == place->disk.users.end() ? HomeDisk::User() : kept->second);
      if (known.is_uncertain) continue;
      std::set<uint64_t> expected = known.acknowledged;
      expected.insert(repeated_[user].begin(), repeated_[user].end());
      for (const uint64_t id : expected) {
        EXPECT_TRUE(ids.contains(id)) << "observation " << id << " of user " << user << " is not at " << place->name;
      }
      for (const uint64_t id : known.forgotten) {
        EXPECT_FALSE(ids.contains(id)) << "forgotten observation " << id << " of user " << user << " is at "
                                       << place->name;
      }
    }
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].ids, copies[1].ids) << "user " << user;
    EXPECT_EQ(copies[0].generation, copies[1].generation) << "user " << user;
  }

  Random random_;
  const Faults faults_;
  VirtualLoop loop_;
  VirtualNetwork network_{loop_, {}, random_.next()};
  HomeRegistry registry_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<std::function<void()>> events_;
  std::map<uint64_t, User> users_;
  std::map<uint64_t, std::set<uint64_t>> repeated_;  // acknowledged after more than one attempt
  uint64_t last_session_ = 0;
  uint64_t last_id_ = 0;
  bool accepts_ = true;
  bool has_lost_ = false;
  uint64_t observed_ = 0;
  uint64_t unanswered_ = 0;
  uint64_t forgotten_ = 0;
  uint64_t lists_ = 0;
  uint64_t lists_under_way_ = 0;
  uint64_t checked_reads_ = 0;
  uint64_t reads_while_one_is_gone_ = 0;
  uint64_t changes_after_a_loss_ = 0;
};

uint64_t homes_from_environment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

TEST(MovedUsersTest, WithoutFaultsAllAreAnswered) {
  MovedUsers users(1, Faults::kNone);
  users.run();
  EXPECT_GT(users.observed(), 500u);
  EXPECT_GT(users.forgotten(), 20u);
}

TEST(MovedUsersTest, ReadsFindWhatWasAcknowledgedWhileUsersMove) {
  const uint64_t first = homes_from_environment("FOLIOT_HOME_SEED", 1);
  const uint64_t seeds = homes_from_environment("FOLIOT_HOME_SEEDS", 100);
  uint64_t checked = 0;
  uint64_t unanswered = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_HOME_SEED={} FOLIOT_HOME_SEEDS=1", seed));
    MovedUsers users(seed, Faults::kMoves);
    users.run();
    checked += users.checked_reads();
    unanswered += users.unanswered();
    if (HasFailure()) return;
  }
  EXPECT_GT(checked, 200 * seeds);
  EXPECT_EQ(unanswered, 0u) << "front ends and links are well: only the lists change";
}

TEST(MovedUsersTest, NothingThatWasAcknowledgedIsLostAndNothingForgottenComesBack) {
  const uint64_t first = homes_from_environment("FOLIOT_HOME_SEED", 1);
  const uint64_t seeds = homes_from_environment("FOLIOT_HOME_SEEDS", 100);
  uint64_t observed = 0;
  uint64_t reads = 0;
  uint64_t changes = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_HOME_SEED={} FOLIOT_HOME_SEEDS=1", seed));
    MovedUsers users(seed, Faults::kAll);
    users.run();
    observed += users.observed();
    reads += users.reads_while_one_is_gone();
    changes += users.changes_after_a_loss();
    if (HasFailure()) return;
  }
  if (seeds < 50) return;
  EXPECT_GT(observed, 300 * seeds);
  EXPECT_GT(reads, 10 * seeds) << "reads are served while users move";
  EXPECT_GT(changes, 10 * seeds) << "changes go on without a front end";
}

}  // namespace
}  // namespace foliot
