// EXEC does nothing but compute: no operator allocates, none calls the system.
#include "device/cpu/prepared_program.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/conformance/narrow_cases.h"
#include "device/conformance/operator_cases.h"
#include "device/conformance/session.h"
#include "device/cpu/cpu_device.h"

namespace {

std::atomic<uint64_t> allocations = 0;

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
// This program's allocations, and those of the libraries that it is linked with;
// posix_memalign(), which CallMemory has, takes from aligned_alloc() what it does not hold.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* object, size_t bytes) {
  ++allocations;
  return __libc_realloc(object, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace foliot {
namespace {

constexpr uint64_t kPageBytes = 4096;
// More threads than one only with g++'s OpenMP runtime: clang's allocates whenever they
// share a loop, and for some of oneDNN's teams.
#ifdef __clang__
constexpr uint32_t kThreadsMax = 1;
#else
constexpr uint32_t kThreadsMax = 2;
#endif

// Calls visit(name, session) for every case of the conformance suite in every layout,
// once it has run.
void for_each_case(uint32_t threads, const std::function<void(const std::string&, Session&)>& visit) {
  std::vector<OperatorCase> cases = operator_cases();
  for (OperatorCase& narrow : narrow_cases()) cases.push_back(std::move(narrow));
  for (const OperatorCase& operation : cases) {
    Random random(7);
    CaseGraphBuilder builder;
    operation.build(builder, random);
    const std::vector<Graph> graphs{builder.graph()};
    const size_t layouts = make_cpu_device()->layouts(graphs).size();
    for (size_t layout = 0; layout < layouts; ++layout) {
      const auto device = make_cpu_device({.threads = threads, .lock_memory = false});
      auto program = lower_and_plan(*device, graphs, layout);
      ASSERT_TRUE(program.ok()) << operation.name << ": " << program.status().message();
      Session session(*device, {std::move(program).value()}, kPageBytes);
      session.load(0, 0);
      session.run_range(0, 0, {});
      visit(operation.name, session);
    }
  }
}

TEST(PreparedProgram, RunAllocatesNothing) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer allocates";
  for (uint32_t threads = 1; threads <= kThreadsMax; ++threads) {
    for_each_case(threads, [&](const std::string& name, Session& session) {
      const uint64_t before = allocations;
      session.run_range(0, 0, {});
      EXPECT_EQ(allocations - before, 0u) << name << " on " << threads << " threads";
    });
  }
  EXPECT_GT(allocations, 0u);
}

// Whether `body` makes no system call, once it has run: where it does the kernel ends the
// process, a fork of this one, for which an OpenMP runtime may begin anew.
bool makes_no_system_call(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    body();
    ::syscall(SYS_exit, 0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PreparedProgram, RunMakesNoSystemCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes system calls";
  EXPECT_FALSE(makes_no_system_call([] { ::getppid(); }));
  for_each_case(1, [](const std::string& name, Session& session) {
    EXPECT_TRUE(makes_no_system_call([&] { session.run_range(0, 0, {}); })) << name;
  });
}

}  // namespace
}  // namespace foliot
