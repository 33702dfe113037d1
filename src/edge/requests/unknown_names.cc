#include "edge/requests/unknown_names.h"

#include <fmt/format.h>

#include <iterator>

namespace foliot {
namespace {

constexpr std::string_view kOthers = "(others)";

std::string printable(std::string_view name) {
  std::string shown;
  for (const char c : name.substr(0, UnknownNames::kNameBytesMax)) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      shown += c;
    } else {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (name.size() > UnknownNames::kNameBytesMax) shown += "...";
  return shown;
}

}  // namespace

void UnknownNames::note(const UnknownNamesOfRequest& request) {
  for (const UnknownName& unknown : request.names()) {
    const std::string shown = printable(unknown.name);
    count_(to_string(unknown.place), known_as(unknown.place, shown));
  }
}

std::string_view UnknownNames::known_as(NamePlace place, const std::string& shown) {
  const MutexLock lock(mutex_);
  if (known_.contains({place, shown})) return shown;
  if (known_.size() >= kNamesMax) {
    if (!std::exchange(full_, true)) {
      log_(fmt::format("requests had {} unknown names; others are not logged any more, and counted as {}", kNamesMax,
                       kOthers));
    }
    return kOthers;
  }
  known_.emplace(place, shown);
  log_(fmt::format("{} '{}' is unknown and ignored, from now on without a line here", to_string(place), shown));
  return shown;
}

}  // namespace foliot
