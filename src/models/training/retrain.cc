#include "models/training/retrain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/service/personal_file.h"
#include "answer/personal/service/version_note.h"
#include "answer/personal/storage/training_data.h"
#include "engine/container/container_launch.h"
#include "engine/container/temporary_folder.h"
#include "foundation/base/error_text.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/folder_listing.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/platform/descriptor.h"
#include "foundation/process/child_process.h"
#include "foundation/store/disk_storage.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr size_t kErrorBytesMax = 4096;
constexpr size_t kMetricsBytesMax = 1 << 20;

template <typename T>
Status write_array(const fs::path& file, std::span<const T> values) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
  out.close();
  return out ? Status()
             : Status::resource_exhausted(fmt::format("{}: cannot write; free space on its disk", file.string()));
}

// `rows` of `columns` finite values.
Result<std::vector<float>> read_array(const fs::path& file, std::string_view row, std::span<const uint64_t> rows,
                                      size_t columns) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  const std::string name = file.filename().string();
  if (error) return Status::invalid_argument(fmt::format("the trainer did not write {}", name));
  if (size != rows.size() * columns * sizeof(float)) {
    return Status::invalid_argument(fmt::format(
        "the trainer's {} has {} bytes: must have {} values for each of {} {}s, {} bytes; none may be missing", name,
        size, columns, rows.size(), row, rows.size() * columns * sizeof(float)));
  }
  std::vector<float> values(rows.size() * columns);
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size));
  if (!in) return Status::invalid_argument(fmt::format("the trainer's {} cannot be read", name));
  const auto wrong = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (wrong == values.end()) return values;
  const auto at = static_cast<size_t>(wrong - values.begin());
  return Status::invalid_argument(fmt::format("the trainer's {} has {} at column {} of {} {}", name, *wrong,
                                              at % columns, row, rows[at / columns]));
}

std::optional<uint64_t> number_of(const fs::path& version) {
  const std::string name = version.filename().string();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

Result<uint64_t> highest_version(const fs::path& folder) {
  std::optional<uint64_t> highest;
  std::vector<fs::path> versions;
  std::error_code error;
  if (fs::exists(folder, error) || error) {
    FOLIOT_ASSIGN_OR_RETURN(versions, list_folder(folder));
  }
  for (const fs::path& version : versions) {
    const std::optional<uint64_t> number = number_of(version);
    if (!number) continue;
    FOLIOT_ASSIGN_OR_RETURN(const bool has_items, leads_to_folder(version));
    if (has_items) highest = std::max(highest.value_or(0), *number);
  }
  if (highest) return *highest;
  return Status::not_found(fmt::format("{} has no version; write the features of its items first: {}", folder.string(),
                                       (folder / "1" / "items.features").string()));
}

// Two that train the same model would write the same version.
Result<Descriptor> lock_folder(const fs::path& folder) {
  Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.is_open()) {
    return Status::not_found(fmt::format("{}: cannot be read: {}", folder.string(), error_text(errno)));
  }
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) == 0) return lock;
  return Status::unavailable(fmt::format("{} is retrained by another process; wait for its end", folder.string()));
}

// Values outside of `range`, and what is withheld, are hidden.
Status write_data(const fs::path& folder, const TrainingData& data, const ValueRange& range,
                  const PersonalVersion& before, size_t features, const RetrainOptions& options) {
  const ItemTable& items = *before.items;
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "users.u64", std::span(data.users)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "numbers.u64", std::span(data.numbers)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "counts.u64", std::span(data.counts)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "ids.u64", std::span(data.ids)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "items.u64", std::span(data.items)));
  std::vector<float> values = data.values;
  std::vector<float> probabilities = data.probabilities;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!data.is_hidden(i, range)) continue;
    values[i] = std::numeric_limits<float>::quiet_NaN();
    probabilities[i] = -1;
  }
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "values.f32", std::span<const float>(values)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "probabilities.f32", std::span<const float>(probabilities)));
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "known_items.u64", items.items()));
  std::vector<float> known;
  for (size_t i = 0; i < items.items().size(); ++i) {
    const std::span<const float> row = items.row(i);
    known.insert(known.end(), row.begin(), row.begin() + static_cast<ptrdiff_t>(items.features()));
  }
  FOLIOT_RETURN_IF_ERROR(write_array(folder / "known_features.f32", std::span<const float>(known)));
  const std::string json = fmt::format(
      "{{\"features\": {}, \"known_features\": {}, \"known_log_number\": {}, \"lambdas\": [{}], \"iterations\": {}, "
      "\"seed\": {}, \"memory_bytes\": {}}}\n",
      features, items.features(), before.log_number, fmt::join(options.lambdas, ", "), options.iterations, options.seed,
      options.memory_bytes);
  if (!options.trainer.empty()) {
    std::error_code error;
    fs::copy_file(options.trainer, folder / "trainer.py", error);
    if (error) return Status::not_found(fmt::format("{}: cannot read: {}", options.trainer.string(), error.message()));
  }
  return write_array(folder / "options.json", std::span(json.data(), json.size()));
}

