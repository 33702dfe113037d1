// How long the controller takes to choose the variant of a call, with all that it brings up to date
// for that (control/controller/task_router.h).
//
//   make bench-task_router
//
// Arguments: variants of the task, all loaded on each device; devices.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "control/controller/cluster.h"
#include "control/controller/task_router.h"

namespace foliot {
namespace {

constexpr TimePoint kNow = TimePoint::from_nanoseconds(1'000'000'000);

struct LoadedTask {
  LoadedTask(int64_t variants, int64_t devices) {
    auto task = std::make_shared<TaskInfo>();
    task->id = ServedTaskId(1);
    for (uint32_t i = 0; i < variants; ++i) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(i);
      model->name = std::to_string(i);
      model->buckets.resize(1);
      model->only().batch_sizes = {1, 2, 4, 8};
      const Duration exec = Duration::milliseconds(1 + i);
      model->only().seed_exec = {{exec, exec * 3 / 2, exec * 5 / 2, exec * 4}};
      model->only().seed_load = Duration::milliseconds(10);
      cluster.add_model(model);
      task->variants.push_back({model, static_cast<double>(i) / static_cast<double>(variants)});
    }
    std::vector<ModelId> residents;
    for (uint32_t i = 0; i < variants; ++i) residents.push_back(ModelId(i));
    for (uint32_t i = 0; i < devices; ++i) {
      DeviceModel& device = cluster.add_device(cluster.intern_kind(kDefaultKind), 0);
      cluster.timings.emplace_back();
      device.lose();
      device.join(1024, 1, residents, static_cast<uint32_t>(variants), kNow);
    }
    router.add(task);
  }
  Cluster cluster;
  TaskRouter router{cluster, TaskOptions()};
};

void BM_Route(benchmark::State& state) {
  LoadedTask loaded(state.range(0), state.range(1));
  Request request{.id = RequestId(1), .task = ServedTaskId(1), .requirements = {.accuracy = 0.3}};
  request.deadline = kNow + Duration::milliseconds(500);
  for (auto _ : state) {
    const TaskRouter::Route route = loaded.router.route(request, kNow);
    Request routed = request;
    routed.model = route.model;
    loaded.router.on_waiting(routed);
    loaded.router.on_taken(routed);
    benchmark::DoNotOptimize(route.chosen);
  }
}
BENCHMARK(BM_Route)->ArgsProduct({{3, 8, 64}, {1, 4}});

}  // namespace
}  // namespace foliot
