// SimulatedHome: a front end that keeps users (cluster/sessions/user_shards.h), as a process in virtual time, over a
// disk that outlives it.
#ifndef FOLIOT_VIRTUAL_CLUSTER_SIMULATED_HOME_H_
#define FOLIOT_VIRTUAL_CLUSTER_SIMULATED_HOME_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/sessions/home_links.h"
#include "cluster/sessions/user_shards.h"
#include "foundation/base/random.h"
#include "virtual/cluster/virtual_network.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

// The users on one disk: ids of observations, and how often the user was forgotten.
struct HomeDisk {
  struct User {
    uint64_t generation = 0;
    std::set<uint64_t> ids{};
  };
  std::map<uint64_t, User> users{};
};

// What a client's call asks for.
enum class HomeRequest : uint64_t { kRead, kObserve, kForget };

class SimulatedHome : public LinkHandler, private ShardStore {
 public:
  static constexpr const char* kModel = "films";
  static constexpr uint16_t kPort = 1;

  // A process that has just started. All references outlive it.
  SimulatedHome(VirtualLoop& loop, VirtualNetwork& network, HostId host, const std::string& name, HomeDisk& disk,
                uint64_t seed);

  VirtualLinkLoop& links() { return links_; }
  UserShards& shards() { return shards_; }
  HomeOffer offer() const { return peers_.offer(""); }
  void set_homes(const Homes& homes);
  // `done`: whether it was answered, and the ids that a read has found; never if the process ends.
  void call(HomeRequest request, uint64_t user, uint64_t id, Duration timeout,
            std::function<void(bool answered, std::set<uint64_t> ids)> done);

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& /*peer*/, const Status& /*reason*/) override {}
  TimePoint on_turn_end(TimePoint now) override;

 private:
  std::vector<std::string> models() const override { return {kModel}; }
  size_t replicas(const std::string& /*model*/) const override { return 2; }
  Result<std::vector<UserDigest>> digests(const std::string& model, size_t& place, size_t count) override;
  Result<UserDigest> digest(const std::string& model, uint64_t user) override;
  Result<WireBytes> copy(const std::string& model, uint64_t user) override;
  void merge(const std::string& model, std::span<const std::byte> copy, std::function<void(HomeOutcome)> done) override;
  void drop(const std::string& model, const UserDigest& digest, std::function<void()> done) override;
  void execute(const ShardCall& call, std::function<void(Executed)> done) override;

  // In the order of calls, as a log.
  void write(uint64_t user, std::function<void()> change, std::function<void()> done);

  VirtualLoop& loop_;
  HomeDisk& disk_;
  Random random_;
  HomeLinks peers_;
  UserShards shards_;
  VirtualLinkLoop links_;
  std::map<uint64_t, int> writing_;  // changes of a user that are not on disk yet
  TimePoint last_write_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_SIMULATED_HOME_H_
