// Bench: one run of load against a server, from finding it to the report: the work of
// `foliot bench`.
#ifndef FOLIOT_LOAD_CLIENT_BENCH_H_
#define FOLIOT_LOAD_CLIENT_BENCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/client/inference_client.h"
#include "load/client/input_generator.h"
#include "load/client/load_generator.h"
#include "load/workload/arrivals.h"
#include "load/workload/load_report.h"
#include "load/workload/workload.h"

namespace foliot {

struct BenchOptions {
  ClientProtocol protocol = ClientProtocol::kGrpc;
  std::string url = "127.0.0.1:8001";

  // The load: a workload, whose models the server must have ...
  std::optional<Workload> workload;
  std::string workload_name;  // for the report: its file
  // ... each of them once before it begins, from the last to the first, so that the
  // first ones stay where memory does not hold all ...
  bool preload = false;
  // ... or a single stream, of models (empty or {"all"}: every one that is ready, in
  // the server's order) ...
  std::vector<std::string> models;
  double zipf = 0;  // their popularity, in their order; 0: uniform
  // ... in a closed loop with so many users in all, or in an open loop.
  std::optional<uint32_t> concurrency;
  ArrivalOptions arrivals;
  std::optional<Duration> deadline;  // sent with every request; nullopt: best effort
  TaskNeeds needs;                   // likewise; of requests for tasks

  Duration warmup = Duration::seconds(1);
  Duration duration = Duration::seconds(10);
  uint32_t rows = 1;         // per request
  InputShapes shapes;        // of inputs whose shape is variable
  uint32_t connections = 0;  // 0: 4 over gRPC; as needed, up to 512, over HTTP
  uint32_t threads = 1;      // that receive; one more sends
  uint32_t in_flight_max = 8192;
  Duration spin;  // before each send: sharper, for the price of a core
  uint64_t seed = 1;
};

// Blocks until the run is over. Requests are given up after ten deadlines (30 s
// without one), so it always ends. The same workload and seed are the same arrivals
// as in a simulation. Errors: no server, no such model, inputs that cannot be made
// up, options that make no sense; refusals and failures of single
// requests are counted in the report.
Result<LoadReport> run_bench(const BenchOptions& options, const LoadHooks& hooks);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_BENCH_H_
