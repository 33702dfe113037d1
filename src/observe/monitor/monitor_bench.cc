// What the monitor costs the controller's loop, per request, without a viewer.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "observe/monitor/monitor.h"

namespace foliot {
namespace {

// A batch of requests from arrival to answer, with the LOADs left out.
void observe_batch(Monitor& monitor, uint64_t batch, uint32_t rows) {
  const TimePoint now = TimePoint() + Duration::milliseconds(static_cast<int64_t>(batch));
  Action action{.id = ActionId(batch + 1), .earliest = now, .latest = now, .batch_size = rows};
  for (uint32_t row = 0; row < rows; ++row) {
    const RequestId id(batch * rows + row);
    monitor.on_request({.id = id, .arrival = now, .deadline = now + Duration::milliseconds(50)}, now);
    action.rows.add({id, PayloadHandle()});
  }
  monitor.on_action(action, now);
  monitor.on_outcome(action, {.action = action.id, .start = now, .end = now}, now);
  for (const BatchRows::Row& row : action.rows) {
    monitor.on_completion(
        {.id = row.request, .detail = {}, .arrival = now, .finished = now, .batch_size = rows, .exec_start = now}, now);
  }
}

void BM_Monitoring(benchmark::State& state) {
  Monitor monitor;
  ModelInfo model;
  model.name = "resnet50";
  monitor.on_model(model);
  monitor.on_device({.device = DeviceId(0), .joined = true, .kind = kDefaultKind}, TimePoint());
  const auto rows = static_cast<uint32_t>(state.range(0));
  uint64_t batch = 0;
  for (auto _ : state) observe_batch(monitor, batch++, rows);
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_Monitoring)->Arg(1)->Arg(8);

}  // namespace
}  // namespace foliot
