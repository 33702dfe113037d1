#include "engine/container/container_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

Duration quantile(std::vector<Duration> durations, double q) {
  std::ranges::sort(durations);
  const double position = std::ceil(q * static_cast<double>(durations.size())) - 1;
  return durations[static_cast<size_t>(std::max(position, 0.0))];
}

// Without a listener of its own it might stop, once it has printed more than a pipe holds.
Result<Duration> measure_call(ContainerProcess& process, uint32_t rows, const ContainerProfileOptions& options) {
  if (options.cancelled && options.cancelled()) return Status::unavailable("profiling the container was cancelled");
  const TimePoint begin = monotonic_now();
  FOLIOT_RETURN_IF_ERROR(
      process.call_listening(rows, 0, process.description().input_bytes(rows), options.call_timeout));
  const Duration taken = monotonic_now() - begin;
  process.listen(Duration());
  return taken;
}

Result<Duration> profile_batch(ContainerProcess& process, uint32_t rows, const ContainerProfileOptions& options) {
  for (uint32_t i = 0; i < options.warm_up_calls; ++i) {
    FOLIOT_RETURN_IF_ERROR(measure_call(process, rows, options).status());
  }
  std::vector<Duration> durations;
  const TimePoint begin = monotonic_now();
  while (durations.size() < options.calls &&
         (durations.size() < options.calls_min || monotonic_now() - begin < options.budget)) {
    FOLIOT_ASSIGN_OR_RETURN(const Duration taken, measure_call(process, rows, options));
    durations.push_back(taken);
  }
  return quantile(std::move(durations), options.quantile);
}

}  // namespace

std::vector<uint32_t> container_batch_sizes(const ContainerDescription& description) {
  std::vector<uint32_t> sizes;
  for (uint32_t size = 1; size < description.batch_size_max; size *= 2) sizes.push_back(size);
  sizes.push_back(description.batch_size_max);
  return sizes;
}

Result<std::vector<Duration>> profile(ContainerProcess& process, std::span<const uint32_t> batch_sizes,
                                      const ContainerProfileOptions& options) {
  FOLIOT_CHECK(options.calls >= 1 && options.calls_min >= 1);
  std::vector<Duration> result;
  for (const uint32_t rows : batch_sizes) {
    FOLIOT_CHECK(rows >= 1 && rows <= process.description().batch_size_max);
    write_examples(process.description(), rows, process.memory());
    Result<Duration> taken = profile_batch(process, rows, options);
    if (!taken.ok()) return taken.status().with_context(fmt::format("a batch of {} rows", rows));
    result.push_back(result.empty() ? *taken : std::max(*taken, result.back()));
  }
  return result;
}

}  // namespace foliot
