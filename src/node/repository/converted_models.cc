#include "node/repository/converted_models.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "engine/container/container_description.h"
#include "engine/container/container_launch.h"
#include "engine/container/temporary_folder.h"
#include "foundation/base/error_text.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/hash.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/process/child_process.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGraph = "model.onnx";
constexpr std::string_view kAnswers = "model.onnx.answers";
constexpr std::string_view kDescription = "description.json";
constexpr std::string_view kNote = "note.txt";
constexpr std::string_view kReason = "reason.txt";
constexpr std::string_view kCannot = "exit code 2";
constexpr size_t kTextBytesMax = size_t{64} << 10;
// Of what a conversion writes, together.
constexpr uint64_t kConvertedBytesMax = uint64_t{1} << 30;
constexpr Duration kTimeMax = Duration::seconds(300);

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return in ? text.substr(0, kTextBytesMax) : std::string();
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\n') + 1);
  const size_t end_of_line = text.rfind('\n');
  return escaped(end_of_line == std::string_view::npos ? text : text.substr(end_of_line + 1));
}

// Starts the process with this variable beside those of the container's, and returns when it has ended, what it wrote.
struct Ended {
  bool succeeded = false;
  bool cannot = false;
  std::string ending{}, said{}, complained{};
};
Result<Ended> run(const ContainerOptions& options, const fs::path& temporary, const std::string& variable,
                  const std::function<bool()>& cancelled) {
  ChildOptions child;
  child.command = options.launcher;
  child.environment = container_environment(options, temporary);
  child.environment.push_back(variable);
  child.input = encode_launch({.python = options.python,
                               .module = "foliot.onnx_maker",
                               .folder = options.folder,
                               .package = options.package,
                               .temporary = temporary,
                               .readable = options.readable,
                               .memory_bytes = options.memory_bytes,
                               .namespaces = true,
                               .safety = options.safety});
  child.namespaces.emplace();
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::start(child));
  Ended ended;
  const TimePoint deadline = monotonic_now() + kTimeMax;
  while (process.listen(Duration::milliseconds(100), ended.said, ended.complained)) {
    for (std::string* text : {&ended.said, &ended.complained}) {
      if (text->size() > 2 * kTextBytesMax) text->erase(0, text->size() - kTextBytesMax);
    }
    if (cancelled && cancelled()) return Status::unavailable("converting was cancelled");
    if (monotonic_now() > deadline) {
      return Status::resource_exhausted(fmt::format("converting it took longer than {}", format_duration(kTimeMax)));
    }
  }
  ended.succeeded = process.succeeded();
  ended.ending = process.ending();
  ended.cannot = ended.ending == kCannot;
  return ended;
}

Status cannot_write(const fs::path& place, std::string_view why) {
  return Status::internal(fmt::format("{} cannot be written: {}", place.string(), why));
}

// Copies what the process wrote to `to`, which then has all or is not there.
Status take(const fs::path& from, const fs::path& to, std::span<const std::string_view> files) {
  std::error_code error;
  std::string draft = to.string() + ".XXXXXX";
  fs::create_directories(to.parent_path(), error);
  if (::mkdtemp(draft.data()) == nullptr) return cannot_write(draft, error_text(errno));
  Status status;
  for (const std::string_view name : files) {
    const fs::path file = from / name;
    if (!fs::is_regular_file(fs::symlink_status(file, error)) || fs::file_size(file, error) > kConvertedBytesMax) {
      status = Status::internal(fmt::format("converting it made no {}", name));
    } else if (!fs::copy_file(file, fs::path(draft) / name, error)) {
      status = cannot_write(draft, error.message());
    }
    if (!status.ok()) break;
  }
  if (status.ok()) {
    fs::permissions(draft,
                    fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                        fs::perms::others_exec,
                    error);
    fs::rename(draft, to, error);  // fails where another has made the same meanwhile
  }
  fs::remove_all(draft, error);
  return status;
}

