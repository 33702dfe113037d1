// The log over a disk on which everything goes wrong: what was acknowledged is there, once and in
// order, and nothing that was never written appears.
//
// FOLIOT_STORE_SEEDS is the number of seeds that are run, FOLIOT_STORE_SEED the first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foundation/store/group_commit.h"
#include "foundation/store/log_files.h"
#include "foundation/store/simulated_storage.h"
#include "foundation/store/test_records.h"

namespace foliot {
namespace {

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// State: the records in the order of their numbers.
using Records = std::map<uint64_t, std::string>;

class RecordsReader : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte> piece) override {
    const std::string text = text_of(piece);
    const size_t colon = text.find(':');
    add(std::stoull(text.substr(0, colon)), text.substr(colon + 1));
    return Status();
  }
  Status on_record(uint64_t number, std::span<const std::byte> record) override {
    // Snapshots may contain records beyond their number.
    if (!records.contains(number)) add(number, text_of(record));
    return Status();
  }
  Records records;

 private:
  void add(uint64_t number, std::string text) {
    EXPECT_TRUE(records.empty() || records.rbegin()->first < number) << "record " << number << " comes late";
    EXPECT_TRUE(records.emplace(number, std::move(text)).second) << "record " << number << " comes twice";
  }
};

constexpr int kArrivalsMax = 20;  // in a turn, also after a snapshot, which takes long

// One log over several lives of its process, and what it promised.
class FaultyLog {
 public:
  FaultyLog(uint64_t seed, const SimulatedStorage::Faults& faults)
      : random_(seed), faults_(faults), storage_(random_.next(), faults) {}

  void run(int lives) {
    for (int life = 0; life < lives && !testing::Test::HasFailure(); ++life) {
      live();
      if (!storage_.crashed()) random_.below(2) == 0 ? storage_.crash() : storage_.end_process();
      storage_.restart();
    }
    storage_.set_faults({});
    EXPECT_TRUE(open()) << error_;
  }
  uint64_t acknowledged() const { return acknowledged_.size(); }
  SimulatedStorage& storage() { return storage_; }

 private:
  // Starts with what is there, and compares it with what should be.
  bool open() {
    RecordsReader reader;
    Result<LogFiles> files = LogFiles::open(storage_, random_.next(), reader);
    if (!files.ok()) {
      error_ = files.status().message();
      EXPECT_EQ(error_.find("damaged"), std::string::npos) << error_;  // a crash is no damage
      return false;
    }
    for (const uint64_t number : acknowledged_) {
      EXPECT_TRUE(reader.records.contains(number)) << "acknowledged record " << number << " is lost";
    }
    for (const auto& [number, text] : reader.records) {
      const auto submitted = submitted_.find(number);
      EXPECT_TRUE(submitted != submitted_.end() && submitted->second.contains(text))
          << "record " << number << " was never written as '" << text << "'";
    }
    // What was there stays, whether it was acknowledged or not: a reader has seen it.
    for (const auto& [number, text] : reader.records) {
      acknowledged_.insert(number);
      submitted_[number] = {text};
    }
    state_ = std::move(reader.records);
    files_.emplace(std::move(files).value());
    GroupCommit::Limits limits;
    limits.file_bytes_max = 500 + random_.below(3000);
    commit_.emplace(files_->last(), limits);
    return true;
  }

  // Until the machine crashes, or the process ends.
  void live() {
    if (!open()) return;
    const Duration interval = Duration::microseconds(static_cast<int64_t>(5 + random_.below(100)));
    TimePoint next_arrival = TimePoint() + storage_.elapsed();
    const uint64_t turns = random_.below(60);
    for (uint64_t turn = 0; turn < turns && !storage_.crashed(); ++turn) {
      // What came while the last batch was being written.
      const TimePoint now = TimePoint() + storage_.elapsed();
      for (int i = 0; next_arrival <= now && i < kArrivalsMax; next_arrival += interval, ++i) append();
      next_arrival = std::max(next_arrival, now);
      if (commit_->waiting() == 0) append();
      write_batch();
      if (random_.below(12) == 0) make_snapshot();
    }
  }

  void append() {
    const std::string text = fmt::format("{}-{}", ++appended_, std::string(random_.below(200), 'x'));
    const Result<uint64_t> number = commit_->append(bytes_of(text));
    if (!number.ok()) return;
    submitted_[*number].insert(text);
    latest_[*number] = text;
  }

