#include "observe/request_log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "observe/request_log/background_writer.h"
#include "observe/request_log/log_format.h"
#include "observe/request_log/log_writer.h"
#include "observe/request_log/test_history.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { fs::remove_all(folder_); }

  void write(const History& history, const LogOptions& options) {
    auto writer = LogWriter::open(options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    history.copy_to(**writer);
  }
  void write_two_requests() {
    History history;
    history.request(1, kCold, 10, 60);
    history.load(1, kCold, 11, 12, 22);
    history.infer(2, kCold, {1}, 12, 22, 32);
    history.served(1, 2, 33);
    history.request(2, kWarm, 20, 30);
    history.refused(2, Refusal::kUnmeetable, 20, 45);
    write(history, options_);
  }
  void append(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file, std::ios::app) << text;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("foliot_log_" + std::to_string(getpid()));
  const LogOptions options_{.folder = folder_, .origin = at(5)};
};

TEST_F(LogTest, ReadsBackWhatWasWritten) {
  write_two_requests();
  const Result<Log> log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->gaps().empty());
  ASSERT_EQ(log->requests().size(), 2u);
  ASSERT_EQ(log->actions().size(), 2u);

  const RequestRecord* served = log->request(RequestId(1));
  ASSERT_NE(served, nullptr);
  EXPECT_EQ(served->model, "cold");
  EXPECT_EQ(served->arrival, at(5));  // 10, from an origin of 5
  EXPECT_EQ(served->deadline, at(55));
  EXPECT_EQ(served->slo, Duration::milliseconds(50));
  EXPECT_TRUE(served->served());
  EXPECT_TRUE(served->cold_start);
  EXPECT_EQ(served->load, ActionId(1));
  EXPECT_EQ(served->action, ActionId(2));
  EXPECT_EQ(served->input_duration, Duration::microseconds(100));
  EXPECT_EQ(served->earliest_completion, kNoTime);

  const RequestRecord* refused = log->request(RequestId(2));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->refusal, Refusal::kUnmeetable);
  EXPECT_EQ(refused->earliest_completion, at(40));
  EXPECT_EQ(refused->action, std::nullopt);
  EXPECT_EQ(refused->exec_start, kNoTime);

  const ActionRecord* infer = log->action(ActionId(2));
  ASSERT_NE(infer, nullptr);
  EXPECT_EQ(infer->rows, 1u);
  EXPECT_EQ(infer->requests[0], RequestId(1));
  EXPECT_EQ(infer->output_end, at(27) + Duration::microseconds(50));
  EXPECT_EQ(log->action(ActionId(9)), nullptr);
}

TEST_F(LogTest, ABestEffortRequestHasNoDeadline) {
  RequestRecord record{.id = RequestId(1), .model = "m", .arrival = at(1), .departure = at(2)};
  std::string line;
  LogFormat<RequestRecord>::append(record, TimePoint(), line);
  line.pop_back();
  RecordMemory memory;
  const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->deadline, kNoTime);
  EXPECT_EQ(parsed->slo, std::nullopt);
}

TEST_F(LogTest, KeepsStrangeNamesAndTimesBeforeTheOrigin) {
  RequestRecord record{.id = RequestId(1), .model = "a,\"b\"\nc", .arrival = at(1) + Duration::nanoseconds(7)};
  std::string line;
  LogFormat<RequestRecord>::append(record, at(3), line);
  line.pop_back();
  EXPECT_THAT(line, testing::StartsWith("1,\"a,\"\"b\"\"?c\",0,-1999.993,"));
  RecordMemory memory;
  const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->model, "a,\"b\"?c");
  EXPECT_EQ(parsed->arrival, TimePoint() - Duration::nanoseconds(1999993));
}

