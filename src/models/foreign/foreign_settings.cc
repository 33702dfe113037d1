#include "models/foreign/foreign_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "foundation/base/folder_listing.h"
#include "foundation/base/toml_text.h"
#include "foundation/config/repository_path.h"
#include "models/foreign/mlserver_settings.h"
#include "models/foreign/triton_settings.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMlserverFile = kForeignSettingsFiles[1];

Result<std::string> read_small_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kForeignBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || !stream.is_open()) {
    return Status::invalid_argument(
        fmt::format("{} cannot be read; let the server read it, or remove it", file.string()));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() <= kForeignBytesMax) return text;
  return Status::invalid_argument(
      fmt::format("{} has more than {} bytes; say in model.toml what the model needs, and remove it", file.string(),
                  kForeignBytesMax));
}

// As parse_duration() reads it, exactly.
std::string toml_duration(Duration duration) {
  constexpr int64_t kMicrosecond = 1000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
  const int64_t nanoseconds = duration.nanoseconds();
  if (nanoseconds % kSecond == 0 && nanoseconds > 0) return fmt::format("\"{}s\"", nanoseconds / kSecond);
  if (nanoseconds % kMillisecond == 0) return fmt::format("\"{}ms\"", nanoseconds / kMillisecond);
  return fmt::format("\"{}us\"", nanoseconds / kMicrosecond);
}

}  // namespace

Result<fs::path> find_foreign_settings(const fs::path& folder) {
  for (const std::string_view name : kForeignSettingsFiles) {
    const fs::path file = folder / name;
    FOLIOT_ASSIGN_OR_RETURN(const bool is_there, leads_to_file(file));
    if (is_there) return file;
  }
  return fs::path();
}

bool is_foreign_settings(std::string_view file_name) {
  return std::ranges::find(kForeignSettingsFiles, file_name) != kForeignSettingsFiles.end();
}

Result<ForeignSettings> read_foreign_settings(const fs::path& file, const std::string& folder_name) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string text, read_small_file(file));
  if (file.filename() == kMlserverFile) return parse_mlserver_settings(text, file.string());
  return parse_triton_settings(text, file.string(), folder_name);
}

ForeignNotes::~ForeignNotes() {
  if (left_out_ > 0) to_.push_back(fmt::format("{} more fields are not read", left_out_));
}

void ForeignNotes::add(std::string note) {
  if (is_full()) {
    ++left_out_;
  } else {
    to_.push_back(std::move(note));
  }
}

std::vector<std::string> model_toml_lines(const ForeignSettings& settings, bool is_container) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view key, const std::string& value, const std::string& where) {
    lines.push_back(fmt::format("{} = {}  # {}", key, value, where));
  };
  if (const auto& said = settings.name) add("name", toml_text(said->value), said->where);
  if (const auto& said = settings.default_slo) add("default_slo", toml_duration(said->value), said->where);
  if (const auto& said = settings.batch_delay) add("batch_delay", toml_duration(said->value), said->where);
  if (const auto& said = settings.cache) add("cache", said->value ? "true" : "false", said->where);
  if (const auto& said = settings.versions) add("versions", to_string(said->value), said->where);
  const auto& sizes = settings.batch_sizes;
  if (sizes && is_container) add("container.batch_size_max", fmt::format("{}", sizes->value.back()), sizes->where);
  if (sizes && !is_container) add("batch_sizes", fmt::format("[{}]", fmt::join(sizes->value, ", ")), sizes->where);
  return lines;
}

std::vector<uint32_t> batch_sizes_up_to(uint32_t max) {
  std::vector<uint32_t> sizes;
  for (uint32_t size = 1; size < max; size *= 2) sizes.push_back(size);
  sizes.push_back(max);
  return sizes;
}

}  // namespace foliot
