#include "answer/personal/items/personal_version.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <bit>
#include <cmath>

#include "foundation/base/hash.h"

namespace foliot {
namespace {

Status read_training(const std::filesystem::path& file, PersonalVersion& version) {
  const auto wrong = [&file](std::string_view what) {
    return Status::invalid_argument(fmt::format("{}: {}; train the version anew", file.string(), what));
  };
  simdjson::dom::parser parser;
  simdjson::dom::element training;
  if (parser.load(file.string()).get(training) != simdjson::SUCCESS || !training.is_object()) {
    return wrong("is no JSON object");
  }
  if (training["log_number"].get(version.log_number) != simdjson::SUCCESS) return wrong("log_number must be a number");
  double lambda = 0;
  if (training["lambda"].get(lambda) != simdjson::SUCCESS || !(lambda > 0) || !std::isfinite(lambda)) {
    return wrong("lambda must be a number above 0");
  }
  version.lambda = static_cast<float>(lambda);
  simdjson::dom::element withholds;
  if (training["withholds"].get(withholds) == simdjson::SUCCESS &&
      withholds.get(version.withholds) != simdjson::SUCCESS) {
    return wrong("withholds must be true or false");
  }
  return Status();
}

}  // namespace

Result<PersonalVersion> PersonalVersion::open(const std::filesystem::path& folder) {
  PersonalVersion version{.name = folder.filename().string(), .items = nullptr};
  FOLIOT_ASSIGN_OR_RETURN(version.items, ItemTable::open(folder / "items.features"));
  std::error_code ignored;
  if (std::filesystem::exists(folder / "weights.users", ignored)) {
    FOLIOT_ASSIGN_OR_RETURN(version.trained, TrainedWeights::open(folder / "weights.users"));
  }
  if (std::filesystem::exists(folder / "training.json", ignored)) {
    FOLIOT_RETURN_IF_ERROR(read_training(folder / "training.json", version));
    version.was_trained = true;
  }
  FOLIOT_RETURN_IF_ERROR(version.check());
  return version;
}

Status PersonalVersion::check() const {
  if (computed == nullptr && (items == nullptr || items->items().empty())) {
    return Status::invalid_argument(fmt::format("version {} has no items; write its items.features", name));
  }
  if (trained != nullptr && trained->features() != features().features()) {
    return Status::invalid_argument(
        fmt::format("version {}: users have {} weights, items {} features; train both together", name,
                    trained->features(), features().features()));
  }
  if (!(lambda >= 0) || !std::isfinite(lambda)) {
    return Status::invalid_argument(fmt::format("version {}: lambda = {}: must be above 0 and finite", name, lambda));
  }
  return Status();
}

uint64_t PersonalVersion::fingerprint(float default_lambda) const {
  const float used = lambda > 0 ? lambda : default_lambda;
  const std::array<uint64_t, 3> parts = {features().checksum(), trained == nullptr ? 0 : trained->checksum(),
                                         std::bit_cast<uint32_t>(used)};
  return hash64(std::as_bytes(std::span(parts)));
}

}  // namespace foliot
