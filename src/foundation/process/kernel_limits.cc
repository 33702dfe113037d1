#include "foundation/process/kernel_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "foundation/base/escaped_text.h"

namespace foliot {
namespace {

bool read_version(std::string_view text, int& version) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() && version >= 0;
}

}  // namespace

std::string to_string(const KernelLimits& limits) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
  if (limits.landlock != KernelLimits().landlock) add(fmt::format("landlock={}", limits.landlock));
  if (!limits.namespaces) add("namespaces=no");
  if (!limits.ids) add("ids=no");
  return text;
}

Result<KernelLimits> parse_kernel_limits(std::string_view text) {
  KernelLimits limits;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    constexpr std::string_view kVersion = "landlock=";
    if (part == "namespaces=no") {
      limits.namespaces = false;
    } else if (part == "ids=no") {
      limits.ids = false;
    } else if (!part.starts_with(kVersion) || !read_version(part.substr(kVersion.size()), limits.landlock)) {
      return Status::invalid_argument(
          fmt::format("{} limits no kernel; the form is landlock=3,namespaces=no,ids=no", in_quotes(part)));
    }
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return limits;
}

}  // namespace foliot
