// FakeWorkerPool: workers that are there as soon as the test or the simulation takes them.
#ifndef FOLIOT_CONTROL_FLEET_SCALERS_FAKE_WORKER_POOL_H_
#define FOLIOT_CONTROL_FLEET_SCALERS_FAKE_WORKER_POOL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "control/fleet/scalers/worker_pool.h"

namespace foliot {

class FakeWorkerPool : public WorkerPool {
 public:
  Result<uint32_t> size(std::string_view kind) override {
    const auto found = sizes.find(kind);
    return found == sizes.end() ? 0 : found->second;
  }
  Status set_size(std::string_view kind, uint32_t workers) override {
    if (!failure.ok()) return failure;
    sizes[std::string(kind)] = workers;
    return Status();
  }
  // Workers are called KIND-NUMBER, from 0.
  std::optional<std::string> next_to_leave(std::string_view kind) override {
    const auto found = sizes.find(kind);
    if (found == sizes.end() || found->second == 0) return std::nullopt;
    return found->first + "-" + std::to_string(found->second - 1);
  }

  std::map<std::string, uint32_t, std::less<>> sizes;
  Status failure;  // of set_size()
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_SCALERS_FAKE_WORKER_POOL_H_