TEST_F(LogTest, KeepsWhatClientsCallTheirCalls) {
  const CallLabel hostile{.text = "a,\"b\"\n\x1B[2J\\\xFF", .bytes = 200};
  RequestRecord record{.id = RequestId(1), .model = "m", .arrival = at(1), .departure = at(2)};
  record.label = std::make_shared<const CallLabel>(hostile);
  std::string line;
  LogFormat<RequestRecord>::append(record, TimePoint(), line);
  EXPECT_THAT(line, testing::EndsWith(",\"a,\"\"b\"\"\\x0a\\x1b[2J\\\\\\xff\",200,deadline,,,\n"));
  line.pop_back();
  RecordMemory memory;
  const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_NE(parsed->label, nullptr);
  EXPECT_EQ(*parsed->label, hostile);
}

TEST_F(LogTest, KeepsHowAnApplicationChose) {
  for (const std::string id : {"", "order-17"}) {
    const CallLabel label = call_label(id, "application 'a,b', which asks \"c\"");
    RequestRecord record{.id = RequestId(1), .model = "m", .arrival = at(1), .departure = at(2)};
    record.label = std::make_shared<const CallLabel>(label);
    std::string line;
    LogFormat<RequestRecord>::append(record, TimePoint(), line);
    line.pop_back();
    RecordMemory memory;
    const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    ASSERT_NE(parsed->label, nullptr);
    EXPECT_EQ(*parsed->label, label);
  }
}

TEST_F(LogTest, KeepsWhichRequirementOfATaskWasUnmet) {
  for (const UnmetRequirement each : {UnmetRequirement::kNone, UnmetRequirement::kAccuracy, UnmetRequirement::kCost}) {
    History history;
    history.request(1, kWarm, 10, 60);
    history.refused(1, Refusal::kUnmeetable, 10, 0, each);
    std::string line;
    LogFormat<RequestRecord>::append(history.request_of(1), TimePoint(), line);
    line.pop_back();
    RecordMemory memory;
    const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->unmet, each);
    EXPECT_FALSE(LogFormat<RequestRecord>::parse(line + "x", memory).ok());
  }
}

TEST_F(LogTest, KeepsTheClass) {
  for (const RequestClass each : {RequestClass::kDeadline, RequestClass::kBestEffort, RequestClass::kOffline}) {
    std::string line;
    LogFormat<RequestRecord>::append({.id = RequestId(1), .model = "m", .request_class = each}, TimePoint(), line);
    line.pop_back();
    RecordMemory memory;
    const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->request_class, each);
  }
}

TEST_F(LogTest, KeepsTheTask) {
  std::string line;
  LogFormat<RequestRecord>::append({.id = RequestId(1), .model = "m", .task = "a, b"}, TimePoint(), line);
  EXPECT_THAT(line, testing::EndsWith(",deadline,\"a, b\",,\n"));
  line.pop_back();
  RecordMemory memory;
  const auto parsed = LogFormat<RequestRecord>::parse(line, memory);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->task, "a, b");
}

TEST_F(LogTest, RefusesIdsThatNoServerWrote) {
  RequestRecord record{.id = RequestId(1), .model = "m", .arrival = at(1), .departure = at(2)};
  std::string line;
  LogFormat<RequestRecord>::append(record, TimePoint(), line);
  line.resize(line.rfind(",,deadline") + 1);
  RecordMemory memory;
  const std::vector<std::string> ends{
      "\\n,2,deadline", "ab,1,deadline", "ab,,deadline", ",1,deadline", std::string(65, 'a') + ",65,deadline", ",,",
      ",,urgent"};
  for (const std::string& end : ends) {
    EXPECT_FALSE(LogFormat<RequestRecord>::parse(line + end, memory).ok()) << end;
  }
}

