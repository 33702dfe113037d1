#include "models/repository/compile_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>

#include "engine/program/package.h"
#include "foundation/base/check.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/process/child_process.h"
#include "foundation/process/confinement.h"
#include "foundation/process/periodic_yield.h"
#include "models/repository/answer_check.h"
#include "models/repository/model_folder.h"

namespace foliot {
namespace {

constexpr int kPackageFile = 3;
constexpr size_t kLineBytesMax = size_t{64} << 10;
constexpr size_t kComplaintBytesMax = 1024;
constexpr Duration kListen = Duration::milliseconds(50);
// A process that gets less than one of so many CPUs starves.
constexpr int64_t kStarvedPart = 10;

// Settings of libraries and sanitizers; nothing else of the server's environment, which
// may contain secrets.
std::vector<std::string> environment() {
  constexpr std::array<std::string_view, 7> kPassedOn{"VK_",           "LD_LIBRARY_PATH=", "ONEDNN_",      "DNNL_",
                                                      "ASAN_OPTIONS=", "UBSAN_OPTIONS=",   "TSAN_OPTIONS="};
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (std::ranges::any_of(kPassedOn, [&](std::string_view name) { return text.starts_with(name); })) {
      result.emplace_back(text);
    }
  }
  return result;
}

// One compilation, from the server's side.
class Session {
 public:
  Session(const CompileRequest& request, const CompileWatch& watch, std::set<std::string>& unconfined)
      : request_(request), watch_(watch), unconfined_(unconfined) {}

  // nullopt: it starved.
  std::optional<Status> run(ChildProcess child, Duration starved_after) {
    const Duration wall_time_max = request_.cpu_time * CompileLimits::kWallTimeFactor;
    const TimePoint begin = monotonic_now();
    const TimePoint give_up = begin + wall_time_max;
    while (child.listen(kListen, said_, complained_)) {
      read_lines();
      const Duration elapsed = monotonic_now() - begin;
      const bool hungry = request_.share == CpuShare::kLeftover && elapsed > starved_after;
      if (hungry && child.cpu_time() < elapsed / kStarvedPart) return std::nullopt;
      if (watch_.cancelled && watch_.cancelled()) return Status::unavailable("compiling was cancelled");
      if (wall_time_max > Duration() && monotonic_now() > give_up) {
        return Status::resource_exhausted(
            fmt::format("compiling took more than {}; raise --compile-time", format_duration(wall_time_max)));
      }
    }
    read_lines();
    if (end_ && (!end_->ok() || child.succeeded())) return *end_;
    return why_it_ended(child);
  }

 private:
  void read_lines() {
    size_t begin = 0;
    for (size_t end = 0; (end = said_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      read_line(std::string_view(said_).substr(begin, end - begin));
    }
    said_.erase(0, begin);
    if (said_.size() > kLineBytesMax) said_.clear();
    // The end of the output is the most useful part.
    if (complained_.size() > kComplaintBytesMax) complained_.erase(0, complained_.size() - kComplaintBytesMax);
  }

  void read_line(std::string_view text) {
    constexpr size_t kUnconfinedMax = 16;
    Result<CompileLine> line = decode_line(text);
    if (!line.ok()) return;
    if (const auto* step = std::get_if<CompileStep>(&*line); step != nullptr && watch_.progress) {
      watch_.progress(step->step, step->share);
    } else if (auto* unconfined = std::get_if<CompileUnconfined>(&*line)) {
      if (unconfined_.size() < kUnconfinedMax) unconfined_.insert(std::move(unconfined->what));
    } else if (auto* end = std::get_if<CompileEnd>(&*line)) {
      end_ = std::move(end->status);
    }
  }

  Status why_it_ended(const ChildProcess& child) const {
    if (child.signal() == SIGXCPU || (child.signal() == SIGKILL && request_.cpu_time > Duration())) {
      return Status::resource_exhausted(
          fmt::format("the process that compiled it was ended: it took more than {} of CPU time (raise "
                      "--compile-time), or the machine ran out of memory",
                      format_duration(request_.cpu_time)));
    }
    if (child.signal() == SIGXFSZ) {
      return Status::resource_exhausted(fmt::format("the compiled model is larger than {}; raise --compile-memory",
                                                    format_bytes(request_.memory_bytes)));
    }
    const auto last = complained_.find_last_not_of(" \n");
    const std::string words = last == std::string::npos ? "" : ": " + complained_.substr(0, last + 1);
    // A library that is refused memory may crash instead of saying so.
    const bool crashed = child.signal() == SIGSEGV || child.signal() == SIGBUS || child.signal() == SIGABRT;
    const std::string hint = crashed ? "; if it was memory that it lacked, raise --compile-memory" : "";
    return Status::internal(fmt::format("the process that compiled it ended with {}{}{}", child.ending(), words, hint));
  }

  const CompileRequest& request_;
  const CompileWatch& watch_;
  std::set<std::string>& unconfined_;
  std::string said_;
  std::string complained_;
  std::optional<Status> end_;
};

void say(const CompileLine& line) {
  const std::string text = encode_line(line);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<std::vector<std::filesystem::path>> readable_files(const CompileRequest& request) {
  if (!request.options.owns_folder) return list_model_files(request.model, false);
  const std::filesystem::path folder = request.model.parent_path();
  return std::vector{folder.empty() ? std::filesystem::path(".") : folder, request.model};
}

Status compile_as_asked(const CompileTarget& target) {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  FOLIOT_ASSIGN_OR_RETURN(const CompileRequest request, decode_request(input));
  std::optional<PeriodicYield> courtesy;
  if (request.share != CpuShare::kWhole) courtesy.emplace();
  FOLIOT_ASSIGN_OR_RETURN(std::vector<std::filesystem::path> readable, readable_files(request));
  Confinement confinement{.readable = std::move(readable),
                          .memory_bytes = request.memory_bytes,
                          .file_bytes = request.memory_bytes,
                          .cpu_time = request.cpu_time,
                          .background = request.share == CpuShare::kLeftover};
  if (!request.gpu.empty()) target.allow_gpu(confinement);
  FOLIOT_ASSIGN_OR_RETURN(const auto unconfined, confine(confinement));
  for (const std::string& what : unconfined) say(CompileUnconfined{what});
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, target.make_device(request));
  const auto progress = [](std::string_view step, double share) { say(CompileStep{std::string(step), share}); };
  FOLIOT_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          foliot::compile(request.model, request.options, *device, progress));
  if (const std::filesystem::path answers = answers_of(request.model); !answers.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<Device> fresh, target.make_device(request));
    FOLIOT_RETURN_IF_ERROR(check_answers(compiled, *fresh, answers));
  }
  return write_package(File(kPackageFile), compiled.program, compiled.weights);
}

}  // namespace

