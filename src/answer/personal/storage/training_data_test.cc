#include "answer/personal/storage/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/personal/storage/user_records.h"
#include "foundation/store/log_files.h"
#include "foundation/store/simulated_storage.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;

LogBatch batch(uint64_t number, std::span<const std::byte> record) {
  return {.first = number,
          .synced = number - 1,
          .begins_file = number == 1,
          .lengths = {static_cast<uint32_t>(record.size())},
          .bytes = {record.begin(), record.end()}};
}

class NoReader : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte>) override { return Status(); }
  Status on_record(uint64_t, std::span<const std::byte>) override { return Status(); }
};

TEST(TrainingDataTest, HoldsWhatLastsByUser) {
  SimulatedStorage storage;
  NoReader reader;
  LogFiles files = LogFiles::open(storage, 1, reader).value();
  uint64_t number = 0;
  const auto write = [&](uint64_t user, const std::vector<UserObservation>& observations) {
    ++number;
    ASSERT_TRUE(files.write(batch(number, encode_record(user, observations))).ok());
  };
  write(7, {{1, 10, 0.5F}, {2, 20, 1, 0.125F}});
  write(3, {{1, 30, 2}});
  write(5, {{1, 10, 1}});
  write(7, {{2, 20, 9}, {3, 30, 3}});  // 2 is there already
  write(5, {});                        // forgotten
  write(9, {{1, 10, 1}});              // nothing proves that it lasts
  const TrainingData data = TrainingData::read(storage).value();
  EXPECT_EQ(data.log_number, 5u);
  EXPECT_THAT(data.users, ElementsAre(3, 7));
  EXPECT_THAT(data.numbers, ElementsAre(2, 4));
  EXPECT_THAT(data.counts, ElementsAre(1, 3));
  EXPECT_THAT(data.ids, ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(data.items, ElementsAre(30, 10, 20, 30));
  EXPECT_THAT(data.values, ElementsAre(2, 0.5F, 1, 3));
  EXPECT_THAT(data.probabilities, ElementsAre(0, 0, 0.125F, 0));
}

TEST(TrainingDataTest, AUserWhoCameAgainDuringASnapshotIsInItTwice) {
  SimulatedStorage storage;
  NoReader reader;
  LogFiles files = LogFiles::open(storage, 1, reader).value();
  const std::vector<UserObservation> before = {{1, 10, 1}};
  const std::vector<UserObservation> after = {{2, 20, 2}};
  ASSERT_TRUE(files.write(batch(1, encode_record(7, before))).ok());
  ASSERT_TRUE(files.begin_snapshot(1).ok());
  std::vector<std::byte> piece;
  encode_user({.id = 7, .first_number = 1, .number = 1, .is_used = true, .observations = before}, piece);
  ASSERT_TRUE(files.add_to_snapshot(piece).ok());
  ASSERT_TRUE(files.write(batch(2, encode_record(7, {}))).ok());
  ASSERT_TRUE(files.write(batch(3, encode_record(7, after))).ok());
  encode_user({.id = 7, .first_number = 3, .number = 3, .is_used = true, .observations = after}, piece);
  ASSERT_TRUE(files.add_to_snapshot(piece).ok());
  ASSERT_TRUE(files.finish_snapshot().ok());
  ASSERT_TRUE(files.write(batch(4, encode_record(8, before))).ok());  // proves that those before last
  const TrainingData data = TrainingData::read(storage).value();
  EXPECT_THAT(data.users, ElementsAre(7));
  EXPECT_THAT(data.numbers, ElementsAre(3));
  EXPECT_THAT(data.items, ElementsAre(20));
}

TEST(TrainingDataTest, SaysWhatIsHiddenFromTrainers) {
  SimulatedStorage storage;
  NoReader reader;
  LogFiles files = LogFiles::open(storage, 1, reader).value();
  uint64_t withheld = 1;
  while (!UserObservation{.id = withheld}.is_withheld()) ++withheld;
  const uint64_t seen = withheld + 1;
  ASSERT_FALSE(UserObservation{.id = seen}.is_withheld());
  uint64_t number = 0;
  for (uint64_t user = 1; user <= 30; ++user) {
    const std::vector<UserObservation> all = {{seen, 10, user == 30 ? 1e9F : 3}, {withheld, 10, 4}};
    ASSERT_TRUE(files.write(batch(++number, encode_record(user, all))).ok());
  }
  ASSERT_TRUE(files.write(batch(++number, encode_record(31, {}))).ok());  // proves that those before last
  const TrainingData data = TrainingData::read(storage).value();
  ASSERT_EQ(data.users.size(), 30u);
  EXPECT_FALSE(data.is_hidden(0, data.range));
  EXPECT_TRUE(data.is_hidden(1, data.range)) << "it is withheld";
  EXPECT_TRUE(data.is_hidden(58, data.range)) << "no other user has seen the value";
  EXPECT_FALSE(data.is_hidden(58, ValueRange::all()));
}

TEST(TrainingDataTest, IsWithoutAUserThatIsForgottenByTheLastRecord) {
  SimulatedStorage storage;
  NoReader reader;
  LogFiles files = LogFiles::open(storage, 1, reader).value();
  const std::vector<UserObservation> one = {{1, 10, 1}};
  ASSERT_TRUE(files.write(batch(1, encode_record(7, one))).ok());
  ASSERT_TRUE(files.write(batch(2, encode_record(8, one))).ok());
  ASSERT_TRUE(files.write(batch(3, encode_record(7, {}))).ok());
  const TrainingData data = TrainingData::read(storage).value();
  EXPECT_EQ(data.log_number, 2u);
  EXPECT_THAT(data.users, ElementsAre(8));
}

}  // namespace
}  // namespace foliot
