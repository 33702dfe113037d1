// Team: a thread of EXEC and the threads that compute with it. What they compute at a time is a region, cut into
// shares; each share is computed once, by the thread that comes first.
//
// The thread that forms the team leads it and takes the first share. Each member begins with its own, so that it finds
// in its cache what it wrote before, and then takes those that no thread has begun. So a member without a core, since
// other processes compute there, keeps no thread waiting: the leader computes its share. Only a share that was begun is
// waited for. Results do not depend on which thread computes a share.
//
// Shares may wait for each other (oneDNN's barriers), all of a region or none: a thread takes another share only when
// its own is over, so all are begun by then.
//
// Where there are fewer cores than threads, or the quota of processor time is smaller, the members that are too many
// stand by. They look every kStandBy whether the same region still runs, and then take their shares: others may wait
// for them.
//
// Threads that wait spin (spin_limit.h), then sleep until they are woken: EXEC makes no other system call. Nothing is
// allocated once the team has as many members as were asked for.
//
// Rejected: OpenMP's own runtime (GCC's), whose barrier waits for each thread, for milliseconds if one is not running;
// kernels for fewer threads where cores are short, which costs memory and changes results.
//
// Threading: a team and all its functions belong to the thread that leads it, but for meet().
#ifndef FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_
#define FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/device/cpu/spin_limit.h"
#include "foundation/platform/core_set.h"

namespace foliot {

class Team;

// What the calling thread computes.
struct SharePosition {
  uint32_t share = 0;
  uint32_t shares = 1;
  Team* team = nullptr;  // nullptr: it is in no region
};
SharePosition share_position();

// How many cores these threads may keep busy together, at least 1 (foundation/platform/core_count.h).
using CountCores = std::function<uint32_t(std::span<const pid_t> threads)>;

class Team {
 public:
  using Body = void (*)(void*);

  static constexpr uint32_t kThreadsMax = kCoresMax;
  // Longer than to the next EXEC where many wait, shorter than what another lane would miss of the core.
  static constexpr Duration kSpinAtRest = Duration::microseconds(50);
  static constexpr Duration kStandBy = Duration::milliseconds(2);
  // How often the cores are counted while it computes, by the first member.
  static constexpr Duration kCountEvery = Duration::milliseconds(500);

  // The one that the calling thread leads; made by the first call, ends with the thread.
  static Team& of_this_thread();

  Team();
  explicit Team(CountCores count_cores);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls `body(data)` once for each of so many shares, each of which finds itself by share_position(), and returns
  // when all are over. REQUIRES: from 1 to kThreadsMax shares. Within a region: one share, on the calling thread.
  // Arithmetic is set as the leader's (MXCSR), and an operation that was invalid in any share was so for the leader.
  // Starts members that the team lacks; ends the process where there can be no more threads.
  void run(uint32_t shares, Body body, void* data);

  // Waits until all shares of the region are here. REQUIRES: called from each of them.
  void meet();

  // No region follows soon: an EXEC is over, and members spin for no more than kSpinAtRest.
  void rest();

  // Pins the leader to the first of these cores and the members to the others. What the kernel does not allow is
  // left as it was.
  void pin(std::span<const uint32_t> cores);

  // How many threads compute at present, if there are shares for more.
  uint32_t width() const { return width_.load(std::memory_order_relaxed); }

 private:
  struct Member;

  void add_members(uint32_t count);
  void follow(Member& member);
  uint64_t await_call(Member& member, uint64_t seen);
  uint64_t stand_by(Member& member, uint64_t region);
  void count_cores_if_time(const Member& member);
  bool take(uint32_t share, uint64_t region);
  void compute(uint32_t share, uint32_t shares);
  void take_from(uint32_t first, uint64_t region);
  void call(uint32_t shares);
  void await_shares();

  const CountCores count_cores_;
  // By share, the leader first. They stay where they are, since late members look at them while others are added.
  std::array<std::unique_ptr<Member>, kThreadsMax> members_;
  std::array<pid_t, kThreadsMax> threads_{};
  std::atomic<uint32_t> thread_count_{1};
  std::atomic<uint32_t> width_{kThreadsMax};
  std::atomic<bool> counted_{false};  // since threads or their cores changed
  TimePoint next_count_;              // the first member's

  // The region: its number and, in the last kSharesBits, how many shares it has. What it consists of is not written
  // before all shares are over, and read only by a thread that has taken one.
  alignas(64) std::atomic<uint64_t> region_{0};
  Body body_ = nullptr;
  void* data_ = nullptr;
  std::atomic<uint64_t> rests_after_{0};  // a region
  uint32_t arithmetic_ = 0;               // MXCSR of the leader

  alignas(64) std::atomic<uint32_t> left_{0};  // shares that are not over
  std::atomic<uint32_t> leader_sleeps_{0};
  std::atomic<bool> was_invalid_{false};
  SpinLimit leader_spins_;  // the leader's

  alignas(64) std::atomic<uint32_t> met_{0};  // shares that wait in meet()
  std::atomic<uint32_t> meetings_{0};
};

// Forms the calling thread's team, of as many threads as these cores, and pins each to one of
// them, the calling thread to the first. What the kernel does not allow is left as it was.
void form_team(std::span<const uint32_t> cores);

// Whether oneDNN's calls of OpenMP reach teams (openmp_calls.cc); they do unless the program is linked otherwise.
bool teams_serve_openmp();

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_TEAM_H_
