// WorkerPools: several pools as one, by the kinds that each has; and what they were set to,
// for people.
#ifndef FOLIOT_CONTROL_FLEET_POOLS_WORKER_POOLS_H_
#define FOLIOT_CONTROL_FLEET_POOLS_WORKER_POOLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/fleet/scalers/worker_pool.h"

namespace foliot {

// Threading: one thread.
class WorkerPools : public WorkerPool {
 public:
  using OnSize = std::function<void(std::string_view kind, uint32_t workers)>;
  // `on_size` is called when a kind is to have another number of workers.
  explicit WorkerPools(OnSize on_size) : on_size_(std::move(on_size)) {}
  // `pool` outlives this.
  void add(const std::string& kind, WorkerPool& pool) { pools_[kind] = &pool; }

  Result<uint32_t> size(std::string_view kind) override;
  Status set_size(std::string_view kind, uint32_t workers) override;
  std::optional<std::string> next_to_leave(std::string_view kind) override;

 private:
  Result<WorkerPool*> pool_of(std::string_view kind) const;

  const OnSize on_size_;
  std::map<std::string, WorkerPool*, std::less<>> pools_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_FLEET_POOLS_WORKER_POOLS_H_
