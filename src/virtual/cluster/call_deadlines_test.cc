// Calls of the production front end (InferenceService) over virtual links, whose controller or workers stand still:
// each ends once, at the latest a moment after its deadline, and what comes later is discarded.
//
// FOLIOT_DEADLINE_SEEDS is the number of seeds that are run, FOLIOT_DEADLINE_SEED the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "answer/inference/served_names.h"
#include "answer/model_calls/inference_service.h"
#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/random.h"
#include "load/workload/profile_table.h"
#include "virtual/cluster/cluster_nodes.h"
#include "virtual/world/computing_device.h"

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = uint64_t{16} << 20;
constexpr const char* kModel = "resnet50";
// What a call may take longer than its time: InferenceService's grace. Nothing else takes time here.
constexpr Duration kLateMax = Duration::milliseconds(1);

// A front end that is awake all the time, and its clients.
class CallingFrontend : private AnswerSink {
 public:
  explicit CallingFrontend(ClusterWorld& world)
      : world_(world),
        link_(catalog_, kRowsMax, {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}}),
        links_(world.network, world.network.add_host("calling"), NodeClock(), {.role = Role::kClient}, link_) {
    link_.start(service_, links_);
    service_.use_timer([this](TimePoint due) { look_at(due); });
    EXPECT_TRUE(links_.keep("controller:8100").ok());
  }

  bool is_ready() const {
    const Catalog::EntryPtr entry = catalog_.find(kModel);
    return entry != nullptr && entry->state == ModelState::kReady;
  }
  void call(Duration time) {
    links_.post([this, time] { start(time); });
  }
  void check_at_rest() {
    EXPECT_TRUE(open_.empty());
    EXPECT_EQ(service_.rows_in_flight(), 0u);
  }
  uint64_t ended(const std::string& how) const {
    const auto found = ended_.find(how);
    return found == ended_.end() ? 0 : found->second;
  }
  uint64_t discarded() const {
    const std::string text = metrics_.text();
    const std::string name = "foliot_discarded_requests_total{outcome=\"";
    uint64_t rows = 0;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      rows += std::stoull(text.substr(text.find("} ", at) + 2));
    }
    return rows;
  }

 private:
  static constexpr uint32_t kRowsMax = 256;

  void start(Duration time) {
    const Catalog::EntryPtr entry = catalog_.find(kModel);
    if (entry == nullptr || entry->info == nullptr) return;
    const TensorSpec& input = entry->info->inputs.front();
    Shape shape = input.shape;
    if (entry->info->batching) shape.insert(shape.begin(), 1);
    const std::vector<std::byte> zeros(byte_size(input.type, input.shape));
    const TimePoint now = world_.loop.now();
    const Inference::Started started = service_.start({.name = kModel,
                                                       .arrival = now,
                                                       .deadline = now + time,
                                                       .inputs = {{input.name, to_string(input.type), shape, zeros}}},
                                                      {nullptr, mailbox_, *this});
    if (const auto* error = std::get_if<CallError>(&started)) {
      ++ended_[std::string(error->reason)];
    } else {
      EXPECT_TRUE(open_.emplace(std::get<CallId>(started), now + time).second);
    }
  }
  void on_answer(CallId call, std::unique_ptr<Answer> answer) override {
    const auto open = open_.find(call);
    ASSERT_NE(open, open_.end()) << "a call has two ends";
    answer->settle();
    EXPECT_LE(world_.loop.now(), open->second + kLateMax);
    ++ended_[answer->served() ? "served" : std::string(answer->error().reason)];
    open_.erase(open);
  }
  // In place of when it would look otherwise.
  void look_at(TimePoint when) {
    looks_at_ = when;
    if (when.is_infinite()) return;
    world_.loop.at(when, [this, when] {
      if (when == looks_at_) service_.expire(when);
    });
  }

  ClusterWorld& world_;
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  Mailbox mailbox_{2 * kRowsMax, [this] { world_.loop.at(world_.loop.now(), [this] { mailbox_.deliver(); }); }};
  FrontendLink link_;
  InferenceService service_{{.rows_max = kRowsMax, .bytes_max = 1 << 20}, names_, link_, statistics_, metrics_,
                            [this] { return world_.loop.now(); }};
  VirtualLinkLoop links_;
  TimePoint looks_at_;
  std::map<CallId, TimePoint> open_;
  std::map<std::string, uint64_t> ended_;
};

// A controller, two workers, and the front end. What stands still does so for up to two seconds.
class StandingStill {
 public:
  explicit StandingStill(uint64_t seed) : random_(seed) {
    ControllerOptions options;
    options.health = FailureDetectorOptions{};
    controller_ = std::make_unique<SimulatedController>(
        world_, "controller", NodeClock(), options,
        [](const Cluster& c) { return foliot_policy::make_foliot_policy(c); }, Duration::milliseconds(2000));
    SimulatedWorkerOptions worker{.page_count = 64, .controller = "controller:8100"};
    worker.models[kModel] = *make_model_info(*ProfileTable::v100().find(kModel), ModelId(0), kModel, kPageBytes);
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<SimulatedWorker>(world_, "worker-" + std::to_string(i), NodeClock(), worker,
                                                           random_.next()));
      workers_.back()->set_model(kModel, 1);
    }
    frontend_ = std::make_unique<CallingFrontend>(world_);
  }

  void run() {
    controller_->start();
    for (const auto& worker : workers_) worker->start();
    run_for(Duration::milliseconds(2000));
    ASSERT_TRUE(frontend_->is_ready());
    for (int round = 0; round < 12; ++round) {
      SimulatedNode& node = round % 3 == 0 ? static_cast<SimulatedNode&>(*controller_) : *workers_[random_.below(2)];
      ask_for(Duration::milliseconds(300));
      node.freeze();
      ask_for(Duration::milliseconds(static_cast<int64_t>(random_.below(2000))));
      node.resume();
    }
    run_for(Duration::milliseconds(15'000));
    EXPECT_TRUE(checker_.ok()) << checker_.failure();
    frontend_->check_at_rest();
  }
  CallingFrontend& frontend() { return *frontend_; }

 private:
  void run_for(Duration time) { loop_.run_until(loop_.now() + time); }
  void ask_for(Duration time) {
    const TimePoint end = loop_.now() + time;
    while (loop_.now() < end) {
      frontend_->call(Duration::milliseconds(static_cast<int64_t>(50 + random_.below(650))));
      run_for(Duration::milliseconds(static_cast<int64_t>(1 + random_.below(30))));
    }
  }

  Random random_;
  VirtualLoop loop_;
  ClusterChecker checker_{loop_};
  VirtualNetwork network_{loop_, {}, random_.next(), &checker_};
  EventHash hash_;
  ClusterWorld world_{loop_, network_, checker_, hash_};
  std::unique_ptr<SimulatedController> controller_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::unique_ptr<CallingFrontend> frontend_;
};

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

TEST(CallDeadlinesTest, EachCallEndsByItsDeadlineWhateverStandsStill) {
  uint64_t served = 0, expired = 0, discarded = 0;
  const uint64_t first = from_environment("FOLIOT_DEADLINE_SEED", 1);
  const uint64_t count = from_environment("FOLIOT_DEADLINE_SEEDS", 10);
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    StandingStill cluster(seed);
    cluster.run();
    served += cluster.frontend().ended("served");
    expired += cluster.frontend().ended("expired");
    discarded += cluster.frontend().discarded();
  }
  EXPECT_GT(served, 100 * count);
  EXPECT_GT(expired, 10 * count);
  EXPECT_GT(discarded, 10 * count);
}

}  // namespace
}  // namespace foliot
