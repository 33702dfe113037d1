#include "load/workload/arrival_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace foliot {
namespace {

constexpr uintmax_t kFileBytesMax = uintmax_t{1} << 30;
constexpr double kSecondsMax = 1e9;

std::string_view trim(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

Result<std::vector<Duration>> parse_arrival_trace(std::string_view text) {
  std::vector<Duration> instants;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;

    double seconds = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), seconds);
    if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size() ||
        !(seconds >= 0 && seconds <= kSecondsMax)) {
      return Status::invalid_argument(fmt::format("line {}: '{}' is no instant in seconds", number, line));
    }
    const Duration instant = Duration::from_seconds(seconds);
    if (!instants.empty() && instant < instants.back()) {
      return Status::invalid_argument(fmt::format("line {}: {} s comes before the instant above it", number, line));
    }
    instants.push_back(instant);
  }
  return instants;
}

Result<std::vector<Duration>> read_arrival_trace(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return Status::not_found(fmt::format("arrival trace '{}': {}", path, error.message()));
  if (bytes > kFileBytesMax) {
    return Status::resource_exhausted(fmt::format("arrival trace '{}' is larger than 1 GiB: cut it", path));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return Status::not_found(fmt::format("arrival trace '{}' cannot be read", path));
  Result<std::vector<Duration>> instants = parse_arrival_trace(text);
  if (!instants.ok()) return instants.status().with_context(fmt::format("arrival trace '{}'", path));
  if (instants->empty()) return Status::invalid_argument(fmt::format("arrival trace '{}': no instant is in it", path));
  return instants;
}

}  // namespace foliot