Result<ConvertedModels::Converted> open(const fs::path& place) {
  const std::string reason = read_text(place / kReason);
  if (!reason.empty()) return Status::unimplemented(reason);
  FOLIOT_ASSIGN_OR_RETURN(ContainerDescription description, parse_description(read_text(place / kDescription)));
  return ConvertedModels::Converted{.model = place / kGraph,
                                    .inputs = std::move(description.inputs),
                                    .outputs = std::move(description.outputs),
                                    .note = escaped(read_text(place / kNote))};
}

std::string describe(const TensorSpec& tensor) {
  return fmt::format("'{}' {} {}", tensor.name, to_string(tensor.type), to_string(tensor.shape));
}

}  // namespace

Result<ConvertedModels::Converted> ConvertedModels::get(const ModelFolder& model, const ContainerParts& parts,
                                                        const std::function<bool()>& cancelled) {
  FOLIOT_ASSIGN_OR_RETURN(ContainerOptions options,
                          container_options(model, parts.launcher, parts.package, parts.safety));
  FOLIOT_ASSIGN_OR_RETURN(std::string key, container_content(model));
  FOLIOT_ASSIGN_OR_RETURN(const std::string versions, versions_of(options, cancelled));
  StreamHash hash;
  key += "\n" + versions;
  hash.update(std::as_bytes(std::span(key)));
  const fs::path place = folder_ / hash.digest_hex();
  std::error_code error;
  if (!fs::exists(place, error)) FOLIOT_RETURN_IF_ERROR(make(std::move(options), place, cancelled));
  return open(place);
}

Result<std::string> ConvertedModels::versions_of(const ContainerOptions& options,
                                                 const std::function<bool()>& cancelled) {
  {
    const MutexLock lock(mutex_);
    const auto found = versions_.find(options.python);
    if (found != versions_.end()) return found->second;
  }
  FOLIOT_ASSIGN_OR_RETURN(const TemporaryFolder temporary, TemporaryFolder::make());
  FOLIOT_ASSIGN_OR_RETURN(const Ended ended, run(options, temporary.path(), "FOLIOT_ONNX_VERSIONS=1", cancelled));
  if (!ended.succeeded) {
    return Status::internal(
        fmt::format("its interpreter failed with {}: {}", ended.ending, last_line(ended.complained)));
  }
  const MutexLock lock(mutex_);
  return versions_[options.python] = ended.said;
}

Status ConvertedModels::make(ContainerOptions options, const fs::path& place, const std::function<bool()>& cancelled) {
  constexpr std::string_view kMade[] = {kGraph, kAnswers, kDescription, kNote};
  constexpr std::string_view kRefused[] = {kReason};
  FOLIOT_ASSIGN_OR_RETURN(const TemporaryFolder temporary, TemporaryFolder::make());
  const std::string output = "FOLIOT_ONNX_OUTPUT=" + temporary.path().string();
  FOLIOT_ASSIGN_OR_RETURN(const Ended ended, run(options, temporary.path(), output, cancelled));
  if (ended.succeeded) return take(temporary.path(), place, kMade);
  const std::string why = last_line(ended.complained);
  if (!ended.cannot) return Status::internal(fmt::format("converting it failed with {}: {}", ended.ending, why));
  std::ofstream(temporary.path() / kReason) << why;
  return take(temporary.path(), place, kRefused);
}

Status check_interface(const Program& program, const ConvertedModels::Converted& converted) {
  const auto check = [](const std::vector<TensorSpec>& wanted, const std::vector<TensorSpec>& found) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string has = i < found.size() ? describe(found[i]) : "nothing";
      if (has != describe(wanted[i])) {
        return Status::unimplemented(
            fmt::format("its container has {}, and compiled it has {}", describe(wanted[i]), has));
      }
    }
    return Status();
  };
  FOLIOT_RETURN_IF_ERROR(check(converted.inputs, program.inputs));
  return check(converted.outputs, program.outputs);
}

}  // namespace foliot
