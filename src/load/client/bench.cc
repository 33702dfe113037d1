#include "load/client/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <semaphore>
#include <set>
#include <span>
#include <utility>

#include "foundation/base/random.h"
#include "load/client/load_source.h"
#include "load/workload/workload_arrivals.h"

namespace foliot {
namespace {

constexpr Duration kAnswerTimeoutMax = Duration::seconds(30);
// Different inputs per model, as far as they fit into so much memory in all.
constexpr uint64_t kVariantsMax = 8;
constexpr uint64_t kPreparedBytesMax = uint64_t{256} << 20;
constexpr uint32_t kGrpcConnections = 4;
// HTTP/1.1 takes one per request in flight. They are opened as needed; too few
// would turn an open loop into a closed one.
constexpr uint32_t kHttpConnections = 512;
constexpr size_t kNamesShown = 8;
constexpr std::chrono::milliseconds kStopInterval(100);

// The client wants its sink before the generator, which is the sink, can exist.
class LateSink : public ResponseSink {
 public:
  void attach(ResponseSink& sink) { sink_ = &sink; }
  void on_response(uint64_t tag, const Response& response) override { sink_->on_response(tag, response); }

 private:
  ResponseSink* sink_ = nullptr;  // set before the first send
};

// How long an answer within `slo` is waited for.
Duration answer_timeout(Duration slo) { return slo < kAnswerTimeoutMax / 10 ? slo * 10 : kAnswerTimeoutMax; }

ClientOptions client_options(const BenchOptions& options) {
  ClientOptions client{
      .protocol = options.protocol, .url = options.url, .connections = options.connections, .threads = options.threads};
  if (client.connections == 0) {
    client.connections = options.protocol == ClientProtocol::kGrpc
                             ? kGrpcConnections
                             : std::clamp(options.concurrency.value_or(kHttpConnections), 1u, kHttpConnections);
  }
  return client;
}

std::string describe_load(const BenchOptions& options) {
  if (options.workload) return fmt::format("workload {}", options.workload_name);
  if (options.concurrency) return fmt::format("closed loop, {} at a time", *options.concurrency);
  if (options.arrivals.kind == ArrivalKind::kReplay) {
    return fmt::format("open loop, replay of {} requests", options.arrivals.instants.size());
  }
  return fmt::format("open loop, {}, {:g}/s", to_string(options.arrivals.kind), options.arrivals.rate);
}

std::string describe_deadline(const BenchOptions& options) {
  if (options.workload) return "as the workload says";
  return options.deadline ? fmt::format("{:g} ms", options.deadline->to_milliseconds()) : "none: best effort";
}

LoadReportOptions report_options(const BenchOptions& options, const std::vector<std::string>& models) {
  LoadReportOptions report{
      .models = models,
      .rows_per_request = options.rows,
      .settings = {
          {"server", fmt::format("{} ({})", options.url, options.protocol == ClientProtocol::kGrpc ? "gRPC" : "HTTP")},
          {"load", describe_load(options)},
          {"models", models.size() == 1 ? models.front() : fmt::format("{}", models.size())},
          {"deadline", describe_deadline(options)},
          {"duration",
           fmt::format("{:g} s after {:g} s of warm-up", options.duration.to_seconds(), options.warmup.to_seconds())},
          {"seed", fmt::format("{}", options.seed)}}};
  if (options.needs.accuracy)
    report.settings.push_back({"accuracy", fmt::format("at least {:g}", *options.needs.accuracy)});
  if (options.needs.cost) report.settings.push_back({"cost", fmt::format("at most ${:g} a row", *options.needs.cost)});
  if (!options.workload) return report;
  for (const Stream& stream : options.workload->streams) report.streams.push_back(stream.name);
  return report;
}

Status check(const BenchOptions& options) {
  if (options.workload) FOLIOT_RETURN_IF_ERROR(options.workload->check());
  if (options.rows == 0) return Status::invalid_argument("a request needs at least one row");
  if (options.concurrency == 0u) return Status::invalid_argument("a closed loop needs a concurrency of at least 1");
  if (options.duration <= Duration() || options.warmup < Duration()) {
    return Status::invalid_argument("the duration must be above 0, and the warm-up not negative");
  }
  if (options.deadline && *options.deadline < Duration::microseconds(1)) {
    return Status::invalid_argument("the deadline must be at least a microsecond");
  }
  if (options.zipf < 0) return Status::invalid_argument("the exponent of Zipf's law must not be negative");
  if (options.in_flight_max == 0) return Status::invalid_argument("at least one request must be allowed in flight");
  return Status();
}

// ---- What is asked ----

Status check_ready(const std::vector<std::string>& models, const std::vector<std::string>& ready,
                   const BenchOptions& options) {
  const std::set<std::string> known(ready.begin(), ready.end());
  for (const std::string& model : models) {
    if (known.contains(model)) continue;
    const auto shown = std::span(ready).first(std::min(ready.size(), kNamesShown));
    return Status::not_found(fmt::format("{}: the server at {} has no model '{}' that is ready; it has {}{}",
                                         options.workload_name, options.url, model,
                                         ready.empty() ? "none" : fmt::format("{}", fmt::join(shown, ", ")),
                                         ready.size() > shown.size() ? ", ..." : ""));
  }
  return Status();
}

Result<std::vector<std::string>> choose_models(const BenchOptions& options, InferenceClient& client) {
  if (!options.workload && !options.models.empty() && options.models != std::vector<std::string>{"all"}) {
    return options.models;
  }
  FOLIOT_ASSIGN_OR_RETURN(std::vector<std::string> ready, client.ready_models());
  if (!options.workload && ready.empty()) {
    return Status::unavailable(fmt::format("the server at {} has no model ready", options.url));
  }
  if (!options.workload) return ready;
  std::vector<std::string> models = options.workload->model_names();
  FOLIOT_RETURN_IF_ERROR(check_ready(models, ready, options));
  return models;
}

// What the flags say, as a workload.
Workload workload_of(const BenchOptions& options, const std::vector<std::string>& models) {
  Workload workload;
  for (const std::string& model : models) workload.groups.push_back({.name = model, .slo = options.deadline});
  workload.streams.push_back({.name = "requests", .arrivals = options.arrivals, .zipf = options.zipf});
  return workload;
}

Result<std::unique_ptr<LoadSource>> make_source(const BenchOptions& options, const Workload& workload) {
  if (options.concurrency) {
    return make_users(*options.concurrency, Popularity(workload.models(), options.zipf),
                      options.deadline.value_or(Duration::max()), options.seed);
  }
  FOLIOT_ASSIGN_OR_RETURN(WorkloadArrivals arrivals, WorkloadArrivals::make(workload, options.seed));
  return make_workload_source(std::move(arrivals));
}

// By model: the SLOs with which it is asked.
std::vector<std::set<Duration>> slos_of_models(const Workload& workload) {
  const std::vector<uint32_t> groups = workload.group_of_models();
  std::vector<std::set<Duration>> slos(groups.size());
  for (const Stream& stream : workload.streams) {
    for (const uint32_t model : workload.models_of(stream)) {
      slos[model].insert(workload.slo_of(stream, workload.groups[groups[model]]));
    }
  }
  return slos;
}

// ---- Requests ----

// Makes up inputs of one model after the other.
class RequestMaker {
 public:
  RequestMaker(const BenchOptions& options, InferenceClient& client)
      : options_(options), client_(client), random_(options.seed) {}