TEST_F(LogTest, ReadsLogsOfBeforeClientsIdsWereKept) {
  write_two_requests();
  std::ifstream current(folder_ / "requests.csv");
  std::string text;
  for (std::string line; std::getline(current, line);) {  // without the last four fields
    for (int i = 0; i < 4; ++i) line.resize(line.rfind(','));
    text += line + '\n';
  }
  std::ofstream(folder_ / "requests.csv") << text;
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->requests().size(), 2u);
  EXPECT_EQ(log->request(RequestId(1))->action, ActionId(2));
  EXPECT_EQ(log->request(RequestId(1))->label, nullptr);
}

TEST_F(LogTest, ReadsLogsOfBeforeKindsWereKept) {
  write_two_requests();
  std::ifstream current(folder_ / "actions.csv");
  std::string text;
  for (std::string line; std::getline(current, line);) {  // without the last three fields
    for (int i = 0; i < 3; ++i) line.resize(line.rfind(','));
    text += line + '\n';
  }
  std::ofstream(folder_ / "actions.csv") << text;
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->actions().size(), 2u);
  EXPECT_EQ(log->action(ActionId(2))->kind, "");
  EXPECT_EQ(log->action(ActionId(2))->lanes, LaneInterval());
  EXPECT_EQ(log->action(ActionId(2))->rows, 1u);
}

TEST_F(LogTest, ReportsThatALogIsOfAnotherVersion) {
  write_two_requests();
  const std::string header = LogFormat<RequestRecord>::header();
  const std::vector<std::string> firsts{header + ",one_more", header.substr(0, header.size() - 1), "id,model"};
  for (const std::string& first : firsts) {
    std::ofstream(folder_ / "requests.csv") << first << '\n';
    const auto log = Log::read(folder_);
    ASSERT_FALSE(log.ok()) << first;
    EXPECT_THAT(log.status().message(), HasSubstr("that this version can read"));
  }
}

TEST_F(LogTest, ReportsWhatIsMissing) {
  const auto log = Log::read(folder_ / "nowhere");
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(log.status().message(), HasSubstr("nowhere/requests.csv"));
}

TEST_F(LogTest, ReportsWhichLineIsWrongAndWhy) {
  write_two_requests();
  append("requests.csv", "3,warm,0,1.000\n4,");
  const auto log = Log::read(folder_);
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.status().message(), HasSubstr("requests.csv:4: the line ends before its field 'deadline_us'"));
}

TEST_F(LogTest, ReportsWhichFieldIsWrong) {
  write_two_requests();
  append("actions.csv", "3,JUMP,0\n");
  const auto log = Log::read(folder_);
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.status().message(), HasSubstr("actions.csv:4: 'JUMP' is no type"));
}

TEST_F(LogTest, ReportsThatAFileIsNoLog) {
  write_two_requests();
  std::ofstream(folder_ / "requests.csv") << "a,b,c\n1,2,3\n";
  const auto log = Log::read(folder_);
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.status().message(), HasSubstr("requests.csv:1: not the first line"));
}

TEST_F(LogTest, LeavesOutALastLineThatIsCutOff) {
  write_two_requests();
  append("requests.csv", "3,warm,0,1.0");
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_EQ(log->requests().size(), 2u);
  ASSERT_EQ(log->gaps().size(), 1u);
  EXPECT_THAT(log->gaps()[0], HasSubstr("requests.csv:4: the last line is cut off"));
}

TEST_F(LogTest, ReportsHowManyRecordsWereDropped) {
  {
    auto writer = LogWriter::open(options_);
    ASSERT_TRUE(writer.ok());
    (*writer)->add_dropped_actions(17);
  }
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->gaps().size(), 1u);
  EXPECT_THAT(log->gaps()[0], HasSubstr("actions.csv:2: 17 actions are missing"));
}

