#include "engine/device/cpu/team.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <limits>
#include <thread>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/core_count.h"

namespace foliot {
namespace {

constexpr uint32_t kSharesBits = 16;
constexpr uint32_t kSharesMask = (1u << kSharesBits) - 1;
static_assert(Team::kThreadsMax <= kSharesMask);
// The clock is read once in so many looks.
constexpr uint32_t kLooks = 16;

// Of a member. One that stands by is woken by the leader only when it is wanted again.
constexpr uint32_t kAwake = 0, kAsleep = 1, kStandsBy = 2;

constexpr unsigned kExceptions = 0x3f, kInvalidOperation = 1;  // of MXCSR

uint32_t shares_of(uint64_t region) { return static_cast<uint32_t>(region & kSharesMask); }

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, Duration longest = Duration::seconds(3600)) {
  const timespec timeout{.tv_sec = longest.nanoseconds() / 1'000'000'000,
                         .tv_nsec = longest.nanoseconds() % 1'000'000'000};
  // Every way to return (woken, too late, interrupted) means: look again.
  ::syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

// Spins until `over()`, or the time since `start` is above `longest()`.
template <typename Over, typename Longest>
struct Spin {
  TimePoint start;
  const Over& over;
  const Longest& longest;
  bool lost_core = false;

  bool run() {
    for (TimePoint before = start; before - start < longest();) {
      for (uint32_t look = 0; look < kLooks; ++look) {
        if (over()) return true;
        _mm_pause();
      }
      const TimePoint now = monotonic_now();
      lost_core |= now - before > SpinLimit::kLostCore;
      before = now;
    }
    return false;
  }
};

// Waits until `over()`: spins for at most `longest()`, then calls `sleep()` until it is.
template <typename Over, typename Longest, typename Sleep>
void await(SpinLimit& spins, const Over& over, const Longest& longest, const Sleep& sleep) {
  if (over()) return spins.waited(Duration(), false);
  Spin<Over, Longest> spin{monotonic_now(), over, longest};
  if (!spin.run()) {
    while (!over()) sleep();
  }
  spins.waited(monotonic_now() - spin.start, spin.lost_core);
}

SharePosition& own_position() {
  thread_local constinit SharePosition position;
  return position;
}

}  // namespace

SharePosition share_position() { return own_position(); }

struct alignas(64) Team::Member {
  uint32_t share = 0;
  std::atomic<uint64_t> taken{0};  // the last region of which the share of this number was begun
  std::atomic<uint32_t> state{kAwake};
  std::atomic<bool> stops{false};
  std::atomic<pid_t> thread_id{0};
  SpinLimit spins;
  std::thread thread;
};

Team& Team::of_this_thread() {
  thread_local Team team;
  return team;
}

Team::Team() : Team([cores = CoreCount()](std::span<const pid_t> threads) { return cores.of(threads); }) {}

Team::Team(CountCores count_cores) : count_cores_(std::move(count_cores)) {
  members_[0] = std::make_unique<Member>();
  threads_[0] = ::gettid();
}

Team::~Team() {
  for (uint32_t i = 1; i < thread_count_; ++i) {
    members_[i]->stops = true;
    if (members_[i]->state.exchange(kAwake) != kAwake) futex_wake(members_[i]->state);
  }
  for (uint32_t i = 1; i < thread_count_; ++i) members_[i]->thread.join();
}

void Team::add_members(uint32_t count) {
  for (uint32_t share = thread_count_; share < count; ++share) {
    members_[share] = std::make_unique<Member>();
    Member& member = *members_[share];
    member.share = share;
    // As the thread that leads it, in all that threads inherit: cores, priority and slices.
    member.thread = std::thread([this, &member] {
      ::pthread_setname_np(::pthread_self(), "team");
      member.thread_id = ::gettid();
      member.thread_id.notify_one();
      follow(member);
    });
    member.thread_id.wait(0);
    threads_[share] = member.thread_id;
    thread_count_ = share + 1;
  }
  counted_ = false;
}

bool Team::take(uint32_t share, uint64_t region) {
  std::atomic<uint64_t>& taken = members_[share]->taken;
  uint64_t before = taken.load(std::memory_order_relaxed);
  // A later one: this region is over, and the calling thread late.
  return before < region && taken.compare_exchange_strong(before, region);
}

void Team::compute(uint32_t share, uint32_t shares) {
  own_position() = {share, shares, this};
  body_(data_);
  own_position() = {};
}

// Begins with this share and goes on with those that no thread has begun.
void Team::take_from(uint32_t first, uint64_t region) {
  const uint32_t shares = shares_of(region);
  uint32_t computed = 0;
  for (uint32_t i = 0; i < shares; ++i) {
    const uint32_t share = first + i < shares ? first + i : first + i - shares;
    if (!take(share, region)) continue;
    if (first != 0) _mm_setcsr(arithmetic_);
    compute(share, shares);
    if (first != 0 && (_mm_getcsr() & kInvalidOperation) != 0) was_invalid_.store(true, std::memory_order_relaxed);
    ++computed;
  }
  if (computed > 0 && left_.fetch_sub(computed) == computed && leader_sleeps_.load() != 0 &&
      leader_sleeps_.exchange(0) != 0) {
    futex_wake(leader_sleeps_);
  }
}

void Team::follow(Member& member) {
  uint64_t region = 0;
  while (true) {
    region = await_call(member, region);
    if (member.stops) return;
    count_cores_if_time(member);
    if (member.share >= width()) region = stand_by(member, region);
    if (member.share < shares_of(region)) take_from(member.share, region);
  }
}

// Returns a region that has a share for the member and is not `seen`, or any if it is to stop.
uint64_t Team::await_call(Member& member, uint64_t seen) {
  const auto called = [&] {
    const uint64_t region = region_.load();
    return (region != seen && member.share < shares_of(region)) || member.stops.load();
  };
  const auto longest = [&] {
    return rests_after_.load(std::memory_order_relaxed) == region_.load() ? kSpinAtRest : member.spins.longest();
  };
  await(member.spins, called, longest, [&] {
    member.state = kAsleep;
    if (!called()) futex_wait(member.state, kAsleep);
    member.state = kAwake;
  });
  return region_.load();
}

// Returns when the member is wanted again, or the region that runs has been the same for kStandBy, which it returns.
uint64_t Team::stand_by(Member& member, uint64_t region) {
  while (true) {
    member.state = kStandsBy;
    if (!member.stops) futex_wait(member.state, kStandsBy, kStandBy);
    member.state = kAwake;
    count_cores_if_time(member);
    const uint64_t before = std::exchange(region, region_.load());
    if (region == before || member.share < width() || member.stops) return region;
  }
}

void Team::count_cores_if_time(const Member& member) {
  if (member.share != 1) return;
  const TimePoint now = monotonic_now();
  if (counted_.exchange(true) && now < next_count_) return;
  next_count_ = now + kCountEvery;
  width_ = count_cores_(std::span(threads_).first(thread_count_));
}

void Team::call(uint32_t shares) {
  const uint32_t wanted = width();
  for (uint32_t share = 1; share < shares; ++share) {
    Member& member = *members_[share];
    const uint32_t state = member.state.load();
    if (state == kAwake || (state == kStandsBy && share >= wanted)) continue;
    if (member.state.exchange(kAwake) != kAwake) futex_wake(member.state);
  }
}

void Team::await_shares() {
  await(
      leader_spins_, [this] { return left_.load() == 0; }, [this] { return leader_spins_.longest(); },
      [this] {
        leader_sleeps_ = 1;
        if (left_.load() != 0) futex_wait(leader_sleeps_, 1);
        leader_sleeps_ = 0;
      });
}

void Team::run(uint32_t shares, Body body, void* data) {
  FOLIOT_CHECK(shares > 0 && shares <= kThreadsMax);
  const SharePosition outside = own_position();
  if (shares == 1 || outside.team != nullptr) {
    own_position() = {.team = outside.team};
    body(data);
    own_position() = outside;
    return;
  }
  if (thread_count_.load(std::memory_order_relaxed) < shares) add_members(shares);
  body_ = body;
  data_ = data;
  arithmetic_ = _mm_getcsr() & ~kExceptions;
  left_.store(shares, std::memory_order_relaxed);
  const uint64_t region = (((region_.load(std::memory_order_relaxed) >> kSharesBits) + 1) << kSharesBits) | shares;
  region_ = region;
  call(shares);
  take_from(0, region);
  await_shares();
  if (was_invalid_.load(std::memory_order_relaxed)) {
    was_invalid_.store(false, std::memory_order_relaxed);
    _mm_setcsr(_mm_getcsr() | kInvalidOperation);
  }
}

void Team::meet() {
  const uint32_t meeting = meetings_.load();
  if (met_.fetch_add(1) + 1 == own_position().shares) {
    met_ = 0;
    ++meetings_;
    futex_wake(meetings_);
    return;
  }
  const auto over = [&] { return meetings_.load() != meeting; };
  const auto longest = [] { return SpinLimit::kSpinBesideOthers; };
  if (Spin<decltype(over), decltype(longest)>{monotonic_now(), over, longest}.run()) return;
  while (!over()) futex_wait(meetings_, meeting);
}

void Team::rest() { rests_after_.store(region_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

void Team::pin(std::span<const uint32_t> cores) {
  FOLIOT_CHECK(!cores.empty() && cores.size() <= kThreadsMax);
  add_members(static_cast<uint32_t>(cores.size()));
  for (size_t i = 0; i < cores.size(); ++i) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[i], &own);
    // It can only fail where a control group changed meanwhile.
    (void)::sched_setaffinity(threads_[i], sizeof(own), &own);
  }
  counted_ = false;
}

void form_team(std::span<const uint32_t> cores) { Team::of_this_thread().pin(cores); }

}  // namespace foliot