  // As many variants as `bytes_max` allows; one at least. max(): no deadline.
  Result<std::vector<PreparedRequest>> make(const ModelDescription& model, Duration slo, uint64_t bytes_max) {
    std::vector<PreparedRequest> requests;
    uint64_t bytes = 0;
    do {
      InferenceBody body{.model = model.name,
                         .inputs = {},
                         .needs = options_.needs,
                         .deadline = std::nullopt,
                         .answer_timeout = std::nullopt};
      // A best-effort request must not get a deadline through the back door.
      if (slo != Duration::max()) {
        body.deadline = slo;
        body.answer_timeout = answer_timeout(slo);
      }
      FOLIOT_ASSIGN_OR_RETURN(body.inputs, random_inputs(model, options_.rows, options_.shapes, random_));
      for (const InputTensor& input : body.inputs) bytes += input.bytes.size();
      requests.push_back(client_.prepare(body));
    } while (requests.size() < kVariantsMax && bytes < bytes_max);
    return requests;
  }

 private:
  const BenchOptions& options_;
  InferenceClient& client_;
  Random random_;
};

// What can be sent, and one request without a deadline per model if they are to be
// preloaded.
struct Prepared {
  RequestVariants requests;
  std::vector<PreparedRequest> preloads;
};

Result<Prepared> prepare(const BenchOptions& options, const Workload& workload, InferenceClient& client) {
  const std::vector<std::string> names = workload.model_names();
  const std::vector<std::set<Duration>> slos = slos_of_models(workload);
  uint64_t kinds = 0;
  for (const auto& each : slos) kinds += each.size();
  Prepared prepared;
  RequestMaker maker(options, client);
  for (uint32_t model = 0; model < names.size(); ++model) {
    FOLIOT_ASSIGN_OR_RETURN(const ModelDescription description, client.describe(names[model]));
    for (const Duration slo : slos[model]) {
      FOLIOT_ASSIGN_OR_RETURN((prepared.requests[{model, slo}]),
                              maker.make(description, slo, kPreparedBytesMax / kinds));
    }
    if (!options.preload) continue;
    FOLIOT_ASSIGN_OR_RETURN(const auto preload, maker.make(description, Duration::max(), 0));
    prepared.preloads.push_back(preload.front());
  }
  return prepared;
}

// Sends one request after the other, the last one first.
class Preloader : public ResponseSink {
 public:
  // `requests` are of `models`, or there are none.
  Status run(std::span<const PreparedRequest> requests, std::span<const std::string> models, InferenceClient& client,
             const LoadHooks& hooks) {
    for (size_t i = requests.size(); i-- > 0;) {
      client.send(requests[i], i);
      while (!answered_.try_acquire_for(kStopInterval)) {
        if (hooks.should_stop && hooks.should_stop()) return Status::unavailable("stopped while preloading");
      }
      if (response_.outcome == LoadOutcome::kAnswered) continue;
      return Status::unavailable(fmt::format("model '{}' cannot be preloaded: {}", models[i], response_.reason));
    }
    return Status();
  }