TEST_F(LogTest, KeepsTheLatestWithinItsBound) {
  constexpr uint64_t kBound = 400'000;
  constexpr uint64_t kCount = 20'000;
  {
    auto writer = LogWriter::open({.folder = folder_, .bytes_max = kBound});
    ASSERT_TRUE(writer.ok());
    for (uint64_t id = 1; id <= kCount; ++id) {
      (*writer)->add(RequestRecord{.id = RequestId(id), .model = "m", .arrival = at(1), .departure = at(2)});
    }
  }
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) bytes += entry.file_size();
  EXPECT_LT(bytes, kBound + (128 << 10));  // and what is written at a time
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_NE(log->request(RequestId(kCount)), nullptr);
  EXPECT_EQ(log->request(RequestId(1)), nullptr);
  EXPECT_GT(log->requests().size(), 1000u);
  EXPECT_EQ(log->requests().back().id.value() - log->requests().front().id.value() + 1, log->requests().size());
}

TEST_F(LogTest, ReadsTheEndOfALongOne) {
  {
    auto writer = LogWriter::open({.folder = folder_});
    ASSERT_TRUE(writer.ok());
    for (uint64_t id = 1; id <= 1000; ++id) {
      (*writer)->add(RequestRecord{.id = RequestId(id), .model = "m", .arrival = at(1), .departure = at(2)});
    }
  }
  for (const uint64_t bytes_max : {10'000, 10'001, 10'020}) {  // not all of them end at a line
    const auto log = Log::read(folder_, bytes_max);
    ASSERT_TRUE(log.ok()) << log.status().message();
    EXPECT_NE(log->request(RequestId(1000)), nullptr);
    EXPECT_EQ(log->request(RequestId(1)), nullptr);
    EXPECT_GT(log->requests().size(), 20u);
    EXPECT_TRUE(log->gaps().empty());
  }
}

TEST_F(LogTest, ANewLogReplacesTheOldOne) {
  write_two_requests();
  write(History(), options_);
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(log->requests().empty());
}

TEST_F(LogTest, ReportsWhatCannotBeWritten) {
  std::ofstream(folder_) << "a file";
  const auto writer = LogWriter::open(options_);
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.status().message(), HasSubstr(folder_.string()));
}

TEST_F(LogTest, IsWrittenInTheBackgroundAndNothingIsLostUncounted) {
  constexpr uint64_t kCount = 200'000;  // more than the ring holds
  {
    auto writer = BackgroundWriter::open(options_);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    for (uint64_t id = 1; id <= kCount; ++id) {
      (*writer)->add(RequestRecord{.id = RequestId(id), .model = "m", .arrival = at(1), .departure = at(2)});
    }
  }
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  uint64_t missing = 0;
  for (const std::string& gap : log->gaps()) {
    missing += std::stoull(gap.substr(gap.find(": ") + 2));
  }
  EXPECT_EQ(log->requests().size() + missing, kCount);
}

TEST_F(LogTest, ActionsInTheBackgroundKeepTheirRequests) {
  std::vector<RequestId> requests;
  for (uint64_t i = 1; i <= kBatchSizeMax; ++i) requests.emplace_back(i);
  {
    auto writer = BackgroundWriter::open(options_);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    for (const uint32_t rows : {1U, kBatchSizeMax, 0U, 3U}) {
      (*writer)->add(ActionRecord{.id = ActionId(rows),
                                  .model = "m",
                                  .rows = rows,
                                  .requests = std::span(requests).first(rows),
                                  .lanes = {2, 2},
                                  .kind = "k"});
    }
  }
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->actions().size(), 4u);
  for (const ActionRecord& action : log->actions()) {
    EXPECT_EQ(action.rows, action.id.value());
    EXPECT_TRUE(std::ranges::equal(action.requests, std::span(requests).first(action.rows))) << action.rows;
    EXPECT_EQ(action.lanes, (LaneInterval{2, 2}));
  }
}