  void write_batch() {
    std::optional<LogBatch> batch = commit_->begin();
    ASSERT_TRUE(batch.has_value());
    // They come while it is being written.
    while (random_.below(3) == 0) append();
    const uint64_t first = batch->first;
    const uint64_t last = batch->last();
    if (!files_->write(*batch).ok()) return commit_->fail(*std::move(batch));
    commit_->succeed(*std::move(batch));
    for (uint64_t number = first; number <= last; ++number) {
      acknowledged_.insert(number);
      state_[number] = latest_[number];
      submitted_[number] = {latest_[number]};
    }
  }

  void make_snapshot() {
    if (random_.below(2) == 0) commit_->begin_file();
    if (!files_->begin_snapshot(commit_->synced()).ok()) return;
    for (const auto& [number, text] : Records(state_)) {
      if (!files_->add_to_snapshot(bytes_of(fmt::format("{}:{}", number, text))).ok()) return;
      if (random_.below(8) == 0) {  // batches are written meanwhile
        append();
        write_batch();
      }
    }
    if (!storage_.crashed()) static_cast<void>(files_->finish_snapshot());
  }

  Random random_;
  const SimulatedStorage::Faults faults_;
  SimulatedStorage storage_;
  std::optional<LogFiles> files_;
  std::optional<GroupCommit> commit_;
  std::string error_;
  uint64_t appended_ = 0;
  // A number that was refused and is not there after a restart may be given again.
  std::map<uint64_t, std::set<std::string>> submitted_;
  Records latest_;
  std::set<uint64_t> acknowledged_;
  Records state_;
};

SimulatedStorage::Faults drawn_faults(Random& random) {
  const auto rate = [&random] { return random.below(2) == 0 ? 0 : random.uniform() * 0.05; };
  return {rate(), rate(), rate(), rate(), rate(), Duration::microseconds(100)};
}

TEST(LogFaultsTest, WhatWasAcknowledgedIsThereOnceAndInOrder) {
  const uint64_t first = number_from_environment("FOLIOT_STORE_SEED", 1);
  const uint64_t seeds = number_from_environment("FOLIOT_STORE_SEEDS", 500);
  uint64_t acknowledged = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_STORE_SEED={} FOLIOT_STORE_SEEDS=1", seed));
    Random random(seed);
    FaultyLog log(seed, drawn_faults(random));
    log.run(5);
    acknowledged += log.acknowledged();
    if (HasFailure()) return;
  }
  EXPECT_GT(acknowledged, 50 * seeds);  // the faults leave something to lose
}

// Bits flip in files at rest: reading gives a beginning of what was there, or fails and names the
// file; a record that differs never appears.
TEST(LogFaultsTest, FlippedBitsAreFound) {
  const uint64_t first = number_from_environment("FOLIOT_STORE_SEED", 1);
  const uint64_t seeds = number_from_environment("FOLIOT_STORE_SEEDS", 500);
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("FOLIOT_STORE_SEED={} FOLIOT_STORE_SEEDS=1", seed));
    FaultyLog log(seed, SimulatedStorage::Faults{.operation_max = Duration::microseconds(100)});
    log.run(2);
    if (HasFailure()) return;
    SimulatedStorage& storage = log.storage();
    RecordsReader before;
    ASSERT_TRUE(LogFiles::open(storage, 1, before).ok());
    Random random(seed);
    const std::vector<std::string> names = storage.list().value();
    if (names.empty()) continue;  // neither life came to write
    const std::string& name = names[random.below(names.size())];
    const uint64_t size = storage.read(name).value().size();
    const uint64_t byte = random.below(size);
    storage.flip(name, byte, static_cast<uint32_t>(random.below(8)));

    RecordsReader after;
    const Result<LogFiles> files = LogFiles::open(storage, 1, after);
    for (const auto& [number, text] : after.records) EXPECT_EQ(before.records[number], text) << "record " << number;
    if (files.ok()) {
      // It flipped where no record needs it, or in the last batch.
      auto expected = before.records.begin();
      for (const auto& [number, text] : after.records) EXPECT_EQ(number, (expected++)->first);
      if (after.records.size() < before.records.size()) {
        EXPECT_EQ(name, names[names.size() - (names.back().starts_with("log.") ? 1 : 2)]);
        EXPECT_GT(files->torn_bytes(), 0u);
      }
    } else {
      ++failures;
      EXPECT_THAT(files.status().message(), testing::HasSubstr(name + ": damaged at offset"));
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(failures, seeds / 4);
}

}  // namespace
}  // namespace foliot
