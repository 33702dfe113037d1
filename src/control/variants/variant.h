// Variant: one way to answer a task: a model (architecture and version) in one precision, for
// one kind of device, with what was measured of it. What INFaaS calls a model-variant; its
// "application" is a task here.
//
// The paper's section 3.2 (Variant-Profiler).
#ifndef FOLIOT_CONTROL_VARIANTS_VARIANT_H_
#define FOLIOT_CONTROL_VARIANTS_VARIANT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/id.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// By the order of registration, over all tasks.
using VariantId = Id<struct VariantTag, uint32_t>;
using TaskId = Id<struct TaskTag, uint32_t>;

// What one device-second costs. Integers: sums and comparisons are exact.
using MicroDollarsPerSecond = int64_t;

// Rounded, and at least 1 where `dollars` is above 0.
MicroDollarsPerSecond per_second_of_hourly(double dollars);

struct BatchLatency {
  uint32_t batch = 1;  // rows
  Duration latency;
};

struct Variant {
  std::string name;          // unique in its task
  std::string architecture;  // the model that it was made from: "resnet50"
  std::string version{"1"};
  std::string kind{"cpu"};  // of device
  double accuracy = 0;      // in [0, 1], on the task's validation set
  // Of an EXEC, by ascending batch size; at least one.
  std::vector<BatchLatency> latencies{};
  Duration load;                    // of LOAD
  uint64_t memory_bytes = 0;        // peak, of one instance
  double saturation = 0;            // queries per second of one instance; above 0
  MicroDollarsPerSecond price = 0;  // of one instance, by its share of the device

  // Of its smallest batch.
  Duration latency() const { return latencies.front().latency; }
  // Of the smallest batch that was measured and holds so many rows; of the largest if none does.
  Duration latency_of(uint32_t rows) const;
  uint32_t batch_most() const { return latencies.back().batch; }
  // What one query costs at saturation, in 1e-12 dollars: of a small model it is less than 1e-9.
  int64_t query_picodollars() const;
};

// Errors: kInvalidArgument naming the variant, the value and the limit.
Status check_variant(const Variant& variant);

// The largest rate of the batch sizes whose EXEC takes at most half of `slo`: a query that just
// missed a batch waits for it, then runs. Where none does, of the smallest batch.
double saturation_within(const std::vector<BatchLatency>& latencies, Duration slo);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_VARIANT_H_
