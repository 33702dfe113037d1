#include "edge/http/decode_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace foliot {
namespace {

class DecodeQueueTest : public ::testing::Test {
 protected:
  void add(const std::string& source) {
    queue_.add(source, [this, source] { order_ += source; });
  }
  // Each piece takes as long as its source always does.
  void run(const std::map<std::string, Duration>& takes) {
    while (auto piece = queue_.take()) {
      piece->work();
      queue_.charge(piece->source, takes.at(piece->source));
    }
  }

  DecodeQueue queue_;
  std::string order_;
};

TEST_F(DecodeQueueTest, ASourceThatTakesLongDelaysItselfAlone) {
  for (int i = 0; i < 3; ++i) add("a");
  for (int i = 0; i < 6; ++i) add("b");
  run({{"a", Duration::milliseconds(100)}, {"b", Duration::milliseconds(1)}});
  EXPECT_EQ(order_, "abbbbbbaa");
}

TEST_F(DecodeQueueTest, IdleTimeIsNotSaved) {
  for (int i = 0; i < 3; ++i) add("a");
  run({{"a", Duration::milliseconds(10)}});
  order_.clear();
  for (int i = 0; i < 3; ++i) add("b");
  for (int i = 0; i < 3; ++i) add("a");
  run({{"a", Duration::milliseconds(10)}, {"b", Duration::milliseconds(10)}});
  EXPECT_EQ(order_, "ababab");
}

// However many new sources come, one that waits has its turn.
TEST_F(DecodeQueueTest, NewSourcesDoNotPassOneThatWaits) {
  for (int i = 0; i < 2; ++i) add("old");
  size_t served = 0;
  for (int i = 0; i < 100 && order_ != "oldold"; ++i) {
    queue_.add("new" + std::to_string(i), [] {});
    const auto piece = queue_.take();
    piece->work();
    queue_.charge(piece->source, Duration::milliseconds(1));
    ++served;
  }
  EXPECT_EQ(order_, "oldold");
  EXPECT_LT(served, 10u);
}

TEST_F(DecodeQueueTest, SourcesWithoutWorkAreForgotten) {
  for (int i = 0; i < 1000; ++i) {
    const std::string source = std::to_string(i);
    queue_.add(source, [] {});
    queue_.charge(queue_.take()->source, Duration::milliseconds(1));
  }
  EXPECT_FALSE(queue_.take());
  EXPECT_LE(queue_.sources(), 1u);
}

}  // namespace
}  // namespace foliot
