// libFuzzer target: any file, read as every kind of value that Foliot's files have, in
// tables within tables.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {
namespace {

constexpr int kDepthMax = 8;

// All that a reader can be asked for, under the keys that are its calls' names.
struct Values {
  std::string text;
  std::vector<std::string> texts;
  bool flag = false;
  double number = 0;
  uint64_t whole = 0;
  uint32_t small_whole = 0;
  std::vector<uint32_t> ascending;
  Duration duration;
  std::optional<Duration> optional_duration;
  std::vector<Duration> durations;
  uint64_t bytes = 0;
};

void read(TomlReader& reader, int depth) {
  Values values;
  reader.text("text", values.text);
  reader.texts("texts", values.texts);
  reader.flag("flag", values.flag);
  reader.number("number", values.number);
  reader.not_negative("not_negative", values.number);
  reader.positive("positive", values.number);
  reader.share("share", values.number);
  reader.whole("whole", values.whole);
  reader.whole("small_whole", values.small_whole, 1, 100);
  reader.ascending("ascending", values.ascending);
  reader.duration("duration", values.duration);
  reader.duration("optional_duration", values.optional_duration);
  reader.positive("positive_duration", values.duration);
  reader.positive("optional_positive", values.optional_duration);
  reader.durations("durations", values.durations);
  reader.bytes("bytes", values.bytes);
  if (depth < kDepthMax) {
    if (auto table = reader.table("table")) read(*table, depth + 1);
    for (TomlReader& table : reader.tables("tables")) read(table, depth + 1);
  }
  const bool fine = reader.ok();
  const Status status = reader.finish();
  FOLIOT_CHECK(fine || !status.ok());
  FOLIOT_CHECK(status.ok() || status.message().starts_with(reader.file()));
}

}  // namespace
}  // namespace foliot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = memfd_create("fuzz.toml", MFD_CLOEXEC);
  static const std::string file = "/proc/self/fd/" + std::to_string(memory);
  FOLIOT_CHECK(ftruncate(memory, 0) == 0 && pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  const auto table = foliot::read_toml_file(file);
  if (!table.ok()) return 0;
  foliot::TomlReader reader(*table, file);
  foliot::read(reader, 0);
  return 0;
}