  void on_response(uint64_t /*tag*/, const Response& response) override {
    response_ = response;
    answered_.release();
  }

 private:
  std::binary_semaphore answered_{0};
  Response response_;
};

Duration longest_answer_timeout(const RequestVariants& requests) {
  Duration longest;
  for (const auto& [asked, variants] : requests) longest = std::max(longest, answer_timeout(asked.second));
  return longest;
}

}  // namespace

Result<LoadReport> run_bench(const BenchOptions& options, const LoadHooks& hooks) {
  FOLIOT_RETURN_IF_ERROR(check(options));
  LateSink sink;
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceClient> client, make_client(client_options(options), sink));
  FOLIOT_RETURN_IF_ERROR(client->connect());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> models, choose_models(options, *client));
  const Workload workload = options.workload ? *options.workload : workload_of(options, models);
  LoadPlan plan;
  FOLIOT_ASSIGN_OR_RETURN(plan.source, make_source(options, workload));
  FOLIOT_ASSIGN_OR_RETURN(Prepared prepared, prepare(options, workload, *client));

  Preloader preloader;
  sink.attach(preloader);
  const Status preloaded = preloader.run(prepared.preloads, models, *client, hooks);
  if (!preloaded.ok()) {
    client->stop();  // before the preloader goes
    return preloaded;
  }
  plan.drain_timeout = longest_answer_timeout(prepared.requests);
  plan.requests = std::move(prepared.requests);
  plan.warmup = options.warmup;
  plan.duration = options.duration;
  plan.in_flight_max = options.concurrency.value_or(options.in_flight_max);
  plan.spin = options.spin;

  LoadReport report(report_options(options, models));
  LoadGenerator generator(std::move(plan), report);
  sink.attach(generator);
  FOLIOT_RETURN_IF_ERROR(generator.run(*client, hooks));
  return report;
}

}  // namespace foliot
