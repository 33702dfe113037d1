// EXEC does nothing but compute: no operator keeps memory, none calls the system.
#include "engine/device/cpu/prepared_program.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/conformance/narrow_cases.h"
#include "engine/device/conformance/operator_cases.h"
#include "engine/device/conformance/session.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cpu/families.h"
#include "foundation/base/check.h"
#include "foundation/base/heap.h"

namespace {

std::atomic<uint64_t> allocations = 0, frees = 0;

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
// This program's allocations, and those of the libraries that it is linked with.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* object, size_t bytes) {
  if (object == nullptr) ++allocations;
  return __libc_realloc(object, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** object, size_t alignment, size_t bytes) {
  ++allocations;
  *object = __libc_memalign(alignment, bytes);
  return *object == nullptr ? ENOMEM : 0;
}
void free(void* object) {
  if (object != nullptr) ++frees;
  __libc_free(object);
}
}
#endif

namespace foliot {
namespace {

constexpr uint64_t kCachePageBytes = 4096;
// Of one execution of a oneDNN primitive.
constexpr uint64_t kAllocationsMax = 64;
// What is left over where glibc aligns a block stays with the thread, between that block
// and the next, so it takes three times until blocks taken again fit where they were.
constexpr int kRunsBefore = 8;
// More threads than one only with g++'s OpenMP runtime: clang's keeps what it allocates
// for some of oneDNN's teams.
#ifdef __clang__
constexpr uint32_t kThreadsMax = 1;
#else
constexpr uint32_t kThreadsMax = 2;
#endif

// Calls visit(name, session) for every case of the conformance suite in every layout,
// once it has run on all lanes, of one thread each if there are several.
void for_each_case(uint32_t threads, uint32_t lanes, const std::function<void(const std::string&, Session&)>& visit) {
  std::vector<OperatorCase> cases = operator_cases();
  for (OperatorCase& narrow : narrow_cases()) cases.push_back(std::move(narrow));
  for (const OperatorCase& operation : cases) {
    Random random(7);
    CaseGraphBuilder builder;
    operation.build(builder, random);
    const std::vector<Graph> graphs{builder.graph()};
    const size_t layouts = make_cpu_device()->layouts(graphs).size();
    for (size_t layout = 0; layout < layouts; ++layout) {
      const auto device = make_cpu_device({.threads = threads, .lanes = lanes, .lock_memory = false});
      auto program = lower_and_plan(*device, graphs, layout);
      ASSERT_TRUE(program.ok()) << operation.name << ": " << program.status().message();
      Session session(*device, {std::move(program).value()}, kCachePageBytes);
      session.load(0, 0);
      session.run_range(0, 0, {});
      visit(operation.name, session);
    }
  }
}

// Foliot's own kernels ask for no memory; oneDNN's for little, which they give back.
TEST(PreparedProgram, RunKeepsNothing) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer allocates";
  for (uint32_t threads = 1; threads <= kThreadsMax; ++threads) {
    for_each_case(threads, 1, [&](const std::string& name, Session& session) {
      const std::vector<Operator>& operators = session.plan(0, 0).operators;
      const auto primitives = static_cast<uint64_t>(
          std::ranges::count_if(operators, [](const Operator& step) { return !step.kernel.starts_with(kOwnKernel); }));
      const uint64_t allocated = allocations, freed = frees;
      session.run_range(0, 0, {});
      const uint64_t taken = allocations - allocated;
      EXPECT_EQ(frees - freed, taken) << name << " on " << threads << " threads";
      EXPECT_LE(taken, kAllocationsMax * primitives) << name << " on " << threads << " threads";
    });
  }
  EXPECT_GT(allocations, 0u);
}

void run_on(Session& session, uint32_t lane) { session.run_part(0, 0, {.lanes = {lane, 1}, .context = lane}); }

// Of GoogLeNet: for one thread Winograd's algorithm transforms more of the images at once than for each
// of two. The session is prepared for one lane, too.
TEST(PreparedProgram, AScratchpadSufficesOnFewerLanes) {
  Random random(7);
  CaseGraphBuilder builder;
  const ValueIndex image = builder.input({16, 160, 14, 14});
  const ValueIndex weights = builder.constant(random_array(DataType::kFloat32, {320, 160, 3, 3}, random, {-0.5, 0.5}));
  using Ints = std::vector<int64_t>;
  builder.output(builder.node(
      OperatorKind::kConvolution, {image, weights}, {16, 320, 14, 14},
      {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"groups", int64_t{1}}}));
  const std::vector<Graph> graphs{builder.graph()};
  const auto device = make_cpu_device({.threads = 2, .lanes = 2, .lock_memory = false});
  for (size_t layout = 0; layout < device->layouts(graphs).size(); ++layout) {
    const auto own = make_cpu_device({.threads = 2, .lanes = 2, .lock_memory = false});
    auto program = lower_and_plan(*own, graphs, layout);
    ASSERT_TRUE(program.ok()) << program.status().message();
    Session session(*own, {std::move(program).value()}, kCachePageBytes);
    session.load(0, 0);
    run_on(session, 1);
  }
}

