#include "control/fleet/pools/worker_pools.h"

#include <fmt/format.h>

namespace foliot {

Result<WorkerPool*> WorkerPools::pool_of(std::string_view kind) const {
  const auto found = pools_.find(kind);
  if (found == pools_.end()) return Status::not_found(fmt::format("there is no pool of workers of kind '{}'", kind));
  return found->second;
}

Result<uint32_t> WorkerPools::size(std::string_view kind) {
  FOLIOT_ASSIGN_OR_RETURN(WorkerPool* const pool, pool_of(kind));
  return pool->size(kind);
}

Status WorkerPools::set_size(std::string_view kind, uint32_t workers) {
  FOLIOT_ASSIGN_OR_RETURN(WorkerPool* const pool, pool_of(kind));
  FOLIOT_RETURN_IF_ERROR(pool->set_size(kind, workers));
  on_size_(kind, workers);
  return Status();
}

std::optional<std::string> WorkerPools::next_to_leave(std::string_view kind) {
  const Result<WorkerPool*> pool = pool_of(kind);
  return pool.ok() ? (*pool)->next_to_leave(kind) : std::nullopt;
}

}  // namespace foliot
