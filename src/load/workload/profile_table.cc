#include "load/workload/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

#include "foundation/core/action.h"

namespace foliot {
namespace {

constexpr double kMillisecondsMax = 1e9;
constexpr uint64_t kBytesMax = uint64_t{1} << 50;

// Clockwork, Table 1; kB and MB are powers of ten.
constexpr std::string_view kV100 =
    R"(model,input_bytes,output_bytes,weights_bytes,load_ms,b1_ms,b2_ms,b4_ms,b8_ms,b16_ms
densenet169,602000,4000,56500000,4.50,5.18,6.29,8.57,12.82,21.85
inceptionv3,1073000,4000,95300000,7.77,4.46,6.85,10.99,16.45,26.17
mobile_pose_mobilenetv3,590000,209000,19000000,1.55,1.29,1.92,3.13,5.71,11.62
resnet18,602000,4000,46700000,3.81,1.27,1.86,2.73,4.06,7.02
resnet50,602000,4000,102300000,8.33,2.61,3.78,5.61,9.13,15.67
resnet152,602000,4000,240900000,19.58,7.71,11.14,16.21,26.48,44.60
)";
constexpr std::string_view kColumns = "model,input_bytes,output_bytes,weights_bytes,load_ms";
constexpr size_t kFixedColumns = 5;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

template <typename T>
bool parse_number(std::string_view text, T max, T& to) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), to);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && to >= 0 && to <= max;
}

// Reads the table line by line.
class CsvReader {
 public:
  Status line(size_t number, std::string_view text) {
    number_ = number;
    const std::vector<std::string_view> fields = split(text);
    return columns_.empty() ? header(fields) : row(fields);
  }
  Result<ProfileTable> finish() {
    if (table_.profiles().empty()) return Status::invalid_argument("holds no profile");
    return std::move(table_);
  }

 private:
  Status error(std::string_view what) const {
    return Status::invalid_argument(fmt::format("line {}: {}", number_, what));
  }

  Status header(const std::vector<std::string_view>& fields) {
    const std::vector<std::string_view> fixed = split(kColumns);
    if (fields.size() <= kFixedColumns || !std::equal(fixed.begin(), fixed.end(), fields.begin())) {
      return error(fmt::format("the columns must be {},b1_ms,...", kColumns));
    }
    for (size_t i = kFixedColumns; i < fields.size(); ++i) {
      const std::string_view name = fields[i];
      uint32_t size = 0;
      if (!name.starts_with("b") || !name.ends_with("_ms") ||
          !parse_number(name.substr(1, name.size() - 4), kBatchSizeMax, size)) {
        return error(fmt::format("column '{}' is none of b1_ms to b{}_ms", name, kBatchSizeMax));
      }
      if (batch_sizes_.empty() ? size != 1 : size <= batch_sizes_.back()) {
        return error(fmt::format("column '{}': batch sizes must begin with 1 and ascend", name));
      }
      batch_sizes_.push_back(size);
    }
    columns_.assign(fields.begin(), fields.end());
    return Status();
  }

  Status row(const std::vector<std::string_view>& fields) {
    if (fields.size() != columns_.size()) {
      return error(fmt::format("{} fields where there are {} columns", fields.size(), columns_.size()));
    }
    ModelProfile profile{.name = std::string(fields[0]), .batch_sizes = batch_sizes_};
    FOLIOT_RETURN_IF_ERROR(bytes(fields, 1, profile.input_bytes));
    FOLIOT_RETURN_IF_ERROR(bytes(fields, 2, profile.output_bytes));
    FOLIOT_RETURN_IF_ERROR(bytes(fields, 3, profile.weights_bytes));
    FOLIOT_RETURN_IF_ERROR(milliseconds(fields, 4, profile.load));
    for (size_t i = kFixedColumns; i < fields.size(); ++i) {
      FOLIOT_RETURN_IF_ERROR(milliseconds(fields, i, profile.exec.emplace_back()));
    }
    const Status added = table_.add(std::move(profile));
    return added.ok() ? added : error(added.message());
  }

  Status bytes(const std::vector<std::string_view>& fields, size_t column, uint64_t& to) const {
    if (parse_number(fields[column], kBytesMax, to)) return Status();
    return error(fmt::format("{} '{}' is no number of bytes", columns_[column], fields[column]));
  }

