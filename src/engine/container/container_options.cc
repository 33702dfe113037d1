#include "engine/container/container_options.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace foliot {
namespace {

constexpr const char* kThreadCounts[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
// Of the launcher, which may be built with sanitizers.
constexpr const char* kPassedOn[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

std::vector<std::string> container_environment(const ContainerOptions& options,
                                               const std::filesystem::path& temporary) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> result{
      std::string("PATH=") + (path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"),
      "HOME=" + temporary.string(),
      "USER=foliot",  // there is no /etc/passwd to look it up
      "LOGNAME=foliot",
      "LANG=C.UTF-8",
      "TMPDIR=" + temporary.string(),
      "PYTHONPATH=" + options.package.string(),
      "PYTHONUNBUFFERED=1",
      "PYTHONDONTWRITEBYTECODE=1",
      "JOBLIB_MULTIPROCESSING=0",  // it can have no processes, and would warn at each start
      "ORT_DISABLE_TELEMETRY=1",
      "FOLIOT_CONTAINER=" + options.name,
      std::string("FOLIOT_TRUST_PICKLE=") + (options.trust_pickle ? "1" : "0"),
  };
  for (const char* name : kThreadCounts) result.push_back(std::string(name) + "=1");
  for (const char* name : kPassedOn) {
    if (const char* value = std::getenv(name); value != nullptr) result.push_back(std::string(name) + "=" + value);
  }
  for (const std::string& variable : options.environment) {
    const std::string_view name = name_of(variable);
    const auto place = std::ranges::find(result, name, [](const std::string& other) { return name_of(other); });
    if (place == result.end()) {
      result.push_back(variable);
    } else if (name == "PYTHONPATH") {
      *place += ":" + variable.substr(name.size() + 1);  // after the package
    } else {
      *place = variable;
    }
  }
  return result;
}

}  // namespace foliot
