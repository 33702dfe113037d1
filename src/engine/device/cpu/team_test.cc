#include "engine/device/cpu/team.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

namespace foliot {
namespace {

constexpr int kTeam = 3;

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

std::vector<Member> team_members() {
  std::vector<Member> members(kTeam);
  omp_set_num_threads(kTeam);
#pragma omp parallel
  {
    Member& member = members[static_cast<size_t>(omp_get_thread_num())];
    member = {static_cast<pid_t>(syscall(SYS_gettid)), usable_cores()};
  }
  return members;
}

// What the device relies on of the OpenMP runtime. Both are there at once, each twice, so that threads could be
// exchanged.
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
    for (size_t member = 0; member < kTeam; ++member) {
      EXPECT_EQ(first[i][member].cores, std::vector<int>{pinned[i]});
      EXPECT_EQ(second[i][member].thread, first[i][member].thread);
      all.insert(first[i][member].thread);
    }
  }
  EXPECT_EQ(all.size(), 2u * kTeam);
}

TEST(Team, HasACoreForEachThread) {
  const std::vector<int> usable = usable_cores();
  std::vector<uint32_t> cores;
  for (size_t i = 0; i < kTeam; ++i) cores.push_back(static_cast<uint32_t>(usable[i % usable.size()]));
  std::vector<Member> members;
  std::thread([&] {
    form_team(cores);
    members = team_members();
  }).join();
  for (size_t i = 0; i < kTeam; ++i) EXPECT_EQ(members[i].cores, std::vector<int>{static_cast<int>(cores[i])});
}

}  // namespace
}  // namespace foliot