  Status milliseconds(const std::vector<std::string_view>& fields, size_t column, Duration& to) const {
    double value = 0;
    if (!parse_number(fields[column], kMillisecondsMax, value)) {
      return error(fmt::format("{} '{}' is no number of milliseconds", columns_[column], fields[column]));
    }
    to = Duration::from_milliseconds(value);
    return Status();
  }

  size_t number_ = 0;
  std::vector<std::string> columns_;
  std::vector<uint32_t> batch_sizes_;
  ProfileTable table_;
};

Status check(const ModelProfile& profile) {
  const auto wrong = [&](std::string_view what) {
    return Status::invalid_argument(fmt::format("profile '{}': {}", profile.name, what));
  };
  if (profile.name.empty()) return Status::invalid_argument("a profile has no name");
  if (profile.weights_bytes == 0) return wrong("weights_bytes must be above 0");
  if (profile.load <= Duration()) return wrong("the duration of LOAD must be above 0");
  if (profile.batch_sizes.empty() || profile.batch_sizes.front() != 1) return wrong("batch size 1 is missing");
  if (profile.batch_sizes.size() != profile.exec.size()) {
    return wrong(fmt::format("{} batch sizes, but {} durations", profile.batch_sizes.size(), profile.exec.size()));
  }
  for (size_t i = 0; i < profile.exec.size(); ++i) {
    if (profile.exec[i] <= Duration())
      return wrong(fmt::format("EXEC of batch size {} takes no time", profile.batch_sizes[i]));
    if (i > 0 && profile.batch_sizes[i] <= profile.batch_sizes[i - 1]) return wrong("batch sizes must ascend");
    if (i > 0 && profile.exec[i] < profile.exec[i - 1]) {
      return wrong(fmt::format("EXEC of batch size {} takes less than of {}", profile.batch_sizes[i],
                               profile.batch_sizes[i - 1]));
    }
  }
  if (profile.batch_sizes.back() > kBatchSizeMax) return wrong(fmt::format("batch sizes go up to {}", kBatchSizeMax));
  return Status();
}

}  // namespace

Runnable make_runnable(const ModelProfile& profile, std::string kind, uint64_t page_bytes) {
  FOLIOT_CHECK(page_bytes > 0);
  return {.kind = std::move(kind),
          .batch_sizes = profile.batch_sizes,
          .pages = static_cast<uint32_t>((profile.weights_bytes + page_bytes - 1) / page_bytes),
          .seed_load = profile.load,
          .seed_exec = {profile.exec},
          .operator_ends = profile.operator_ends};
}

std::shared_ptr<ModelInfo> make_model_info(const ModelProfile& profile, ModelId id, std::string name,
                                           uint64_t page_bytes) {
  auto model = std::make_shared<ModelInfo>();
  model->id = id;
  model->name = std::move(name);
  model->buckets.resize(1);
  model->runnables = {make_runnable(profile, std::string(kDefaultKind), page_bytes)};
  return model;
}

const ProfileTable& ProfileTable::v100() {
  static const ProfileTable table = parse_profile_table(kV100).value();
  return table;
}

Status ProfileTable::add(ModelProfile profile) {
  FOLIOT_RETURN_IF_ERROR(check(profile));
  if (find(profile.name) != nullptr) {
    return Status::already_exists(fmt::format("profile '{}' is given twice", profile.name));
  }
  profiles_.push_back(std::move(profile));
  return Status();
}

const ModelProfile* ProfileTable::find(std::string_view name) const {
  const auto found = std::find_if(profiles_.begin(), profiles_.end(),
                                  [&](const ModelProfile& profile) { return profile.name == name; });
  return found == profiles_.end() ? nullptr : &*found;
}

std::string ProfileTable::names() const {
  std::string names;
  for (const ModelProfile& profile : profiles_) names += (names.empty() ? "" : ", ") + profile.name;
  return names;
}

Result<ProfileTable> parse_profile_table(std::string_view csv) {
  CsvReader reader;
  for (size_t number = 1; !csv.empty(); ++number) {
    const size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = trimmed(csv.substr(0, end));
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (!line.empty() && line.front() != '#') FOLIOT_RETURN_IF_ERROR(reader.line(number, line));
  }
  return reader.finish();
}

Result<ProfileTable> read_profile_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::not_found(fmt::format("profile table '{}' cannot be opened", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Result<ProfileTable> table = parse_profile_table(text);
  if (!table.ok()) return table.status().with_context(fmt::format("profile table '{}'", path));
  return table;
}

}  // namespace foliot
