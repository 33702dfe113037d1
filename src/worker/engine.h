// Engine: the operations that the worker's executors perform on a device once their
// queueing logic has decided. The real one drives a Device (device_engine.h); the
// simulator has one that only checks.
//
// Threading: load() and unload() are called by the LOAD executor, the others by
// the INPUT, EXEC and OUTPUT executors; these may run at the same time.
#ifndef FOLIOT_WORKER_ENGINE_H_
#define FOLIOT_WORKER_ENGINE_H_

#include <cstdint>
#include <span>

#include "base/status.h"
#include "core/action.h"
#include "device/device.h"

namespace foliot {

// An INFER with its place in the io cache.
struct InferWork {
  Action action;
  uint64_t input_offset = 0;
  uint64_t output_offset = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Status load(ModelId model, std::span<const PageIndex> pages) = 0;
  virtual void unload(ModelId model) = 0;
  virtual void input(const InferWork& work) = 0;
  virtual Status exec(const InferWork& work) = 0;
  virtual void output(const InferWork& work) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_WORKER_ENGINE_H_
