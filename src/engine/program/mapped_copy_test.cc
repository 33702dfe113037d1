#include "engine/program/mapped_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "engine/program/file.h"

namespace foliot {
namespace {

constexpr size_t kFileBytes = 8 * kBlockBytes;

class MappedCopyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { handle_bus_errors(); }
  void SetUp() override {
    ASSERT_TRUE(write_fully(file_, 0, std::vector<std::byte>(kFileBytes, std::byte{7})));
    mapping_ = ::mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    ASSERT_NE(mapping_, MAP_FAILED);
  }
  void TearDown() override { ::munmap(mapping_, kFileBytes); }

  const std::byte* mapped() const { return static_cast<const std::byte*>(mapping_); }
  void cut_to(size_t bytes) { ASSERT_EQ(::ftruncate(file_.descriptor(), static_cast<off_t>(bytes)), 0); }

  const File file_{::memfd_create("mapped", MFD_CLOEXEC)};
  void* mapping_ = MAP_FAILED;
};

TEST_F(MappedCopyTest, CopiesWhatIsThere) {
  std::vector<std::byte> to(kFileBytes);
  EXPECT_TRUE(copy_from_mapped_file(to, mapped()));
  EXPECT_EQ(to, std::vector<std::byte>(kFileBytes, std::byte{7}));
}

TEST_F(MappedCopyTest, ReportsThatTheEndIsGone) {
  cut_to(kFileBytes / 2);
  std::vector<std::byte> to(kFileBytes);
  for (int time = 0; time < 3; ++time) EXPECT_FALSE(copy_from_mapped_file(to, mapped()));
  EXPECT_TRUE(copy_from_mapped_file(std::span(to).first(kFileBytes / 2), mapped()));
}

TEST_F(MappedCopyTest, ReportsToTheThreadThatCopies) {
  std::vector<std::byte> to(kFileBytes);
  EXPECT_TRUE(copy_from_mapped_file(to, mapped()));
  cut_to(0);
  std::thread([&] {
    std::vector<std::byte> others(kFileBytes);
    EXPECT_FALSE(copy_from_mapped_file(others, mapped()));
  }).join();
  EXPECT_FALSE(copy_from_mapped_file(to, mapped()));
}

// Each death test is a process of its own, which handles bus errors as its body says.
class MappedCopyDeathTest : public MappedCopyTest {
 protected:
  static void SetUpTestSuite() {}
};

TEST_F(MappedCopyDeathTest, LeavesOtherBusErrorsToOthers) {
  cut_to(0);
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not copied yet
  const auto touch_it = [this] {
    handle_bus_errors();
    std::vector<std::byte> to(kBlockBytes);
    EXPECT_FALSE(copy_from_mapped_file(to, mapped()));
    [[maybe_unused]] const volatile std::byte touched = *static_cast<const volatile std::byte*>(mapping_);
  };
  EXPECT_DEATH(touch_it(), "");
  const auto touch_it_handled = [touch_it] {
    std::signal(SIGBUS, [](int) { ::_exit(3); });
    touch_it();
  };
  EXPECT_EXIT(touch_it_handled(), testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace foliot
