#include "edge/jobs/registration_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <thread>

#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/conformance/test_models.h"
#include "edge/jobs/npy_header.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Is over, by cancellation or not, once `most` steps are kept.
class StepContext : public JobContext {
 public:
  bool is_over() const override { return over_; }
  bool is_cancelled() const override { return over_ && cancels_; }
  void keep(uint64_t done, uint64_t total, const std::map<std::string, uint64_t>&) override {
    done_ = done;
    total_ = total;
    if (done >= most_) over_ = true;
  }
  void keep_accuracy(const std::string& model, double accuracy) override { accuracies_[model] = accuracy; }
  void keep_bytes(uint64_t) override {}
  void set_waiting(std::string why) override { said_.push_back(std::move(why)); }
  void wait(Duration) override { std::this_thread::yield(); }

  std::atomic<bool> over_{false};
  bool cancels_ = false;
  uint64_t most_ = std::numeric_limits<uint64_t>::max();
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  std::map<std::string, double> accuracies_;
  std::vector<std::string> said_;
};

template <typename T>
void write_array_file(const fs::path& file, DataType type, const Shape& shape, const std::vector<T>& values) {
  std::ofstream out(file, std::ios::binary);
  out << npy_header(type, shape);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

// Four rows of two classes, of which the network doubles each; one label is wrong.
class FakeVariantMaker : public VariantMaker {
 public:
  Status make(const RegistrationFolder& folder, const JobContext&) override {
    ++calls_;
    if (!failure_.ok()) return failure_;
    fs::create_directories(folder.made() / "rows");
    write_array_file<float>(folder.made() / "rows/0.npy", DataType::kFloat32, {4, 2}, {1, 0, 0, 1, 3, 2, 5, 7});
    write_array_file<int64_t>(folder.made() / "labels.npy", DataType::kInt64, {4}, {0, 1, 0, 0});
    std::ofstream(folder.made() / "int8.onnx") << "int8";
    std::ofstream(folder.made() / "made.json") << made_;
    return Status();
  }
  int calls_ = 0;
  Status failure_;
  std::string made_ = R"({"inputs":["x"],"output":"y","rows":5,"calibrated":1})";
};

class FakeVariantHost : public VariantHost {
 public:
  FakeVariantHost(Catalog& catalog, fs::path root) : catalog_(catalog), root_(std::move(root)) {}
  fs::path drafts() const override { return root_ / "drafts"; }
  Status check(const TaskAddition& addition) const override {
    return addition.task == "taken" ? Status::already_exists("'taken' is taken") : Status();
  }
  Status try_out(const std::string& model, const fs::path& folder, const JobContext&) override {
    tried_.push_back(model);
    EXPECT_TRUE(fs::exists(folder / "model.onnx"));
    EXPECT_TRUE(fs::exists(folder / "model.toml"));
    if (model == broken_) return Status::unimplemented("operator 'Odd' is unknown");
    ModelInfo info = doubling_model(ModelId(++ids_));
    info.name = model;
    catalog_.put({.name = model,
                  .version = info.version,
                  .state = ModelState::kReady,
                  .reason = "",
                  .info = std::make_shared<const ModelInfo>(info)});
    return Status();
  }
  void withdraw(const std::string& model) override { catalog_.remove(model); }
  Status publish(const fs::path& draft, const TaskAddition& addition) override {
    EXPECT_TRUE(fs::exists(draft));
    if (!publication_.ok()) return publication_;
    published_ = addition;
    return Status();
  }
  void take_back(const fs::path& draft) override { taken_back_.push_back(draft.filename()); }

  Catalog& catalog_;
  const fs::path root_;
  uint32_t ids_ = 0;
  std::vector<std::string> tried_;
  std::vector<std::string> taken_back_;
  std::string broken_;
  Status publication_;
  std::optional<TaskAddition> published_;
};

constexpr const char* kRegistration = R"({"task":"digits","file":"net.onnx","validation":"set.npz","accuracy":0.5})";

class RegistrationJobsTest : public testing::Test {
 protected:
  RegistrationJobsTest() {
    std::ofstream(root_ / "net.onnx") << "network";
    std::ofstream(root_ / "set.npz") << "set";
  }
  ~RegistrationJobsTest() override { fs::remove_all(root_); }

  static Job job_of(const std::string& request, const std::string& id = "a") {
    return {.id = id, .number = 1, .kind = "register", .request = request};
  }
  Status refused(const std::string& request) {
    Job job = job_of(request);
    return registrations_.accept(job);
  }
  Job accepted() {
    Job job = job_of(kRegistration);
    const Status status = registrations_.accept(job);
    EXPECT_TRUE(status.ok()) << status.message();
    return job;
  }
  // What a job that goes on knows.
  static Job after(Job job, const StepContext& context) {
    job.done = context.done_;
    job.accuracies = context.accuracies_;
    return job;
  }
  void expect_nothing_left() {
    EXPECT_FALSE(fs::exists(host_.drafts() / "a"));
    EXPECT_TRUE(catalog_.empty());
    EXPECT_FALSE(host_.published_);
  }

  const fs::path root_ = fs::path(testing::TempDir()) / fmt::format("foliot_register_{}", ::getpid());
  const JobFolder folder_ = JobFolder::open(root_).value();
  Catalog catalog_;
  ServedNames names_{catalog_};
  FakeInference inference_{names_, double_inputs, monotonic_now};
  OfflineJobs offline_{{.wait_first = Duration::microseconds(1),
                        .wait_most = Duration::milliseconds(1),
                        .now = monotonic_now,
                        .tenant_of = [](const std::string& owner) -> Result<std::shared_ptr<Tenant>> {
                          if (owner.empty()) return std::shared_ptr<Tenant>();
                          return Status::not_found(fmt::format("no key '{}'", owner));
                        }},
                       folder_,
                       catalog_,
                       inference_};
  FakeVariantMaker maker_;
  FakeVariantHost host_{catalog_, root_};
  std::vector<Job> known_;
  RegistrationJobs registrations_{folder_, offline_, maker_, host_, [this] { return known_; }};
  StepContext context_;
};

TEST_F(RegistrationJobsTest, VariantsArePublishedWithTheirAccuracy) {
  const Job job = accepted();
  EXPECT_EQ(job.total, 5u);
  const Status status = registrations_.run(job, context_);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(host_.published_);
  EXPECT_EQ(host_.published_->task, "digits");
  EXPECT_EQ(host_.published_->accuracy, 0.5);
  ASSERT_EQ(host_.published_->variants.size(), 3u);
  for (const MeasuredVariant& variant : host_.published_->variants) EXPECT_EQ(variant.accuracy, 0.75) << variant.model;
  EXPECT_EQ(host_.published_->remark, "digits: accuracies of 4 rows of 5; 1 calibrated int8");
  EXPECT_THAT(host_.tried_, ElementsAre("digits-float32", "digits-bfloat16", "digits-int8"));
  EXPECT_EQ(context_.done_, 5u);
  EXPECT_EQ(context_.accuracies_.size(), 3u);
  EXPECT_THAT(context_.said_, testing::Contains("compiling 'digits-int8'"));
  EXPECT_THAT(context_.said_, testing::Contains("measuring 'digits-int8': 4 of 4 rows"));
  EXPECT_FALSE(fs::exists(host_.drafts() / "a"));
}

TEST_F(RegistrationJobsTest, GoesOnAfterTheLastStepThatLasts) {
  const Job job = accepted();
  for (uint64_t step = 1; step < 5; ++step) {
    StepContext context;
    context.most_ = step;
    host_.tried_.clear();
    const Status interrupted = registrations_.run(job, context);
    ASSERT_EQ(interrupted.ok(), step == 4) << "the last step is not interrupted";
    if (step == 4) break;
    EXPECT_FALSE(host_.published_);
    StepContext next;
    const size_t tried = host_.tried_.size();
    ASSERT_TRUE(registrations_.run(after(job, context), next).ok());
    EXPECT_EQ(host_.tried_.size() - tried, 4 - step);
    EXPECT_EQ(maker_.calls_, static_cast<int>(step));
    ASSERT_EQ(host_.published_->variants.size(), 3u);
    EXPECT_EQ(host_.published_->variants[0].accuracy, 0.75);
    host_.published_.reset();
  }
}

TEST_F(RegistrationJobsTest, WhatFailsLeavesNothing) {
  const Job job = accepted();
  maker_.failure_ = Status::invalid_argument("set.npz: the validation set is empty");
  EXPECT_EQ(registrations_.run(job, context_).message(), "set.npz: the validation set is empty");
  expect_nothing_left();
  maker_.failure_ = Status();

  host_.broken_ = "digits-int8";
  EXPECT_EQ(registrations_.run(job, context_).message(), "variant 'digits-int8': operator 'Odd' is unknown");
  expect_nothing_left();
  host_.broken_.clear();

  host_.publication_ = Status::resource_exhausted("no room");
  EXPECT_EQ(registrations_.run(job, context_).message(), "no room");
  EXPECT_THAT(host_.taken_back_, testing::SizeIs(3));
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, ACancelledOneLeavesNothing) {
  context_.cancels_ = true;
  context_.most_ = 2;
  EXPECT_FALSE(registrations_.run(accepted(), context_).ok());
  EXPECT_EQ(context_.done_, 2u);
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, AnInterruptedOneThatIsCancelledLeavesNothing) {
  const Job job = accepted();
  context_.most_ = 2;
  EXPECT_FALSE(registrations_.run(job, context_).ok());
  EXPECT_TRUE(fs::exists(host_.drafts() / "a"));
  registrations_.discard(after(job, context_));
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, WhatTheMakerWroteIsChecked) {
  const Job job = accepted();
  maker_.made_ = "nonsense";
  EXPECT_THAT(registrations_.run(job, context_).message(), HasSubstr("a made.json that cannot be read"));
  maker_.made_ = R"({"inputs":["x","z"],"output":"y","rows":5,"calibrated":1})";
  EXPECT_THAT(registrations_.run(job, context_).message(), HasSubstr("rows/1.npy"));
  maker_.made_ = R"({"inputs":["x"],"output":"w","rows":5,"calibrated":1})";
  EXPECT_EQ(registrations_.run(job, context_).message(),
            "variant 'digits-float32': the network has no output 'w' ('output'); it has y");
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, WrongRequestsAreRefused) {
  EXPECT_EQ(refused(R"({"task":"digits","file":"gone.onnx","validation":"set.npz"})").message(),
            "'file': path 'gone.onnx': No such file or directory");
  EXPECT_THAT(refused(R"({"task":"digits","file":"net.onnx","validation":"../set.npz"})").message(),
              HasSubstr("'validation': path '../set.npz' has a part that begins with a dot"));
  EXPECT_EQ(refused(R"({"task":"taken","file":"net.onnx","validation":"set.npz"})").message(), "'taken' is taken");
  known_ = {job_of(kRegistration, "b")};
  EXPECT_EQ(refused(kRegistration).message(),
            "job 'b' makes 'digits-float32' already; cancel it, or give another 'name'");
  known_[0].state = JobState::kFailed;
  EXPECT_TRUE(refused(kRegistration).ok());
}

TEST_F(RegistrationJobsTest, FilesThatChangedMeanwhileAreNoticed) {
  const Job job = accepted();
  std::ofstream(root_ / "net.onnx") << "another network";
  EXPECT_THAT(registrations_.run(job, context_).message(), HasSubstr("files have changed since"));
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, AJobWhoseKeyIsGoneFails) {
  Job job = accepted();
  job.owner = "mobile-app";
  EXPECT_EQ(registrations_.run(job, context_).message(), "variant 'digits-float32': no key 'mobile-app'");
  expect_nothing_left();
}

TEST_F(RegistrationJobsTest, OldDraftsAreRemoved) {
  for (const char* id : {"running", "failed", "unknown"}) fs::create_directories(host_.drafts() / id / "source");
  Job running = job_of(kRegistration, "running"), failed = job_of(kRegistration, "failed");
  failed.state = JobState::kFailed;
  RegistrationJobs::remove_old_drafts({running, failed}, host_);
  EXPECT_TRUE(fs::exists(host_.drafts() / "running"));
  EXPECT_FALSE(fs::exists(host_.drafts() / "failed"));
  EXPECT_FALSE(fs::exists(host_.drafts() / "unknown"));
  std::ranges::sort(host_.taken_back_);
  EXPECT_THAT(host_.taken_back_, ElementsAre("failed", "unknown"));
}

}  // namespace
}  // namespace foliot
