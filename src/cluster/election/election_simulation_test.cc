// Elections in virtual time: controllers whose processes are killed, started again and stand still, whose clocks drift,
// and which are cut off from the store and from workers; a store that is slow, or answers nothing though it did what it
// was asked; and workers, which obey the highest epoch that they have seen.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/election/election.h"
#include "cluster/election/memory_leader_store.h"
#include "foundation/base/random.h"
#include "foundation/base/test_time.h"
#include "virtual/world/node_clock.h"

namespace foliot {
namespace {

constexpr uint32_t kControllers = 3;
constexpr uint32_t kWorkers = 3;
constexpr Duration kStep = Duration::milliseconds(5);
// How long a store's call is waited for.
constexpr Duration kCallTimeout = Duration::milliseconds(500);
constexpr Duration kLeadsWithin = Duration::seconds(3);

class ElectionSimulation {
 public:
  explicit ElectionSimulation(uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < kControllers; ++i) {
      nodes_.push_back({.address = "controller-" + std::to_string(i),
                        .clock = NodeClock(ms(static_cast<int64_t>(random_.below(1'000'000))),
                                           static_cast<int64_t>(random_.below(20'001)) - 10'000)});
      start(nodes_.back());
    }
  }

  // Empty: all that must hold did.
  std::string run() {
    for (int round = 0; round < 3 && failure_.empty(); ++round) {
      const TimePoint quiet = now_ + ms(4000 + static_cast<int64_t>(random_.below(4000)));
      while (now_ < quiet) {
        if (random_.uniform() < 0.02) break_something();
        step();
      }
      heal();
      const TimePoint end = now_ + kLeadsWithin;
      while (now_ < end) step();
      require_one_leader();
    }
    return failure_;
  }

 private:
  struct Node {
    std::string address;
    NodeClock clock;
    std::unique_ptr<Election> election{};  // null: it does not run
    uint64_t instance = 0;
    bool frozen = false;
    bool store_cut = false;
    std::vector<bool> cut = std::vector<bool>(kWorkers);  // from workers
    std::optional<Election::Call> call{};                 // under way
    TimePoint answered{};                                 // then
    bool lost = false;                                    // its answer is
    std::optional<Result<StoredLeader>> read{};           // what the store has answered
    std::optional<Result<std::optional<std::string>>> swapped{};
  };
  struct Worker {
    uint64_t epoch = 0;     // the highest that it has seen
    uint64_t instance = 0;  // whom it obeys
  };
  // A swap that the store makes later than its caller waits.
  struct Late {
    TimePoint at;
    Election::Call call;
  };

  void start(Node& node) {
    node.instance = ++instances_;
    node.election = std::make_unique<Election>(ElectionOptions{.address = node.address, .instance = node.instance});
    node.call.reset();
    node.frozen = false;
  }
  Node& some_node() { return nodes_[random_.below(nodes_.size())]; }

  void break_something() {
    Node& node = some_node();
    switch (random_.below(8)) {
      case 0: node.election.reset(); break;
      case 1:
        if (node.election == nullptr) start(node);
        break;
      case 2: node.frozen = !node.frozen; break;
      case 3: node.store_cut = !node.store_cut; break;
      case 4: {
        const size_t worker = random_.below(kWorkers);
        node.cut[worker] = !node.cut[worker];
        break;
      }
      case 5: node.cut.assign(kWorkers, random_.below(2) == 0); break;
      case 6: store_down_ = !store_down_; break;
      case 7: store_delay_ = ms(static_cast<int64_t>(random_.below(700))); break;
    }
  }
  void heal() {
    store_down_ = false;
    store_delay_ = Duration();
    for (Node& node : nodes_) {
      node.frozen = node.store_cut = false;
      node.cut.assign(kWorkers, false);
      if (node.election == nullptr) start(node);
    }
  }

  void step() {
    now_ += kStep;
    std::erase_if(late_, [&](const Late& late) {
      if (late.at > now_) return false;
      static_cast<void>(store_.swap(late.call.version, late.call.record));
      return true;
    });
    for (Node& node : nodes_) {
      if (node.election != nullptr && !node.frozen) advance(node);
    }
  }

  void advance(Node& node) {
    const TimePoint local = node.clock.local(now_);
    greet_workers(node, local);
    if (node.call && now_ >= node.answered) finish(node, local);
    if (!node.call && (node.call = node.election->next(local))) begin(node);
    give_orders(node);
  }
  // The store does it at some instant until the answer comes, or later, if the answer is lost.
  void begin(Node& node) {
    const Duration taken = ms(1 + static_cast<int64_t>(random_.below(5))) + store_delay_;
    node.lost = node.store_cut || store_down_ || taken > kCallTimeout || random_.uniform() < 0.01;
    node.answered = now_ + (node.lost ? kCallTimeout : taken);
    if (node.call->kind == Election::Kind::kRead) {
      node.read = store_.read();
    } else if (!node.lost) {
      node.swapped = store_.swap(node.call->version, node.call->record);
    } else if (!node.store_cut && random_.below(2) == 0) {
      late_.push_back({now_ + ms(static_cast<int64_t>(random_.below(2000))), *node.call});
    }
  }
  void finish(Node& node, TimePoint local) {
    const Election::Call call = *std::exchange(node.call, std::nullopt);
    const Status gone = Status::unavailable("no answer");
    if (call.kind == Election::Kind::kRead) {
      node.election->on_read(node.lost ? Result<StoredLeader>(gone) : *node.read, local);
    } else {
      node.election->on_swap(node.lost ? Result<std::optional<std::string>>(gone) : *node.swapped, local);
    }
  }
  void greet_workers(Node& node, TimePoint local) {
    size_t linked = 0;
    for (size_t i = 0; i < kWorkers; ++i) {
      if (node.cut[i]) continue;
      ++linked;
      node.election->on_epoch_seen(workers_[i].epoch, local);
    }
    node.election->on_workers(linked, local);
  }
  void give_orders(const Node& node) {
    const std::optional<uint64_t> epoch = node.election->epoch();
    if (!epoch) return;
    const auto [owner, first] = owners_.emplace(*epoch, node.instance);
    if (!first && owner->second != node.instance) fail("two processes lead with epoch " + std::to_string(*epoch));
    for (size_t i = 0; i < kWorkers; ++i) {
      Worker& worker = workers_[i];
      if (node.cut[i] || *epoch < worker.epoch) continue;
      worker = {*epoch, node.instance};
    }
  }
  void require_one_leader() {
    const Node* leader = nullptr;
    for (const Node& node : nodes_) {
      if (!node.election->epoch()) continue;
      if (leader != nullptr) fail("two lead though nothing is wrong");
      leader = &node;
    }
    if (leader == nullptr) return fail("no controller leads though nothing is wrong");
    for (const Worker& worker : workers_) {
      if (worker.instance != leader->instance) fail("a worker obeys another than the one that leads");
    }
  }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what + " at " + std::to_string((now_ - TimePoint()).nanoseconds() / 1'000'000);
  }

