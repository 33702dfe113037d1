// A flood of requests that can wait does not take what a stream of urgent ones needs,
// however long it lasts and whichever models it asks for.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <ostream>
#include <string>

#include "control/policies/foliot/foliot_policy.h"
#include "foundation/base/random.h"
#include "load/workload/profile_table.h"
#include "virtual/world/virtual_cluster.h"

namespace foliot {
namespace {

constexpr Duration kHour = Duration::seconds(3600);
constexpr uint64_t kUrgent = 1;  // the payload of the urgent stream's requests

struct Flood {
  const char* name;
  double rate;    // requests/s; one ResNet-50 (V100) serves 1,021 in full batches
  Duration slo;   // max(): best effort
  bool tenant;    // another one's than the urgent stream's
  int64_t lasts;  // seconds: beyond what fills the queue
};
void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

// 150 requests/s of 50 ms, and a flood.
class FloodedCluster {
 public:
  FloodedCluster(const Flood& flood, bool same_model)
      : flood_(flood),
        end_(TimePoint() + Duration::seconds(flood.lasts)),
        cluster_(
            loop_, {.pages_per_device = 14, .controller = {}},
            [](const Cluster& cluster) { return foliot_policy::make_foliot_policy(cluster); },
            [this](const Completion& completion) { on_completion(completion); }) {
    for (uint32_t id = 0; id < 2; ++id) {
      cluster_.add_model(make_model_info(*ProfileTable::v100().find("resnet50"), ModelId(id),
                                         "model_" + std::to_string(id), uint64_t{16} << 20));
    }
    arrive(kUrgent, 150, Duration::milliseconds(50), ModelId(0), TenantId(flood.tenant ? 1 : 0));
    if (flood.rate > 0) {
      arrive(2, flood.rate, flood.slo, ModelId(same_model ? 0 : 1), TenantId(flood.tenant ? 2 : 0));
    }
    loop_.run_until(end_ + Duration::seconds(1));
    std::printf("%s: %.3f %% of %lu urgent requests; %lu of %lu others\n", flood.name, 100 * attainment(), urgent_,
                others_served_, others_);
  }

  double attainment() const { return static_cast<double>(urgent_served_) / static_cast<double>(urgent_); }
  uint64_t others_served() const { return others_served_; }

 private:
  void arrive(uint64_t stream, double rate, Duration slo, ModelId model, TenantId tenant) {
    if (loop_.now() >= end_) return;
    cluster_.submit({.id = RequestId(++requests_ * 0x9e3779b97f4a7c15),
                     .model = model,
                     .payload = PayloadHandle(stream),
                     .arrival = loop_.now(),
                     .deadline = slo == Duration::max() ? TimePoint::infinite_future() : loop_.now() + slo,
                     .tenant = tenant});
    loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / rate),
             [this, stream, rate, slo, model, tenant] { arrive(stream, rate, slo, model, tenant); });
  }

  // Models are loaded in the first seconds.
  void on_completion(const Completion& completion) {
    const bool urgent = completion.payload.value() == kUrgent;
    if (urgent && completion.arrival < TimePoint() + Duration::seconds(2)) return;
    ++(urgent ? urgent_ : others_);
    if (completion.served()) ++(urgent ? urgent_served_ : others_served_);
  }

  const Flood flood_;
  const TimePoint end_;
  Random random_{1};
  uint64_t requests_ = 0;
  uint64_t urgent_ = 0, urgent_served_ = 0, others_ = 0, others_served_ = 0;
  VirtualLoop loop_;
  VirtualCluster cluster_;
};

class FloodsTest : public ::testing::TestWithParam<Flood> {};

TEST_P(FloodsTest, LeaveUrgentRequestsWhatTheyNeed) {
  const Flood none{"none", 0, Duration::max(), false, 30};
  const double alone = FloodedCluster(none, true).attainment();
  for (const bool same_model : {true, false}) {
    const FloodedCluster run(GetParam(), same_model);
    EXPECT_GE(run.attainment(), alone - 0.001) << (same_model ? "of the same model" : "of another model");
    EXPECT_GT(run.others_served(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FloodsTest,
                         ::testing::Values(Flood{"best_effort_1000", 1000, Duration::max(), false, 400},
                                           Flood{"best_effort_8000", 8000, Duration::max(), false, 30},
                                           Flood{"deadlines_of_an_hour", 12'000, kHour, false, 20},
                                           Flood{"another_tenant", 8000, Duration::milliseconds(100), true, 20},
                                           Flood{"another_tenants_best_effort", 8000, Duration::max(), true, 20}),
                         [](const auto& flood) { return flood.param.name; });

}  // namespace
}  // namespace foliot
