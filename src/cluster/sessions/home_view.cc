#include "cluster/sessions/home_view.h"

#include <algorithm>
#include <array>
#include <span>

#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

uint64_t hash_of(uint64_t first, uint64_t second) {
  const std::array<uint64_t, 2> pair = {first, second};
  return hash64(std::as_bytes(std::span(pair)));
}

}  // namespace

HomeView::HomeView(const Homes& homes) : epoch_(homes.epoch) {
  for (const HomeOffer& home : homes.homes) names_.push_back(home.name);
  std::ranges::sort(names_);
  for (const std::string& name : names_) hashes_.push_back(hash64(std::as_bytes(std::span(name))));
}

std::vector<std::string> HomeView::homes_of(uint64_t user, size_t replicas) const {
  FOLIOT_CHECK(replicas >= 1 && replicas <= kReplicasMax);
  struct Best {
    uint64_t hash = 0;
    size_t place = 0;
  };
  std::array<Best, kReplicasMax> best;
  size_t found = 0;
  for (size_t place = 0; place < names_.size(); ++place) {
    Best next{hash_of(hashes_[place], user), place};
    for (size_t i = 0; i < found; ++i) {
      if (next.hash > best[i].hash) std::swap(next, best[i]);
    }
    if (found < replicas) best[found++] = next;
  }
  std::vector<std::string> homes;
  for (size_t i = 0; i < found; ++i) homes.push_back(names_[best[i].place]);
  return homes;
}

}  // namespace foliot
