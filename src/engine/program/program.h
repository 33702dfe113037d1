// Program: a model compiled for one kind of device. Weights laid out in pages,
// one plan per batch size and bucket, static memory metadata, a seed profile
// (Clockwork, section 5.1).
#ifndef FOLIOT_ENGINE_PROGRAM_PROGRAM_H_
#define FOLIOT_ENGINE_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/device/plan.h"
#include "foundation/base/time.h"
#include "foundation/core/model_info.h"
#include "foundation/core/tensor.h"

namespace foliot {

// Of Program::buckets.
struct ProgramBucket {
  std::map<std::string, int64_t> dimensions;  // as Bucket
  std::vector<Duration> seed_exec;            // measured, by position of the batch size
};

struct Program {
  std::string content_hash;        // of all that it was compiled from: model bytes, options, fingerprint
  std::string device_kind;         // Device::kind()
  std::string device_fingerprint;  // Device::fingerprint()
  bool batching = true;            // as ModelInfo
  std::vector<uint32_t> batch_sizes;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // With the measured duration of each plan: buckets[i].seed_exec[j] is the
  // duration of plans[i * batch_sizes.size() + j].
  std::vector<ProgramBucket> buckets;
  std::vector<Plan> plans;     // bucket-major, batch sizes ascending within
  uint64_t page_bytes = 0;     // what `weights_bytes` was rounded up to
  uint64_t weights_bytes = 0;  // a multiple of 4096
  Duration seed_load;
  // As Runnable::operator_ends, measured with the first plan; empty where plans differ in their
  // number of operators.
  std::vector<double> operator_ends;
  // Differences from what the model or its configuration asks for, and why: a sentence
  // each. From the process that compiled, so shown as bytes from outside are.
  std::vector<std::string> notes;

  uint32_t pages(uint64_t page_size) const {
    return static_cast<uint32_t>((weights_bytes + page_size - 1) / page_size);
  }
  // Largest over the plans.
  uint64_t workspace_bytes() const;
  uint64_t input_bytes() const;
  uint64_t output_bytes() const;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_PROGRAM_H_
