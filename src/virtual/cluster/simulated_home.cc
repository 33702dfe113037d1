#include "virtual/cluster/simulated_home.h"

#include <cstring>
#include <span>
#include <utility>

namespace foliot {
namespace {

constexpr Duration kWrite = Duration::microseconds(500);

WireBytes bytes_of(const std::vector<uint64_t>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

std::vector<uint64_t> numbers_of(std::span<const std::byte> bytes) {
  std::vector<uint64_t> numbers(bytes.size() / sizeof(uint64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(uint64_t));
  return numbers;
}

// The user, the generation and the ids.
WireBytes encode_user(uint64_t user, uint64_t generation, const std::set<uint64_t>& ids) {
  std::vector<uint64_t> numbers = {user, generation};
  numbers.insert(numbers.end(), ids.begin(), ids.end());
  return bytes_of(numbers);
}

}  // namespace

SimulatedHome::SimulatedHome(VirtualLoop& loop, VirtualNetwork& network, HostId host, const std::string& name,
                             HomeDisk& disk, uint64_t seed)
    : loop_(loop),
      disk_(disk),
      random_(seed),
      peers_(name, [](Severity, const std::string&) {}),
      shards_({.name = name, .batch = 4}, *this, peers_),
      links_(network, host, NodeClock(Duration::milliseconds(static_cast<int64_t>(seed % 1000)), 0),
             {.role = Role::kClient}, *this) {
  peers_.start(shards_, links_, name + ":" + std::to_string(kPort));
  links_.listen(kPort);
}

void SimulatedHome::set_homes(const Homes& homes) {
  links_.post([this, homes] {
    peers_.set_homes(homes, links_.now());
    links_.wake();
  });
}

void SimulatedHome::call(HomeRequest request, uint64_t user, uint64_t id, Duration timeout,
                         std::function<void(bool, std::set<uint64_t>)> done) {
  ShardCall call{.model = kModel,
                 .user = user,
                 .changes = request != HomeRequest::kRead,
                 .deadline = links_.now() + timeout,
                 .bytes = bytes_of({static_cast<uint64_t>(request), user, id})};
  const auto on_end = [done = std::move(done)](const ShardResult& result) {
    const std::vector<uint64_t> ids = numbers_of(result.bytes);
    done(result.end == ShardResult::End::kAnswered, {ids.begin(), ids.end()});
  };
  links_.post([this, call = std::move(call), on_end] {
    shards_.call(call, on_end, links_.now());
    links_.wake();
  });
}

Result<std::unique_ptr<Session>> SimulatedHome::on_open(Connection& connection, Role /*peer*/, TimePoint now) {
  return peers_.on_open(connection, now);
}

TimePoint SimulatedHome::on_turn_end(TimePoint now) { return peers_.on_turn_end(now); }

Result<std::vector<UserDigest>> SimulatedHome::digests(const std::string& model, size_t& place, size_t count) {
  std::vector<UserDigest> found;
  for (auto user = disk_.users.lower_bound(place); user != disk_.users.end() && found.size() < count; ++user) {
    found.push_back(digest(model, user->first).value());
    place = user->first + 1;
  }
  return found;
}

Result<UserDigest> SimulatedHome::digest(const std::string& /*model*/, uint64_t user) {
  UserDigest digest{.user = user};
  const auto found = disk_.users.find(user);
  if (found == disk_.users.end()) return digest;
  digest.generation = found->second.generation;
  digest.observations = found->second.ids.size();
  for (const uint64_t id : found->second.ids) digest.hash += id * id * 0x9E3779B97F4A7C15;
  return digest;
}

Result<WireBytes> SimulatedHome::copy(const std::string& /*model*/, uint64_t user) {
  const auto found = disk_.users.find(user);
  return found == disk_.users.end() ? WireBytes() : encode_user(user, found->second.generation, found->second.ids);
}

void SimulatedHome::write(uint64_t user, std::function<void()> change, std::function<void()> done) {
  ++writing_[user];
  const TimePoint at = std::max(last_write_, loop_.now() + kWrite * random_.exponential());
  last_write_ = at;
  auto* const both = new std::pair(std::move(change), std::move(done));
  loop_.at(at, [this, user, both] {
    const std::unique_ptr<std::pair<std::function<void()>, std::function<void()>>> owned(both);
    if (!links_.running() && random_.below(2) == 0) return;  // it ended before the disk had it
    owned->first();
    --writing_[user];
    links_.post([this, written = std::move(owned->second)] {
      written();
      links_.wake();
    });
  });
}

void SimulatedHome::merge(const std::string& /*model*/, std::span<const std::byte> copy,
                          std::function<void(HomeOutcome)> done) {
  const std::vector<uint64_t> numbers = numbers_of(copy);
  auto outcome = std::make_shared<HomeOutcome>(HomeOutcome::kDone);
  const auto change = [this, numbers, outcome] {
    HomeDisk::User& kept = disk_.users[numbers[0]];
    if (kept.generation > numbers[1]) *outcome = HomeOutcome::kBehind;
    if (kept.generation < numbers[1]) kept = {.generation = numbers[1]};
    if (kept.generation == numbers[1]) kept.ids.insert(numbers.begin() + 2, numbers.end());
  };
  write(numbers[0], change, [done = std::move(done), outcome] { done(*outcome); });
}

void SimulatedHome::drop(const std::string& model, const UserDigest& dropped, std::function<void()> done) {
  if (writing_[dropped.user] > 0) return done();
  const auto change = [this, model, dropped] {
    if (digest(model, dropped.user).value() == dropped) disk_.users.erase(dropped.user);
  };
  write(dropped.user, change, std::move(done));
}

void SimulatedHome::execute(const ShardCall& call, std::function<void(Executed)> done) {
  const std::vector<uint64_t> numbers = numbers_of(call.bytes);
  const uint64_t user = numbers[1];
  const auto request = static_cast<HomeRequest>(numbers[0]);
  if (request == HomeRequest::kRead) {
    const auto found = disk_.users.find(user);
    const std::set<uint64_t> ids = found == disk_.users.end() ? std::set<uint64_t>() : found->second.ids;
    return done({.reply = bytes_of({ids.begin(), ids.end()})});
  }
  const auto change = [this, request, user, id = numbers[2]] {
    HomeDisk::User& kept = disk_.users[user];
    if (request == HomeRequest::kForget) kept = {.generation = kept.generation + 1};
    if (request == HomeRequest::kObserve) kept.ids.insert(id);
  };
  const auto written = [this, request, user, id = numbers[2], done = std::move(done)] {
    const HomeDisk::User& kept = disk_.users[user];
    const bool observed = request == HomeRequest::kObserve && kept.ids.contains(id);
    done({.copy = encode_user(user, kept.generation, observed ? std::set{id} : std::set<uint64_t>())});
  };
  write(user, change, written);
}

}  // namespace foliot
