#include "foundation/store/record_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <string>

#include "foundation/store/simulated_storage.h"
#include "foundation/store/test_records.h"
#include "foundation/store/test_storage.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Waits for what the log's thread reports.
class Reports : public LogSink, public SnapshotSource {
 public:
  void on_written(uint64_t first, uint64_t last, const Status& status) override {
    const std::lock_guard lock(mutex_);
    for (uint64_t number = first; number <= last; ++number) answers_[number] = status;
    changed_.notify_all();
  }
  void on_snapshot_begin() override { pieces_left_ = 3; }
  Result<bool> next_piece(std::vector<std::byte>& piece) override {
    if (pieces_left_-- == 0) return false;
    piece.assign(1, std::byte{'p'});
    return true;
  }
  void on_snapshot_end(uint64_t, const Status& status) override {
    const std::lock_guard lock(mutex_);
    snapshots_.push_back(status);
    changed_.notify_all();
  }
  Status answer(uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_.contains(number); });
    return answers_.extract(number).mapped();  // the number may be used again after a restart
  }
  Status snapshot() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !snapshots_.empty(); });
    const Status status = snapshots_.front();
    snapshots_.pop_front();
    return status;
  }
  bool has_snapshot() {
    const std::lock_guard lock(mutex_);
    return !snapshots_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Status> answers_;  // guarded by mutex_, as what follows
  std::deque<Status> snapshots_;
  int pieces_left_ = 0;
};

class LogTest : public testing::Test {
 protected:
  std::unique_ptr<RecordLog> open(const RecordLog::Options& options = {.seed = 1}) {
    reader_ = TextReader();
    return RecordLog::open(std::make_unique<SharedStorage>(storage_), options, reader_, reports_, reports_).value();
  }
  SimulatedStorage storage_;
  TextReader reader_;
  Reports reports_;
};

TEST_F(LogTest, AcknowledgedRecordsOutliveACrash) {
  auto log = open();
  EXPECT_EQ(*log->append(bytes_of("a")), 1u);
  EXPECT_EQ(*log->append(bytes_of("b")), 2u);
  EXPECT_TRUE(reports_.answer(2).ok());
  log.reset();
  storage_.crash();
  storage_.restart();
  log = open();
  EXPECT_THAT(reader_.records, ElementsAre("a", "b"));
  EXPECT_EQ(*log->append(bytes_of("c")), 3u);
}

TEST_F(LogTest, WritesWhatWaitsBeforeItCloses) {
  auto log = open();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(log->append(bytes_of("x")).ok());
  log.reset();
  open();
  EXPECT_THAT(reader_.records, SizeIs(1000));
}

TEST_F(LogTest, AFullDiskRefusesUntilThereIsSpace) {
  auto log = open();
  storage_.set_faults({.disk_full = 1});
  EXPECT_EQ(reports_.answer(*log->append(bytes_of("a"))).code(), StatusCode::kResourceExhausted);
  log.reset();
  storage_.set_faults({});
  log = open();
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("b"))).ok());
  log.reset();
  open();
  EXPECT_THAT(reader_.records, ElementsAre("b"));
}

TEST_F(LogTest, AFullDiskLeavesNoPartOfASnapshot) {
  auto log = open();
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("a"))).ok());
  storage_.set_faults({.disk_full = 1});
  log->request_snapshot();
  EXPECT_EQ(reports_.snapshot().code(), StatusCode::kResourceExhausted);
  log.reset();
  EXPECT_THAT(*storage_.list(), SizeIs(1));
}

TEST_F(LogTest, ASnapshotComesInTime) {
  const RecordLog::Options at_once{.seed = 1, .snapshot_after = Duration()};
  auto log = open();
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("a"))).ok());
  log.reset();
  log = open(at_once);
  EXPECT_TRUE(reports_.snapshot().ok()) << "of what was there";
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("b"))).ok());
  EXPECT_TRUE(reports_.snapshot().ok());
  log.reset();
  log = open(at_once);
  EXPECT_THAT(reader_.pieces, ElementsAre("p", "p", "p"));
  EXPECT_THAT(reader_.records, IsEmpty());
  log->request_snapshot();
  EXPECT_TRUE(reports_.snapshot().ok());
  log.reset();
  EXPECT_FALSE(reports_.has_snapshot()) << "the one before had all records";
}

TEST_F(LogTest, MakesASnapshotBetweenBatches) {
  auto log = open();
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("a"))).ok());
  log->request_snapshot();
  EXPECT_TRUE(reports_.snapshot().ok());
  EXPECT_TRUE(reports_.answer(*log->append(bytes_of("b"))).ok());
  log.reset();
  open();
  EXPECT_THAT(reader_.pieces, ElementsAre("p", "p", "p"));
  EXPECT_THAT(reader_.records, ElementsAre("b"));
}

}  // namespace
}  // namespace foliot
