#include "virtual/emulation/emulated_models.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "load/workload/profile_table.h"

namespace foliot {
namespace {

constexpr uint32_t kCopiesMax = 10'000;

struct Wanted {
  std::string profile;
  uint32_t copies = 1;
};

Result<Wanted> parse_wanted(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return Wanted{.profile = text};
  Wanted wanted{.profile = text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, wanted.copies);
  if (parsed.ec != std::errc() || parsed.ptr != end || wanted.copies == 0 || wanted.copies > kCopiesMax) {
    return Status::invalid_argument(
        fmt::format("'{}': write PROFILE:COPIES with 1 to {} copies, as resnet50:15", text, kCopiesMax));
  }
  return wanted;
}

void add(const ModelProfile& profile, uint32_t copies, uint64_t page_bytes, std::vector<ModelInfo>& models) {
  for (uint32_t i = 0; i < copies; ++i) {
    const ModelId id(static_cast<uint32_t>(models.size()));
    models.push_back(
        *make_model_info(profile, id, copies == 1 ? profile.name : fmt::format("{}-{}", profile.name, i), page_bytes));
  }
}

std::vector<ModelInfo> all_of(const ProfileTable& table, uint64_t page_bytes) {
  std::vector<ModelInfo> models;
  for (const ModelProfile& profile : table.profiles()) add(profile, 1, page_bytes, models);
  return models;
}

}  // namespace

Result<std::vector<ModelInfo>> parse_emulated_models(const std::string& text, uint64_t page_bytes) {
  const ProfileTable& table = ProfileTable::v100();
  if (text == "v100") return all_of(table, page_bytes);
  if (text.find_first_of("./") != std::string::npos) {
    FOLIOT_ASSIGN_OR_RETURN(const ProfileTable read, read_profile_table(text));
    if (read.profiles().empty()) return Status::invalid_argument(fmt::format("{}: there is no profile in it", text));
    return all_of(read, page_bytes);
  }
  std::vector<ModelInfo> models;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    FOLIOT_ASSIGN_OR_RETURN(const Wanted wanted, parse_wanted(part));
    const ModelProfile* profile = table.find(wanted.profile);
    if (profile == nullptr) {
      return Status::not_found(
          fmt::format("there is no profile '{}'; there are: {}; or write v100 for all, or FILE.csv", wanted.profile,
                      table.names()));
    }
    add(*profile, wanted.copies, page_bytes, models);
  }
  if (models.empty()) return Status::invalid_argument("no profile is named");
  return models;
}

}  // namespace foliot
