#include "engine/device/cpu/team.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cfenv>
#include <functional>
#include <latch>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace foliot {
namespace {

constexpr uint32_t kTeam = 3;

std::vector<int> usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

struct Member {
  pid_t thread = 0;
  std::vector<int> cores;
};

void run(Team& team, uint32_t shares, std::function<void(uint32_t)> body) {
  team.run(
      shares, [](void* data) { (*static_cast<std::function<void(uint32_t)>*>(data))(share_position().share); }, &body);
}

// Each thread has a share, since none ends before all are begun.
std::vector<Member> team_members() {
  std::vector<Member> members(kTeam);
  Team& team = Team::of_this_thread();
  run(team, kTeam, [&](uint32_t share) {
    team.meet();
    members[share] = {static_cast<pid_t>(syscall(SYS_gettid)), usable_cores()};
  });
  return members;
}

// Both teams are there at once, each twice, so that threads could be exchanged.
TEST(Team, StaysWithTheThreadThatFormsItAndOnItsCores) {
  const std::vector<int> cores = usable_cores();
  const std::vector<int> pinned{cores.front(), cores.back()};
  std::vector<std::vector<Member>> first(2), second(2);
  {
    std::barrier turn(2);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        pin(pinned[i]);
        turn.arrive_and_wait();
        first[i] = team_members();
        turn.arrive_and_wait();
        second[i] = team_members();
        turn.arrive_and_wait();
      });
    }
  }
  std::set<pid_t> all;
  for (size_t i = 0; i < 2; ++i) {
    for (uint32_t member = 0; member < kTeam; ++member) {
      EXPECT_EQ(first[i][member].cores, std::vector<int>{pinned[i]});
      EXPECT_EQ(second[i][member].thread, first[i][member].thread);
      all.insert(first[i][member].thread);
    }
  }
  EXPECT_EQ(all.size(), 2 * kTeam);
}

TEST(Team, HasACoreForEachThread) {
  const std::vector<int> usable = usable_cores();
  std::vector<uint32_t> cores;
  for (uint32_t i = 0; i < kTeam; ++i) cores.push_back(static_cast<uint32_t>(usable[i % usable.size()]));
  std::vector<Member> members;
  std::thread([&] {
    form_team(cores);
    members = team_members();
  }).join();
  for (uint32_t i = 0; i < kTeam; ++i) EXPECT_EQ(members[i].cores, std::vector<int>{static_cast<int>(cores[i])});
}

TEST(Team, ComputesEachShareOnce) {
  Team team;
  for (uint32_t region = 0; region < 2000; ++region) {
    const uint32_t shares = region % 5 + 1;
    std::vector<std::atomic<int>> computed(shares);
    run(team, shares, [&](uint32_t share) { ++computed[share]; });
    for (uint32_t share = 0; share < shares; ++share) ASSERT_EQ(computed[share], 1) << share << " of " << shares;
  }
}

TEST(Team, WaitsForNoMemberThatDoesNotRun) {
  std::latch over(1);
  // The member counts cores before its first share: there it stays.
  Team team([&](std::span<const pid_t>) {
    over.wait();
    return 2u;
  });
  const std::thread::id leader = std::this_thread::get_id();
  for (int region = 0; region < 100; ++region) {
    std::vector<std::thread::id> threads(2);
    run(team, 2, [&](uint32_t share) { threads[share] = std::this_thread::get_id(); });
    EXPECT_EQ(threads, std::vector(2, leader));
  }
  over.count_down();
}

TEST(Team, SharesMayWaitForEachOtherWhateverTheCores) {
  for (const uint32_t cores : {1u, 2u, kTeam}) {
    Team team([&](std::span<const pid_t>) { return cores; });
    for (int region = 0; region < 20; ++region) {
      std::set<std::thread::id> threads;
      std::mutex mutex;
      run(team, kTeam, [&](uint32_t) {
        team.meet();
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
      EXPECT_EQ(threads.size(), kTeam);
    }
  }
}

TEST(Team, IsAsWideAsThereAreCores) {
  std::atomic<uint32_t> cores = 1;
  std::atomic<size_t> threads = 0;
  Team team([&](std::span<const pid_t> counted) {
    threads = counted.size();
    return cores.load();
  });
  // It is counted while the team computes.
  const auto compute_until = [&](uint32_t width) {
    while (team.width() != width) run(team, kTeam, [](uint32_t) {});
  };
  compute_until(1);
  EXPECT_EQ(threads, kTeam);
  cores = 2;
  compute_until(2);
  cores = 1;
  compute_until(1);
}

TEST(Team, RunsNestedRegionsOnTheSameThread) {
  Team team;
  run(team, 2, [&](uint32_t) {
    team.meet();
    const std::thread::id outer = std::this_thread::get_id();
    uint32_t computed = 0;
    run(Team::of_this_thread(), 2, [&](uint32_t share) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      EXPECT_EQ(share, 0u);
      ++computed;
    });
    EXPECT_EQ(computed, 1u);
    EXPECT_EQ(share_position().shares, 2u);
  });
}

TEST(Team, PassesInvalidOperationsToItsLeader) {
  Team team;
  for (const uint32_t invalid : {1u, 2u, 0u}) {
    std::feclearexcept(FE_INVALID);
    run(team, 2, [&](uint32_t share) {
      team.meet();
      volatile float infinity = std::numeric_limits<float>::infinity();
      if (share == invalid) infinity = infinity - infinity;
    });
    EXPECT_EQ(std::fetestexcept(FE_INVALID) != 0, invalid < 2) << invalid;
  }
  std::feclearexcept(FE_INVALID);
}

// oneDNN is bound to the program's functions, not to those of OpenMP's library.
TEST(Team, IsWhatOpenMpsCallsReach) {
  using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
  const auto parallel = reinterpret_cast<Parallel>(::dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  const auto barrier = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "GOMP_barrier"));
  ASSERT_NE(parallel, nullptr);
  ASSERT_NE(barrier, nullptr);
  struct Seen {
    void (*barrier)();
    std::atomic<int> here = 0, all = 0;
    std::set<Team*> teams{};
  } seen{barrier};
  parallel(
      [](void* data) {
        Seen& it = *static_cast<Seen*>(data);
        ++it.here;
        it.barrier();
        if (it.here == 2 && omp_get_num_threads() == 2 && omp_in_parallel() != 0) ++it.all;
        it.barrier();
        if (omp_get_thread_num() == 1) it.teams.insert(share_position().team);
      },
      &seen, 2, 0);
  EXPECT_EQ(seen.all, 2);
  EXPECT_EQ(seen.teams, std::set{&Team::of_this_thread()});
  EXPECT_EQ(omp_in_parallel(), 0);
}

}  // namespace
}  // namespace foliot