std::string environment_value(const char* name, std::string absent = "") {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value != nullptr ? value : std::move(absent);
}

// What a trainer that is confined, or Spark, starts with.
ChildOptions trainer_process(const fs::path& data, const fs::path& output, const RetrainOptions& options) {
  ChildOptions child;
  child.environment = {
      "PATH=" + environment_value("PATH", "/usr/local/bin:/usr/bin:/bin"),
      "HOME=" + output.string(),
      "TMPDIR=" + output.string(),
      "FOLIOT_TRAINING_OUTPUT=" + output.string(),
      "LANG=C.UTF-8",
      "ORT_DISABLE_TELEMETRY=1",
      "PYTHONPATH=" + options.package.string(),
      "PYTHONUNBUFFERED=1",
      "PYTHONDONTWRITEBYTECODE=1",
  };
  const auto pass_on = [&child](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const std::string value = environment_value(name);
      if (!value.empty()) child.environment.push_back(std::string(name) + "=" + value);
    }
  };
  if (!options.spark.empty()) {
    pass_on({"JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "HADOOP_CONF_DIR", "PYSPARK_PYTHON"});
    child.command = {"/usr/bin/env", options.python, "-m", "foliot.spark_trainer", data.string(), options.spark};
    return child;
  }
  // Confined, it has no /etc/passwd to look them up.
  child.environment.insert(child.environment.end(), {"USER=foliot", "LOGNAME=foliot"});
  pass_on({"FOLIOT_TEST_LAUNCHES", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"});
  for (const char* const name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (options.threads == 0 || !environment_value(name).empty()) {
      pass_on({name});
    } else {
      child.environment.push_back(fmt::format("{}={}", name, options.threads));
    }
  }
  child.command = options.launcher;
  child.input = encode_launch({.python = options.python,
                               .module = "foliot.trainer",
                               .folder = data,
                               .package = options.package,
                               .temporary = output,
                               .memory_bytes = options.memory_bytes,
                               .namespaces = true});
  child.namespaces.emplace();
  return child;
}

Status run_trainer(const fs::path& data, const fs::path& output, const RetrainOptions& options,
                   const std::function<void(std::string_view)>& on_line) {
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::start(trainer_process(data, output, options)));
  std::string printed, complained;
  const TimePoint deadline = monotonic_now() + options.time_limit;
  const auto pass_on = [&] {
    for (size_t end = 0; (end = printed.find('\n')) != std::string::npos; printed.erase(0, end + 1)) {
      on_line(std::string_view(printed).substr(0, end));
    }
  };
  while (child.listen(Duration::milliseconds(100), printed, complained)) {
    pass_on();
    if (complained.size() > 2 * kErrorBytesMax) complained.erase(0, complained.size() - kErrorBytesMax);
    if (printed.size() > kErrorBytesMax) printed.clear();  // a line without an end
    if (monotonic_now() < deadline) continue;
    return Status::resource_exhausted(fmt::format("the trainer did not end within {}; give it more with --time-limit",
                                                  format_duration(options.time_limit)));
  }
  pass_on();
  if (child.succeeded()) return Status();
  if (complained.size() > kErrorBytesMax) complained.erase(0, complained.size() - kErrorBytesMax);
  return Status::invalid_argument(fmt::format("the trainer failed: {}\n{}", child.ending(), complained));
}

struct Training {
  double lambda = 0;
  std::string metrics = "{}";
};

Result<Training> read_training(const fs::path& file) {
  const auto wrong = [](std::string_view what) {
    return Status::invalid_argument(fmt::format("the trainer's training.json {}", what));
  };
  std::error_code error;
  if (fs::file_size(file, error) > kMetricsBytesMax || error) return wrong("is missing or longer than a MiB");
  simdjson::dom::parser parser;
  simdjson::dom::element all;
  Training training;
  if (parser.load(file.string()).get(all) != simdjson::SUCCESS || !all.is_object()) return wrong("is no JSON object");
  if (all["lambda"].get(training.lambda) != simdjson::SUCCESS || !(training.lambda > 0)) {
    return wrong("must have a lambda above 0");
  }
  simdjson::dom::element metrics;
  if (all["metrics"].get(metrics) == simdjson::SUCCESS) training.metrics = simdjson::minify(metrics);
  return training;
}

}  // namespace

Result<std::string> retrain(const fs::path& folder, const fs::path& state, const RetrainOptions& options,
                            const std::function<void(std::string_view)>& on_line) {
  const PersonalSpec spec = read_personal(folder);
  if (spec.features) {
    return Status::invalid_argument(
        fmt::format("{}: model '{}' computes its features: train that one; weights follow from observations",
                    folder.string(), spec.features->model));
  }
  FOLIOT_ASSIGN_OR_RETURN(const uint64_t highest, highest_version(folder));
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor lock, lock_folder(folder));
  FOLIOT_ASSIGN_OR_RETURN(const fs::path served, served_version(folder, state));
  FOLIOT_ASSIGN_OR_RETURN(const PersonalVersion before, PersonalVersion::open(served));
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage, DiskStorage::open_to_read(state));
  FOLIOT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::read(*storage));
  if (data.ids.empty()) {
    return Status::not_found(fmt::format("{}: the log has no observation to learn from", state.string()));
  }
  on_line(fmt::format("{} observations of {} users, up to record {} of the log; from version {}", data.ids.size(),
                      data.users.size(), data.log_number, before.name));
  const ValueRange range = spec.options.table.learns_range ? data.range : ValueRange::all();
  size_t outside = 0;
  for (const float value : data.values) outside += range.contains(value) ? 0 : 1;
  if (outside > 0) {
    on_line(fmt::format(
        "{} of them have values outside of {:.4g} to {:.4g}, which several users have seen, and are left out", outside,
        range.low, range.high));
  }
  const size_t features = options.features == 0 ? before.items->features() : options.features;
  FOLIOT_ASSIGN_OR_RETURN(const TemporaryFolder temporary, TemporaryFolder::make());
  const fs::path input = temporary.path() / "data";
  const fs::path output = temporary.path() / "output";
  fs::create_directory(input);
  fs::create_directory(output);
  FOLIOT_RETURN_IF_ERROR(write_data(input, data, range, before, features, options));
  FOLIOT_RETURN_IF_ERROR(run_trainer(input, output, options, on_line));

  const std::span<const uint64_t> items = before.items->items();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<float> rows, read_array(output / "features.f32", "item", items, features));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<float> weights,
                          read_array(output / "weights.f32", "user", data.users, features));
  FOLIOT_ASSIGN_OR_RETURN(const Training training, read_training(output / "training.json"));

  const std::string name = fmt::to_string(highest + 1);
  const fs::path partial = folder / ("." + name + ".new");
  std::error_code error;
  fs::remove_all(partial, error);
  if (!fs::create_directory(partial, error)) {
    return Status::invalid_argument(fmt::format("{}: cannot make the folder: {}", partial.string(), error.message()));
  }
  FOLIOT_RETURN_IF_ERROR(ItemTable::write(partial / "items.features", features, items, rows));
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < data.users.size(); ++i)
    keys.insert(keys.end(), {data.users[i], data.numbers[i], data.counts[i]});
  FOLIOT_RETURN_IF_ERROR(TrainedWeights::write(partial / "weights.users", features, keys, weights));
  const std::string json = fmt::format("{{\"log_number\": {}, \"lambda\": {}, \"withholds\": true, \"metrics\": {}}}\n",
                                       data.log_number, training.lambda, training.metrics);
  FOLIOT_RETURN_IF_ERROR(write_array(partial / "training.json", std::span(json.data(), json.size())));
  if (fs::exists(output / "observations.parquet", error)) {
    // Replaces that of the training before: users that were forgotten meanwhile are in none.
    fs::copy_file(output / "observations.parquet", folder / ".parquet.new", fs::copy_options::overwrite_existing,
                  error);
    if (!error) fs::rename(folder / ".parquet.new", folder / "observations.parquet", error);
    if (error) return Status::internal(fmt::format("{}: cannot write: {}", folder.string(), error.message()));
  }
  fs::rename(partial, folder / name, error);
  if (error) return Status::internal(fmt::format("{}: cannot rename: {}", partial.string(), error.message()));
  return name;
}

}  // namespace foliot
