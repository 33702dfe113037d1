#include "planning/profiling/predictor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cluster/transport/wire.h"
#include "foundation/base/hash.h"
#include "foundation/core/lanes.h"

namespace foliot {
namespace {

constexpr uint64_t kPredictorMagic = 0x31727476726c7646;
constexpr uint32_t kPredictorVersion = 1;
constexpr std::string_view kNewPredictorFileName = "predictor.new";

Status damaged() { return Status::invalid_argument("the file is damaged; profile its models anew"); }

void put(WireWriter& writer, std::span<const float> numbers) {
  writer.put(static_cast<uint32_t>(numbers.size()));
  for (const float number : numbers) writer.put(number);
}

std::vector<float> get_floats(WireReader& reader) {
  std::vector<float> numbers(reader.get_count(sizeof(float)));
  for (float& number : numbers) reader.get(number);
  return numbers;
}

bool can_be_ends(const std::vector<float>& ends, uint32_t operators) {
  return ends.size() == operators && ends.front() >= 0 && std::isfinite(ends.back()) && std::ranges::is_sorted(ends) &&
         std::ranges::none_of(ends, [](float end) { return std::isnan(end); });
}

// False: it cannot be.
bool get(WireReader& reader, uint32_t lane_count, ProfiledModel& model) {
  reader.get(model.name);
  reader.get(model.content);
  reader.get(model.operators);
  model.ends.resize(reader.get_count(sizeof(uint32_t)));
  if (reader.failed() || model.content.empty() || model.operators == 0 || model.ends.empty() ||
      model.ends.size() > std::numeric_limits<uint16_t>::max()) {
    return false;
  }
  for (auto& widths : model.ends) {
    for (uint32_t width = 0; width < width_count(lane_count); ++width) {
      widths.push_back(get_floats(reader));
      if (reader.failed() || !can_be_ends(widths.back(), model.operators)) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::byte> encode_predictor(const OverlapPredictor& predictor) {
  WireBytes body;
  WireWriter writer(body);
  writer.put(predictor.lane_count());
  writer.put(static_cast<uint32_t>(predictor.models().size()));
  for (const ProfiledModel& model : predictor.models()) {
    writer.put(std::string_view(model.name));
    writer.put(std::string_view(model.content));
    writer.put(model.operators);
    writer.put(static_cast<uint32_t>(model.ends.size()));
    for (const auto& widths : model.ends) {
      for (const std::vector<float>& ends : widths) put(writer, ends);
    }
  }
  put(writer, predictor.mlp().weights());
  WireBytes bytes;
  WireWriter header(bytes);
  header.put(kPredictorMagic);
  header.put(kPredictorVersion);
  header.put(hash64(body));
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

Result<OverlapPredictor> decode_predictor(std::span<const std::byte> bytes) {
  WireReader header(bytes);
  uint64_t magic = 0, hash = 0;
  uint32_t version = 0;
  header.get(magic);
  header.get(version);
  header.get(hash);
  if (header.failed() || magic != kPredictorMagic) return damaged();
  if (version != kPredictorVersion) {
    return Status::invalid_argument(fmt::format(
        "the file has version {}, and this is for version {}; profile its models anew", version, kPredictorVersion));
  }
  const std::span<const std::byte> body = bytes.last(header.left());
  if (hash != hash64(body)) return damaged();
  WireReader reader(body);
  uint32_t lane_count = 0;
  reader.get(lane_count);
  if (lane_count == 0 || lane_count > kLanesMax) return damaged();
  std::vector<ProfiledModel> models(std::min(reader.get_count(1), OverlapPredictor::kModelsMax + 1));
  if (models.empty() || models.size() > OverlapPredictor::kModelsMax) return damaged();
  for (ProfiledModel& model : models) {
    if (!get(reader, lane_count, model)) return damaged();
  }
  std::optional<Mlp> mlp =
      Mlp::with_weights(static_cast<uint32_t>(models.size()) * OverlapPredictor::kFeatures, get_floats(reader));
  if (!reader.complete() || !mlp) return damaged();
  return OverlapPredictor(lane_count, std::move(models), *std::move(mlp));
}

Status write_predictor(Storage& storage, const OverlapPredictor& predictor) {
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<StorageFile> file, storage.create(kNewPredictorFileName));
  FOLIOT_RETURN_IF_ERROR(file->append(encode_predictor(predictor)));
  FOLIOT_RETURN_IF_ERROR(file->sync());
  return storage.rename(kNewPredictorFileName, kPredictorFileName);
}

Result<OverlapPredictor> read_predictor(Storage& storage) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, storage.read(kPredictorFileName));
  return decode_predictor(bytes);
}

}  // namespace foliot