// What a thread begins with, its heap and its thread-local memory, is taken before.
TEST(PreparedProgram, LanesThatRunAtOnceKeepNothing) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer allocates";
  for_each_case(2, 2, [&](const std::string& name, Session& session) {
    uint64_t allocated = 0, freed = 0;
    std::barrier warm(3), begin(3), end(3), over(3);
    const auto run = [&](uint32_t lane) {
      for (int i = 0; i < kRunsBefore; ++i) run_on(session, lane);
      warm.arrive_and_wait();
      begin.arrive_and_wait();
      run_on(session, lane);
      end.arrive_and_wait();
      over.arrive_and_wait();
    };
    std::jthread first(run, 0), second(run, 1);
    warm.arrive_and_wait();
    allocated = allocations, freed = frees;
    begin.arrive_and_wait();
    end.arrive_and_wait();
    EXPECT_EQ(frees - freed, allocations - allocated) << name;
    over.arrive_and_wait();
  });
}

// More than this process has threads.
constexpr int kThreadsBeside = 64;

// A thread takes over the heap of one that has ended, with what lies in it, and after a fork
// those of all others have ended: these are taken by threads that stay, so that the next
// thread's is new, as that of EXEC is.
void take_heaps_left() {
  static std::atomic<int> taken;
  taken = 0;
  for (int i = 0; i < kThreadsBeside; ++i) {
    std::thread([] {
      void* volatile block = std::malloc(64);
      std::free(block);
      ++taken;
      taken.notify_one();
      ::pause();
    }).detach();
  }
  for (int now = taken; now < kThreadsBeside; now = taken) taken.wait(now);
}

// Whether `body` makes no system call, once it has run a few times: where it does the kernel ends the
// thread, one of a fork of this process, for which an OpenMP runtime may begin anew. It
// is not the first thread, whose heap is another, since EXEC has a thread of its own.
bool makes_no_system_call(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    take_heaps_left();
    std::atomic<bool> done = false;
    std::thread([&] {
      for (int run = 0; run < kRunsBefore; ++run) body();
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
      body();
      done = true;
      ::syscall(SYS_exit, 0);
    }).join();
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PreparedProgram, RunMakesNoSystemCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes system calls";
  keep_heap_memory();
  EXPECT_FALSE(makes_no_system_call([] { ::getppid(); }));
  for_each_case(1, 1, [](const std::string& name, Session& session) {
    const auto half = static_cast<uint32_t>(session.plan(0, 0).operators.size() / 2);
    EXPECT_TRUE(makes_no_system_call([&] {
      session.run_range(0, 0, {});
      session.run_range(0, 0, {0, half});
      session.run_range(0, 0, {half, OperatorRange::kEnd});
    })) << name
        << ", whole or cut in two";
  });
}

// From here on this thread makes no system call, but to wait for another and to end: any
// other ends the process. Two lanes meet in a lock of oneDNN's (of grouped transposed
// convolutions, a few in a thousand runs), and only then.
void only_wait() {
  std::array<sock_filter, 5> filter{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)}};
  const sock_fprog program{filter.size(), filter.data()};
  FOLIOT_CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  FOLIOT_CHECK(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// Two threads that run their own bodies at once; in a fork, as above.
bool only_wait_at_once(const std::function<void(uint32_t)>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    take_heaps_left();
    std::atomic<int> warm = 0;
    const auto run = [&](uint32_t thread) {
      for (int i = 0; i < kRunsBefore; ++i) body(thread);
      only_wait();
      for (++warm; warm < 2;) {
      }
      for (int i = 0; i < kRunsBefore; ++i) body(thread);
      ::syscall(SYS_exit, 0);
    };
    std::thread first(run, 0), second(run, 1);
    first.join();
    second.join();
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PreparedProgram, LanesThatRunAtOnceOnlyWait) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes system calls";
  keep_heap_memory();
  EXPECT_FALSE(only_wait_at_once([](uint32_t) { ::getppid(); }));
  for_each_case(2, 2, [](const std::string& name, Session& session) {
    EXPECT_TRUE(only_wait_at_once([&](uint32_t lane) { run_on(session, lane); })) << name;
  });
}

// What the heap is set for: buffers as oneDNN takes them for products beside its kernels',
// larger than what is mapped by default, and freed before others are taken.
TEST(PreparedProgram, BuffersOfKernelsMakeNoSystemCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes system calls";
  keep_heap_memory();
  EXPECT_TRUE(makes_no_system_call([] {
    for (const size_t bytes : {size_t{64}, size_t{72} << 10, size_t{1} << 20, size_t{16} << 20}) {
      void* buffer = nullptr;
      if (::posix_memalign(&buffer, 64, bytes) != 0) ::getppid();
      std::memset(buffer, 1, bytes);
      std::free(buffer);
    }
  }));
}

}  // namespace
}  // namespace foliot
