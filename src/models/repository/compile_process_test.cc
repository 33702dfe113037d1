#include "models/repository/compile_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iostream>
#include <iterator>

#include "foundation/platform/descriptor.h"
#include "foundation/process/fork_server.h"

namespace foliot {
namespace {

using testing::HasSubstr;

// This program as the process that stands by. Its copies get nowhere with what others
// leave them.
const bool stands_by = [] {
  std::ifstream command("/proc/self/cmdline");
  const std::string words{std::istreambuf_iterator<char>(command), {}};
  if (!words.ends_with(std::string(kStandBy) + '\0')) return false;
  serve_forks();
  const auto request = decode_request(std::string{std::istreambuf_iterator<char>(std::cin), {}});
  const bool starves = request.ok() && request->share == CpuShare::kLeftover;
  const std::string written = starves ? "half" : "all";
  const std::string said = encode_line(CompileStep{starves ? "leftover" : "small"}) + encode_line(CompileEnd{});
  const bool done =
      ::write(3, written.data(), written.size()) > 0 && ::write(STDOUT_FILENO, said.data(), said.size()) > 0;
  if (starves) ::pause();
  ::_exit(done ? 0 : 1);
}();

TEST(CompileDialogueTest, RequestsComeAsTheyWent) {
  CompileRequest request{.model = "/a folder/\xff\"/model.onnx",
                         .threads = 3,
                         .gpu = "a GPU",
                         .share = CpuShare::kSmall,
                         .memory_bytes = uint64_t{1} << 40,
                         .cpu_time = Duration::seconds(7)};
  request.options.batch_sizes = {1, 3};
  request.options.buckets = {{"sequence \"length\"", {8, 16}}};
  request.options.batch_dimensions = {"N", "M"};
  request.options.precision = Precision::kBfloat16;
  request.options.page_bytes = 8192;
  request.options.profile_runs = 9;
  request.options.workspace_bytes_max = 12345;
  request.options.owns_folder = false;
  const auto back = decode_request(encode_request(request));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->model, request.model);
  EXPECT_EQ(back->threads, 3u);
  EXPECT_EQ(back->gpu, "a GPU");
  EXPECT_EQ(back->share, CpuShare::kSmall);
  EXPECT_EQ(back->memory_bytes, request.memory_bytes);
  EXPECT_EQ(back->cpu_time, request.cpu_time);
  EXPECT_FALSE(back->options.owns_folder);
  EXPECT_EQ(compile_fingerprint(back->options), compile_fingerprint(request.options));
}

TEST(CompileDialogueTest, AnythingElseIsAnError) {
  const std::string good = encode_request({.model = "m"});
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(decode_request(good.substr(0, cut)).ok());
  for (const char* line : {"", "{", "[]", "5", "{}", "{\"step\":1,\"share\":2}", "{\"end\":\"no\"}", "\xff"}) {
    EXPECT_FALSE(decode_line(line).ok()) << line;
  }
}

TEST(CompileDialogueTest, LinesAreCleaned) {
  const auto step = decode_line(encode_line(CompileStep{"a\nb\x1b[2J", 7}));
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(std::get<CompileStep>(*step).step, "a b [2J");
  EXPECT_EQ(std::get<CompileStep>(*step).share, 1.0);
  const auto end = decode_line("{\"end\":99,\"message\":\"m\"}");
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(std::get<CompileEnd>(*end).status.code(), StatusCode::kInternal);
}

// Processes that do what a hostile model could make of a compiler.
class CompileProcessTest : public testing::Test {
 protected:
  Status run(const std::string& script, const CompileWatch& watch = {}, const CompileLimits& limits = {}) {
    CompileProcess process({"/bin/sh", "-c", script}, limits);
    const Descriptor output(::memfd_create("package", MFD_CLOEXEC));
    const Status status = process.compile({.model = "model.onnx"}, output.number(), watch);
    unconfined_ = process.unconfined();
    return status;
  }
  std::set<std::string> unconfined_;
};

TEST_F(CompileProcessTest, PassesOnProgress) {
  std::vector<std::string> steps;
  const CompileWatch watch{.progress = [&](std::string_view step, double) { steps.emplace_back(step); },
                           .cancelled = {}};
  const Status status =
      run("echo '{\"unconfined\":\"no walls\"}'; echo '{\"step\":\"one\",\"share\":0.5}'; echo nonsense; "
          "printf '{\"step\":\"two\",'; echo '\"share\":1}'; echo '{\"end\":0,\"message\":\"\"}'",
          watch);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(steps, testing::ElementsAre("one", "two"));
  EXPECT_THAT(unconfined_, testing::ElementsAre("no walls"));
}

TEST_F(CompileProcessTest, ItsErrorIsTheError) {
  const Status status = run("echo '{\"end\":5,\"message\":\"operator Frobnicate\"}'; exit 1");
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "operator Frobnicate");
}

TEST_F(CompileProcessTest, ACrashIsAnErrorWithItsLastWords) {
  const Status status = run("echo 'check failed: x' >&2; kill -SEGV $$");
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("signal 11"));
  EXPECT_THAT(status.message(), HasSubstr("check failed: x"));
}

TEST_F(CompileProcessTest, AnEndWithoutAWordIsAnError) {
  EXPECT_EQ(run("exit 0").code(), StatusCode::kInternal);
  EXPECT_THAT(run("echo '{\"end\":0,\"message\":\"\"}'; kill -SEGV $$").message(), HasSubstr("signal 11"));
}

TEST_F(CompileProcessTest, AFloodOfWordsIsDropped) {
  const Status status = run("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 2");
  EXPECT_THAT(status.message(), HasSubstr("exit code 2"));
  EXPECT_LT(status.message().size(), 2000u);
}

TEST_F(CompileProcessTest, CanBeCancelled) {
  int asked = 0;
  const Status status = run("exec sleep 1000", {.progress = {}, .cancelled = [&] { return ++asked == 2; }});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

TEST_F(CompileProcessTest, OneThatStarvesBeginsAgainWithASmallShare) {
  ASSERT_FALSE(stands_by);
  std::vector<std::string> steps;
  const CompileWatch watch{.progress = [&](std::string_view step, double) { steps.emplace_back(step); },
                           .cancelled = {}};
  CompileProcess process({"/proc/self/exe"}, {.starved_after = Duration::milliseconds(20)});
  const Descriptor output(::memfd_create("package", MFD_CLOEXEC));
  const Status status = process.compile({.model = "model.onnx", .share = CpuShare::kLeftover}, output.number(), watch);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(steps, testing::ElementsAre("leftover", "small"));
  std::array<char, 8> written{};
  EXPECT_EQ(::pread(output.number(), written.data(), written.size(), 0), 3);
  EXPECT_STREQ(written.data(), "all");
}

TEST_F(CompileProcessTest, OneThatHangsIsEnded) {
  const Status status = run("exec >&- 2>&-; exec sleep 1000", {}, {.cpu_time = Duration::milliseconds(20)});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("--compile-time"));
}

}  // namespace
}  // namespace foliot