  Random random_;
  TimePoint now_ = at(1000);
  MemoryLeaderStore store_;
  bool store_down_ = false;
  Duration store_delay_;
  std::vector<Late> late_;
  std::vector<Node> nodes_;
  std::vector<Worker> workers_ = std::vector<Worker>(kWorkers);
  uint64_t instances_ = 0;
  std::map<uint64_t, uint64_t> owners_;  // of epochs
  std::string failure_;
};

// FOLIOT_ELECTION_SEEDS: how many.
TEST(ElectionSimulationTest, OneLeadsWhateverGoesWrong) {
  const char* const given = std::getenv("FOLIOT_ELECTION_SEEDS");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t seeds = given == nullptr ? 1000 : std::strtoull(given, nullptr, 10);
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    EXPECT_EQ(ElectionSimulation(seed).run(), "") << "seed " << seed;
  }
}

// Nothing goes wrong after the first choice: whom they chose leads on.
TEST(ElectionSimulationTest, NobodyTakesOverFromALeaderThatIsWell) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    MemoryLeaderStore store;
    std::vector<std::unique_ptr<Election>> elections;
    for (uint64_t i = 0; i < kControllers; ++i) {
      elections.push_back(std::make_unique<Election>(ElectionOptions{.address = std::to_string(i), .instance = i + 1}));
      elections.back()->on_workers(1, at(0));
    }
    for (TimePoint now = at(0); now < at(60'000); now += kStep) {
      for (const auto& election : elections) {
        if (random.uniform() < 0.5) continue;  // its thread has not run yet
        const auto call = election->next(now);
        if (!call) continue;
        call->kind == Election::Kind::kRead ? election->on_read(store.read(), now)
                                            : election->on_swap(store.swap(call->version, call->record), now);
      }
    }
    EXPECT_EQ(store.read()->record->epoch, 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace foliot