TEST_F(LogTest, ActionsInTheBackgroundAreWrittenOrCounted) {
  constexpr uint64_t kCount = 2 * BackgroundWriter::kActionRowsMax / kBatchSizeMax;
  const std::vector<RequestId> requests(kBatchSizeMax, RequestId(7));
  {
    auto writer = BackgroundWriter::open(options_);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    for (uint64_t id = 1; id <= kCount; ++id) {
      (*writer)->add(ActionRecord{.id = ActionId(id), .model = "m", .rows = kBatchSizeMax, .requests = requests});
    }
  }
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  uint64_t missing = 0;
  for (const std::string& gap : log->gaps()) missing += std::stoull(gap.substr(gap.find(": ") + 2));
  EXPECT_EQ(log->actions().size() + missing, kCount);
}

FeedbackRecord feedback(const std::string& id, int64_t answered) {
  return {.id = id,
          .application = "a, b",
          .policy = "exp3",
          .context = "user \"7\"\n",
          .answered = at(answered),
          .observed = at(answered + 1),
          .models = {{.name = "one = 1", .probability = 0.1, .asked = true, .loss = 1.0 / 3},
                     {.name = "two\\x20", .probability = 0.9},
                     {.name = "three"}}};
}

TEST_F(LogTest, KeepsFeedback) {
  const FeedbackRecord record = feedback("id", 4);
  std::string line;
  LogFormat<FeedbackRecord>::append(record, TimePoint(), line);
  line.pop_back();
  RecordMemory memory;
  const auto parsed = LogFormat<FeedbackRecord>::parse(line, memory);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message() << line;
  EXPECT_EQ(*parsed, record) << line;
}

TEST_F(LogTest, FeedbackThatIsWrongIsNamed) {
  std::string line;
  LogFormat<FeedbackRecord>::append(feedback("id", 4), TimePoint(), line);
  line.pop_back();
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    RecordMemory memory;
    return LogFormat<FeedbackRecord>::parse(changed, memory).status().message();
  };
  EXPECT_THAT(message("=0.9", "=1.5"), HasSubstr("is no probabilities"));
  EXPECT_THAT(message("=0.333", "=-0.333"), HasSubstr("is no losses"));
  EXPECT_THAT(message("=0.333", "x=0.333"), HasSubstr("is no losses"));
}

TEST_F(LogTest, FeedbackHasAFileOnceThereIsSome) {
  write_two_requests();
  EXPECT_FALSE(fs::exists(folder_ / "feedback.csv"));
  EXPECT_TRUE(Log::read(folder_)->feedback().empty());
  {
    auto writer = LogWriter::open(options_);
    ASSERT_TRUE(writer.ok());
    (*writer)->add(feedback("later", 9));
    (*writer)->add(feedback("first", 6));
    (*writer)->add_dropped_feedback(3);
  }
  auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->feedback().size(), 2u);
  EXPECT_EQ(log->feedback()[0].id, "first");
  EXPECT_THAT(log->gaps(), testing::ElementsAre(HasSubstr("3 feedback are missing")));
  // A server that starts replaces it.
  EXPECT_TRUE(LogWriter::open(options_).ok());
  EXPECT_FALSE(fs::exists(folder_ / "feedback.csv"));
}

TEST_F(LogTest, FeedbackCountsForTheBound) {
  LogOptions options = options_;
  options.bytes_max = 100'000;
  auto writer = LogWriter::open(options);
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 5000; ++i) {
    (*writer)->add(feedback("id", i));
    if (i % 100 == 0) (*writer)->flush();
  }
  (*writer)->flush();
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder_)) bytes += fs::file_size(file);
  EXPECT_TRUE(fs::exists(folder_ / "feedback.previous.csv"));
  EXPECT_LT(bytes, 200'000u);
}

TEST_F(LogTest, FeedbackInTheBackgroundComesFromAnyThread) {
  {
    auto writer = BackgroundWriter::open(options_);
    ASSERT_TRUE(writer.ok());
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 100; ++i) (*writer)->add_feedback(feedback(std::to_string(thread), 100 * thread + i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto log = Log::read(folder_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_EQ(log->feedback().size(), 300u);
}

}  // namespace
}  // namespace foliot