Status CompileProcess::compile(CompileRequest request, int output, const CompileWatch& watch) {
  request.memory_bytes = limits_.memory_bytes;
  request.cpu_time = limits_.cpu_time;
  std::optional<Status> status = try_compile(request, output, watch);
  if (status) return *std::move(status);
  if (::ftruncate(output, 0) != 0 || ::lseek(output, 0, SEEK_SET) != 0) {
    return Status::internal("cannot empty the file of a compilation that is begun again");
  }
  request.share = CpuShare::kSmall;
  status = try_compile(request, output, watch);
  FOLIOT_CHECK(status.has_value());
  return *std::move(status);
}

std::optional<Status> CompileProcess::try_compile(const CompileRequest& request, int output,
                                                  const CompileWatch& watch) {
  const bool is_first = [this] {
    const MutexLock lock(mutex_);
    return !std::exchange(has_compiled_, true);
  }();
  if (!is_first || request.share != CpuShare::kWhole) return try_in_copy(request, output, watch);
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::start({.command = command_,
                                                                   .environment = environment(),
                                                                   .input = encode_request(request),
                                                                   .output_file = output}));
  return follow(std::move(child), request, watch);
}

std::optional<Status> CompileProcess::try_in_copy(const CompileRequest& request, int output,
                                                  const CompileWatch& watch) {
  FOLIOT_ASSIGN_OR_RETURN(Copy copy, start_copy(request, output));
  std::optional<Status> status = follow(std::move(copy.child), request, watch);
  const MutexLock lock(mutex_);
  standbys_.push_back(std::move(copy.standby));
  return status;
}

Result<CompileProcess::Copy> CompileProcess::start_copy(const CompileRequest& request, int output) {
  const std::string input = encode_request(request);
  FOLIOT_ASSIGN_OR_RETURN(ForkServer standby, take_standby());
  Result<ChildProcess> child = standby.fork(input, output);
  if (child.ok()) return Copy{std::move(standby), std::move(child).value()};
  if (child.status().code() != StatusCode::kUnavailable) return child.status();
  // It was killed.
  FOLIOT_ASSIGN_OR_RETURN(ForkServer another, ForkServer::start(standby_command(), environment()));
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess second, another.fork(input, output));
  return Copy{std::move(another), std::move(second)};
}

std::optional<Status> CompileProcess::follow(ChildProcess child, const CompileRequest& request,
                                             const CompileWatch& watch) {
  std::set<std::string> unconfined;
  std::optional<Status> status = Session(request, watch, unconfined).run(std::move(child), limits_.starved_after);
  const MutexLock lock(mutex_);
  unconfined_.merge(unconfined);
  return status;
}

Result<ForkServer> CompileProcess::take_standby() {
  {
    const MutexLock lock(mutex_);
    if (!standbys_.empty()) {
      ForkServer standby = std::move(standbys_.back());
      standbys_.pop_back();
      return standby;
    }
  }
  return ForkServer::start(standby_command(), environment());
}

std::vector<std::string> CompileProcess::standby_command() const {
  std::vector<std::string> command = command_;
  command.emplace_back(kStandBy);
  return command;
}

std::set<std::string> CompileProcess::unconfined() const {
  const MutexLock lock(mutex_);
  return unconfined_;
}

int serve_compile_request(const CompileTarget& target) {
  Status status;
  try {
    status = compile_as_asked(target);
  } catch (const std::bad_alloc&) {
    status = Status::resource_exhausted("compiling needs more memory than it may use; raise --compile-memory");
  }
  say(CompileEnd{status});
  return status.ok() ? 0 : 1;
}

}  // namespace foliot
