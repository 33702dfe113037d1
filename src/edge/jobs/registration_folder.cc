#include "edge/jobs/registration_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "foundation/base/error_text.h"
#include "foundation/base/folder_listing.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using MadeJson = nlohmann::json;

// ONNX in one file has at most so many.
constexpr uint64_t kNetworkBytesMax = uint64_t{2} << 30;
constexpr uint64_t kValidationBytesMax = uint64_t{4} << 30;
constexpr size_t kMadeJsonBytesMax = 64 << 10;

Status draft_failure(const fs::path& file, std::string_view what, int error) {
  std::string text = fmt::format("{}: cannot {}: {}", file.string(), what, error_text(error));
  if (error == ENOSPC || error == EDQUOT) return Status::resource_exhausted(text + "; free space on its disk");
  return Status::internal(std::move(text));
}

Status make_draft_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? draft_failure(folder, "be made", error.value()) : Status();
}

Status write_draft_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? Status() : draft_failure(file, "be written", errno);
}

Status write_all(int file, const char* bytes, size_t count, const fs::path& name) {
  for (size_t put = 0; put < count;) {
    const ssize_t written = ::write(file, bytes + put, count - put);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return draft_failure(name, "be written", errno);
    put += static_cast<size_t>(written);
  }
  return Status();
}

// `path`: the client's name for it.
Status copy_file_of(const Descriptor& from, const std::string& path, const fs::path& to, const JobContext& context) {
  const Descriptor file(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.is_open()) return draft_failure(to, "be made", errno);
  std::vector<char> block(size_t{1} << 20);
  while (!context.is_over()) {
    const ssize_t got = ::read(from.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::internal(fmt::format("{}: cannot be read: {}", path, error_text(errno)));
    if (got == 0) return ::fsync(file.number()) == 0 ? Status() : draft_failure(to, "be written", errno);
    FOLIOT_RETURN_IF_ERROR(write_all(file.number(), block.data(), static_cast<size_t>(got), to));
  }
  return Status::unavailable("the run was ended before its files were copied");
}

Status copy_limited(const JobFolder& folder, const std::string& path, uint64_t bytes_max, const fs::path& to,
                    const JobContext& context) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor file, folder.open_file(path));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) {
    return Status::internal(fmt::format("{}: {}", path, error_text(errno)));
  }
  if (static_cast<uint64_t>(found.st_size) > bytes_max) {
    return Status::resource_exhausted(
        fmt::format("{} has {} bytes; at most {} are registered", path, found.st_size, bytes_max));
  }
  return copy_file_of(file, path, to, context);
}

std::string model_toml_of(const RegistrationRequest& request, const std::string& precision) {
  std::string text = fmt::format("batch_sizes = [{}]\n", fmt::join(request.batch_sizes, ", "));
  if (precision == "bfloat16") text += "precision = \"bfloat16\"\n";
  return text;
}

// For the VariantMaker, with the names that clients know.
std::string source_json(const RegistrationRequest& request) {
  return MadeJson{{"file", request.file},
                  {"validation", request.validation},
                  {"labels", request.labels},
                  {"output", request.output},
                  {"calibration", request.calibration},
                  {"quantise", std::ranges::find(request.precisions, "int8") != request.precisions.end()}}
      .dump();
}

Status not_made(std::string_view what) {
  return Status::invalid_argument(fmt::format("the process that makes variants wrote {}", what));
}

Result<std::string> read_made_json(const JobFolder& made) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor file, made.open_file("made.json"));
  std::string text(kMadeJsonBytesMax, '\0');
  const ssize_t got = ::pread(file.number(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace

Status RegistrationFolder::make() const {
  remove();
  FOLIOT_RETURN_IF_ERROR(make_draft_folder(source()));
  return make_draft_folder(made());
}

Status RegistrationFolder::copy_source(const JobFolder& folder, const RegistrationRequest& request,
                                       const JobContext& context) const {
  FOLIOT_RETURN_IF_ERROR(
      copy_limited(folder, request.file, kNetworkBytesMax, source() / "model.onnx", context).with_context("'file'"));
  FOLIOT_RETURN_IF_ERROR(
      copy_limited(folder, request.validation, kValidationBytesMax, source() / "validation.npz", context)
          .with_context("'validation'"));
  return write_draft_file(source() / "request.json", source_json(request));
}

Status RegistrationFolder::make_variants(const RegistrationRequest& request) const {
  for (const std::string& precision : request.precisions) {
    const fs::path folder = variant(request.model_of(precision));
    FOLIOT_RETURN_IF_ERROR(make_draft_folder(folder));
    FOLIOT_RETURN_IF_ERROR(write_draft_file(folder / "model.toml", model_toml_of(request, precision)));
    std::error_code error;
    if (precision == "int8") {
      // Nothing changes it any more.
      if (!fs::is_regular_file(fs::symlink_status(made() / "int8.onnx", error))) return not_made("no int8.onnx");
      fs::rename(made() / "int8.onnx", folder / "model.onnx", error);
    } else {
      fs::create_hard_link(source() / "model.onnx", folder / "model.onnx", error);
    }
    if (error) return draft_failure(folder / "model.onnx", "be made", error.value());
  }
  return Status();
}

Result<MeasuringSet> RegistrationFolder::measuring_set() const {
  FOLIOT_ASSIGN_OR_RETURN(const JobFolder made, JobFolder::open(this->made()));
  FOLIOT_ASSIGN_OR_RETURN(const std::string text, read_made_json(made));
  FOLIOT_ASSIGN_OR_RETURN(const MadeJson json, parse_bounded_json(text));
  FOLIOT_ASSIGN_OR_RETURN(InputFile labels, InputFile::open(made, "labels.npy"));
  MeasuringSet set{.inputs = {}, .labels = std::move(labels), .output = {}};
  std::vector<std::string> names;
  try {
    names = json.at("inputs").get<std::vector<std::string>>();
    set.output = json.at("output").get<std::string>();
    set.rows = json.at("rows").get<uint64_t>();
    set.calibrated = json.at("calibrated").get<uint64_t>();
  } catch (const std::exception& error) {
    return not_made(fmt::format("a made.json that cannot be read: {}", error.what()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(InputFile rows, InputFile::open(made, fmt::format("rows/{}.npy", i)));
    if (rows.rows() != set.labels.rows()) return not_made("other numbers of rows and of labels");
    set.inputs.emplace(names[i], std::move(rows));
  }
  if (set.inputs.empty()) return not_made("no rows");
  return set;
}

Result<Descriptor> RegistrationFolder::make_answers() const {
  std::error_code ignored;
  fs::remove_all(path_ / "answers", ignored);
  FOLIOT_RETURN_IF_ERROR(make_draft_folder(path_ / "answers"));
  Descriptor folder(::open((path_ / "answers").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return draft_failure(path_ / "answers", "be opened", errno);
  return folder;
}

Result<InputFile> RegistrationFolder::answers(const std::string& output) const {
  const fs::path folder = path_ / "answers";
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> files, list_folder(folder));
  std::vector<std::string> there;
  for (const fs::path& file : files) there.push_back(file.stem().string());
  if (std::ranges::find(there, output) == there.end()) {
    return Status::invalid_argument(
        fmt::format("the network has no output '{}' ('output'); it has {}", output, fmt::join(there, ", ")));
  }
  FOLIOT_ASSIGN_OR_RETURN(const JobFolder opened, JobFolder::open(folder));
  return InputFile::open(opened, output + ".npy");
}

void RegistrationFolder::remove() const {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace foliot
