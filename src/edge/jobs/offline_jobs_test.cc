#include "edge/jobs/offline_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/conformance/test_models.h"
#include "edge/jobs/npy_header.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// What a run does, as the runner sees it; it is over once `most` rows are done.
class FakeContext : public JobContext {
 public:
  bool is_over() const override { return over_; }
  bool is_cancelled() const override { return false; }
  void keep_accuracy(const std::string&, double) override {}
  void keep(uint64_t done, uint64_t total, const std::map<std::string, uint64_t>& /*variants*/) override {
    done_ = done;
    total_ = total;
    ++keeps_;
    if (done >= most_) over_ = true;
    if (on_keep_) on_keep_();
  }
  void keep_bytes(uint64_t bytes) override { bytes_ = bytes; }
  void set_waiting(std::string why) override {
    waiting_ = std::move(why);
    if (on_waiting_) on_waiting_();
  }
  void wait(Duration) override { std::this_thread::yield(); }

  std::atomic<bool> over_{false};
  uint64_t most_ = std::numeric_limits<uint64_t>::max();
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  uint64_t bytes_ = 0;
  int keeps_ = 0;
  std::string waiting_;
  std::function<void()> on_waiting_;
  std::function<void()> on_keep_;
};

template <typename T>
void write_npy_file(const fs::path& file, DataType type, const Shape& shape, const std::vector<T>& values) {
  std::ofstream out(file, std::ios::binary);
  out << npy_header(type, shape);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

class OfflineJobsTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 103;
  static constexpr uint64_t kOwnerBytes = 1 << 20;

  OfflineJobsTest() {
    serve(doubling_model(ModelId(1)));
    serve(whole_model(ModelId(2)));
    rows_.resize(2 * kRows);
    std::iota(rows_.begin(), rows_.end(), 1.0f);
    write_npy_file(root_ / "rows.npy", DataType::kFloat32, {kRows, 2}, rows_);
  }
  ~OfflineJobsTest() override { fs::remove_all(root_); }

  void serve(const ModelInfo& model, ModelState state = ModelState::kReady) {
    catalog_.put({.name = model.name,
                  .version = model.version,
                  .state = state,
                  .reason = "",
                  .info = std::make_shared<const ModelInfo>(model)});
  }
  static std::vector<std::string> compute(const ModelInfo& model, const Query& query) {
    if (model.name == "doubling") return double_inputs(model, query);
    std::string bytes(reinterpret_cast<const char*>(query.inputs[0].bytes.data()), query.inputs[0].bytes.size());
    for (char& byte : bytes) byte = byte == 0 ? 1 : 0;
    return {bytes};
  }
  static Job job_of(const std::string& request) {
    return {.id = "a", .number = 1, .kind = "offline", .request = request};
  }
  Job accepted(const std::string& request = R"({"model":"doubling","inputs":{"x":"rows.npy"},"output":"answers"})") {
    Job job = job_of(request);
    const Status status = jobs_.accept(job);
    EXPECT_TRUE(status.ok()) << status.message();
    return job;
  }
  Status refused(const std::string& request) {
    Job job = job_of(request);
    return jobs_.accept(job);
  }
  std::string output(const std::string& name) {
    std::ifstream in(root_ / "answers" / (name + ".npy"), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void expect_doubled() {
    std::vector<float> doubled = rows_;
    for (float& value : doubled) value *= 2;
    std::string expected = npy_header(DataType::kFloat32, {kRows, 2});
    expected.append(reinterpret_cast<const char*>(doubled.data()), doubled.size() * sizeof(float));
    EXPECT_TRUE(output("y") == expected);
  }

  const fs::path root_ = fs::path(testing::TempDir()) / fmt::format("foliot_offline_{}", ::getpid());
  const JobFolder folder_ = JobFolder::open(root_).value();
  Catalog catalog_;
  std::vector<Job> known_;
  ServedNames names_{catalog_};
  FakeInference inference_{names_, compute, monotonic_now};
  OfflineJobs jobs_{{.calls_max = 4,
                     .rows_max = 32,
                     .keep_interval = Duration(),
                     .wait_first = Duration::microseconds(1),
                     .wait_most = Duration::milliseconds(1),
                     .now = monotonic_now,
                     .tenant_of = [](const std::string& owner) -> Result<std::shared_ptr<Tenant>> {
                       if (owner.empty()) return std::shared_ptr<Tenant>();
                       return Status::not_found(fmt::format("no key '{}'", owner));
                     },
                     .list_jobs = [this] { return known_; },
                     .owner_bytes_max = kOwnerBytes},
                    folder_,
                    catalog_,
                    inference_};
  FakeContext context_;
  std::vector<float> rows_;
};

TEST_F(OfflineJobsTest, EachRowHasItsAnswerInItsPlace) {
  const Job job = accepted();
  EXPECT_EQ(job.total, static_cast<uint64_t>(kRows));
  const Status status = jobs_.run(job, context_);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(context_.done_, static_cast<uint64_t>(kRows));
  expect_doubled();
}

TEST_F(OfflineJobsTest, GoesOnWhereItWas) {
  Job job = accepted();
  context_.most_ = 20;
  EXPECT_EQ(jobs_.run(job, context_).code(), StatusCode::kUnavailable);
  ASSERT_GE(context_.done_, 20u);
  ASSERT_LT(context_.done_, static_cast<uint64_t>(kRows));
  job.done = context_.done_;
  FakeContext next;
  const Status status = jobs_.run(job, next);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(next.done_, static_cast<uint64_t>(kRows));
  expect_doubled();
}

TEST_F(OfflineJobsTest, RowsThatAreDoneAreNotComputedAgain) {
  Job job = accepted();
  ASSERT_TRUE(jobs_.run(job, context_).ok());
  job.done = 100;
  std::atomic<int> calls = 0;
  FakeInference counting(
      names_,
      [&](const ModelInfo& model, const Query& query) {
        ++calls;
        return compute(model, query);
      },
      monotonic_now);
  OfflineJobs again({.now = monotonic_now, .tenant_of = [](const std::string&) { return std::shared_ptr<Tenant>(); }},
                    folder_, catalog_, counting);
  ASSERT_TRUE(again.run(job, context_).ok());
  EXPECT_EQ(calls, 1) << "three rows are left";
  expect_doubled();
}

TEST_F(OfflineJobsTest, AnInputThatIsWrittenToMeanwhileFailsTheJob) {
  const Job job = accepted();
  FakeInference writing(
      names_,
      [&](const ModelInfo& model, const Query& query) {
        // As a writer does, at another time.
        std::fstream(root_ / "rows.npy", std::ios::in | std::ios::out) << "\x93NUMPY";
        fs::last_write_time(root_ / "rows.npy", fs::file_time_type::clock::now() + std::chrono::hours(1));
        return compute(model, query);
      },
      monotonic_now);
  OfflineJobs jobs({.now = monotonic_now, .tenant_of = [](const std::string&) { return std::shared_ptr<Tenant>(); }},
                   folder_, catalog_, writing);
  const Status status = jobs.run(job, context_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("input 'x': rows.npy was written to while the job read it"));
  EXPECT_EQ(context_.done_, 0u);
}

TEST_F(OfflineJobsTest, AnOutputThatIsRemovedMeanwhileFailsTheJob) {
  for (const bool is_replaced : {false, true}) {
    fs::remove_all(root_ / "answers");
    const Job job = accepted();
    OfflineJobs jobs({.calls_max = 1,
                      .rows_max = 32,
                      .keep_interval = Duration(),
                      .now = monotonic_now,
                      .tenant_of = [](const std::string&) { return std::shared_ptr<Tenant>(); }},
                     folder_, catalog_, inference_);
    FakeContext context;
    context.on_keep_ = [&] {
      fs::remove_all(root_ / "answers");
      if (is_replaced) fs::create_directory(root_ / "answers");
    };
    const Status status = jobs.run(job, context);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("output y.npy was removed or replaced while the job wrote it"));
    EXPECT_EQ(context.keeps_, 1);
  }
}

TEST_F(OfflineJobsTest, OneCallForEachRowWithoutABatchDimension) {
  write_npy_file<char>(root_ / "flags.npy", DataType::kBool, {2, 2, 2}, {0, 1, 1, 0, 1, 1, 1, 1});
  const Status status =
      jobs_.run(accepted(R"({"model":"whole","inputs":{"x":"flags.npy"},"output":"answers"})"), context_);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(output("y") == npy_header(DataType::kBool, {2, 2, 2}) + std::string("\1\0\0\1\0\0\0\0", 8));
}

TEST_F(OfflineJobsTest, WhatIsRefusedForNowIsSentAgain) {
  inference_.refuse(Refusal::kOverload);
  int refusals = 0;
  context_.on_waiting_ = [&] {
    if (++refusals == 10) inference_.refuse(Refusal::kNone);
  };
  const Status status = jobs_.run(accepted(), context_);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(context_.waiting_, HasSubstr("overload"));
  expect_doubled();
}

TEST_F(OfflineJobsTest, WaitsForAModelThatIsNotReady) {
  serve(doubling_model(ModelId(1)), ModelState::kLoading);
  context_.on_waiting_ = [&] { serve(doubling_model(ModelId(1))); };
  ASSERT_TRUE(jobs_.run(accepted(), context_).ok());
  EXPECT_THAT(context_.waiting_, HasSubstr("'doubling' is not ready"));
}

TEST_F(OfflineJobsTest, WhatIsRefusedForGoodFailsTheJob) {
  write_npy_file<float>(root_ / "wide.npy", DataType::kFloat32, {1, 3}, {1, 2, 3});
  const Job wide = accepted(R"({"model":"doubling","inputs":{"x":"wide.npy"},"output":"answers"})");
  EXPECT_THAT(jobs_.run(wide, context_).message(), HasSubstr("rows 0 to 0: model 'doubling': input 'x'"));
  inference_.refuse(Refusal::kModelError, "its reason");
  const Job job = accepted(R"({"model":"doubling","inputs":{"x":"rows.npy"},"output":"other"})");
  EXPECT_THAT(jobs_.run(job, context_).message(), HasSubstr("its reason"));
}

TEST_F(OfflineJobsTest, ARunThatIsOverEndsItsCalls) {
  // Over with the first call, of which no answer comes.
  FakeInference held(
      names_,
      [this](const ModelInfo& model, const Query& query) {
        context_.over_ = true;
        return compute(model, query);
      },
      monotonic_now);
  held.hold();
  OfflineJobs jobs({.now = monotonic_now, .tenant_of = [](const std::string&) { return std::shared_ptr<Tenant>(); }},
                   folder_, catalog_, held);
  EXPECT_FALSE(jobs.run(accepted(), context_).ok());
  EXPECT_EQ(context_.done_, 0u);
}

TEST_F(OfflineJobsTest, FilesThatChangedMeanwhileAreNoticed) {
  Job job = accepted();
  ASSERT_TRUE(jobs_.run(job, context_).ok());
  job.done = 50;
  fs::remove(root_ / "answers" / "y.npy");
  EXPECT_THAT(jobs_.run(job, context_).message(), HasSubstr("y.npy: cannot be continued"));
  std::ofstream(root_ / "answers" / "y.npy") << "another";
  EXPECT_THAT(jobs_.run(job, context_).message(), HasSubstr("y.npy is not the array that the job began"));
  write_npy_file<float>(root_ / "rows.npy", DataType::kFloat32, {1, 2}, {1, 2});
  EXPECT_THAT(jobs_.run(job, context_).message(), HasSubstr("inputs have changed"));
  fs::remove(root_ / "rows.npy");
  EXPECT_THAT(jobs_.run(job, context_).message(), HasSubstr("'rows.npy'"));
}

TEST_F(OfflineJobsTest, AJobWhoseKeyIsGoneFails) {
  Job job = accepted();
  job.owner = "mobile-app";
  EXPECT_EQ(jobs_.run(job, context_).message(), "no key 'mobile-app'");
}

TEST_F(OfflineJobsTest, WrongRequestsAreRefusedAndClaimNothing) {
  write_npy_file<float>(root_ / "short.npy", DataType::kFloat32, {5, 2}, std::vector<float>(10));
  write_npy_file<float>(root_ / "none.npy", DataType::kFloat32, {0, 2}, {});
  write_npy_file<float>(root_ / "torn.npy", DataType::kFloat32, {5, 2}, std::vector<float>(9));
  const auto error = [this](const std::string& name, const std::string& inputs) {
    return refused(fmt::format(R"({{{},"inputs":{},"output":"answers"}})", name, inputs)).message();
  };
  const std::string model = R"("model":"doubling")";
  EXPECT_THAT(error(R"("model":"absent")", R"({"x":"rows.npy"})"), HasSubstr("unknown model 'absent'"));
  EXPECT_THAT(error(R"("task":"doubling")", R"({"x":"rows.npy"})"), HasSubstr("'doubling' is no task but a model"));
  EXPECT_THAT(error(model, R"({"x":"absent.npy"})"), HasSubstr("input 'x': path 'absent.npy': No such file"));
  EXPECT_THAT(error(model, R"({"x":"../rows.npy"})"), HasSubstr("begins with a dot"));
  EXPECT_THAT(error(model, R"({"x":"none.npy"})"), HasSubstr("none.npy has no rows"));
  EXPECT_THAT(error(model, R"({"x":"torn.npy"})"), HasSubstr("it is damaged, or still being written"));
  EXPECT_THAT(error(model, R"({"x":"rows.npy","z":"short.npy"})"), HasSubstr("input 'z' has 5 rows, and 'x' has 103"));
  EXPECT_FALSE(fs::exists(root_ / "answers"));
}

TEST_F(OfflineJobsTest, OutputsOfOneKeyHaveALimit) {
  constexpr uint64_t kBytes = uint64_t{kRows} * 2 * sizeof(float);
  Job job = accepted();
  Job earlier = job_of(R"({"model":"doubling","inputs":{"x":"rows.npy"},"output":"earlier"})");
  earlier.id = "earlier";
  earlier.state = JobState::kSucceeded;
  earlier.bytes = kOwnerBytes - kBytes;
  fs::create_directories(root_ / "earlier");
  known_ = {job, earlier};
  ASSERT_TRUE(jobs_.run(job, context_).ok());
  EXPECT_EQ(context_.bytes_, kBytes);

  fs::remove(root_ / "answers" / "y.npy");
  known_[1].bytes += 1;
  EXPECT_EQ(jobs_.run(job, context_).message(),
            fmt::format("its outputs take {} bytes, and those of other jobs of the same key {}; at most {} are allowed "
                        "(--jobs-bytes-per-key): remove outputs that are not needed",
                        kBytes, kOwnerBytes - kBytes + 1, kOwnerBytes));
  EXPECT_FALSE(fs::exists(root_ / "answers" / "y.npy"));
  known_[1].owner = "another";
  EXPECT_TRUE(jobs_.run(job, context_).ok());

  fs::remove(root_ / "answers" / "y.npy");
  known_[1].owner = "";
  known_[1].bytes = kOwnerBytes;
  const Status full = refused(R"({"model":"doubling","inputs":{"x":"rows.npy"},"output":"more"})");
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("(--jobs-bytes-per-key)"));
  EXPECT_FALSE(fs::exists(root_ / "more"));
  fs::remove(root_ / "earlier");
  EXPECT_TRUE(jobs_.run(job, context_).ok()) << "what is removed takes nothing";
}

TEST_F(OfflineJobsTest, AnOutputIsOfOneJob) {
  const auto again = [this](const std::string& output) {
    return refused(fmt::format(R"({{"model":"doubling","inputs":{{"x":"rows.npy"}},"output":"{}"}})", output)).code();
  };
  known_ = {accepted()};
  fs::create_directory_symlink("answers", root_ / "link");
  EXPECT_EQ(again("answers"), StatusCode::kAlreadyExists);
  EXPECT_EQ(again("link"), StatusCode::kAlreadyExists);
  // Empty, and no job has it: a process that was killed left it.
  known_[0].state = JobState::kFailed;
  EXPECT_EQ(again("answers"), StatusCode::kOk);
  std::ofstream(root_ / "answers" / "y.npy") << "answers";
  EXPECT_EQ(again("answers"), StatusCode::kAlreadyExists);
  std::ofstream(root_ / "file") << "no folder";
  EXPECT_EQ(again("file"), StatusCode::kAlreadyExists);
}

TEST_F(OfflineJobsTest, WhatWasClaimedIsGivenBack) {
  jobs_.discard(accepted());
  EXPECT_FALSE(fs::exists(root_ / "answers"));
}

}  // namespace
}  // namespace foliot
