#include "load/client/load_source.h"

#include <utility>

#include "foundation/base/random.h"

namespace foliot {
namespace {

class WorkloadSource : public LoadSource {
 public:
  explicit WorkloadSource(WorkloadArrivals arrivals) : arrivals_(std::move(arrivals)) {}

  std::optional<Arrival> next() override { return arrivals_.next(); }
  std::optional<Arrival> follow(const Arrival& over, Duration now) override { return arrivals_.follow(over, now); }

 private:
  WorkloadArrivals arrivals_;
};

class Users : public LoadSource {
 public:
  Users(uint32_t count, Popularity popularity, Duration slo, uint64_t seed)
      : to_come_(count), popularity_(std::move(popularity)), slo_(slo), random_(seed) {}

  std::optional<Arrival> next() override {
    if (to_come_ == 0) return std::nullopt;
    --to_come_;
    return ask(Duration());
  }
  std::optional<Arrival> follow(const Arrival& /*over*/, Duration now) override { return ask(now); }

 private:
  Arrival ask(Duration at) { return {.at = at, .model = popularity_.draw(random_), .slo = slo_}; }

  uint32_t to_come_;
  const Popularity popularity_;
  const Duration slo_;
  Random random_;
};

}  // namespace

std::unique_ptr<LoadSource> make_workload_source(WorkloadArrivals arrivals) {
  return std::make_unique<WorkloadSource>(std::move(arrivals));
}

std::unique_ptr<LoadSource> make_users(uint32_t count, Popularity popularity, Duration slo, uint64_t seed) {
  return std::make_unique<Users>(count, std::move(popularity), slo, seed);
}

}  // namespace foliot
