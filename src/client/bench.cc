#include "client/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"

namespace foliot {
namespace {

constexpr Duration kPatience = Duration::seconds(30);
// Different inputs per model, as far as they fit into so much memory in all.
constexpr uint64_t kVariantsMax = 8;
constexpr uint64_t kPreparedBytesMax = uint64_t{256} << 20;
constexpr uint32_t kGrpcConnections = 4;
// HTTP/1.1 takes one per request in flight. They are opened as needed; too few
// would turn an open loop into a closed one.
constexpr uint32_t kHttpConnections = 512;

// The client wants its sink before the generator, which is the sink, can exist.
class LateSink : public ResponseSink {
 public:
  void attach(ResponseSink& sink) { sink_ = &sink; }
  void on_response(uint64_t tag, const Response& response) override { sink_->on_response(tag, response); }

 private:
  ResponseSink* sink_ = nullptr;  // set before the first send
};

Duration patience(const BenchOptions& options) {
  return options.deadline ? std::min(*options.deadline * 10, kPatience) : kPatience;
}

ClientOptions client_options(const BenchOptions& options) {
  ClientOptions client{.protocol = options.protocol,
                       .url = options.url,
                       .connections = options.connections,
                       .threads = options.threads,
                       .patience = std::nullopt};
  // A best-effort request must not get a deadline through the back door.
  if (options.deadline) client.patience = patience(options);
  if (client.connections == 0) {
    client.connections = options.protocol == ClientProtocol::kGrpc
                             ? kGrpcConnections
                             : std::clamp(options.concurrency.value_or(kHttpConnections), 1u, kHttpConnections);
  }
  return client;
}

std::string describe_load(const BenchOptions& options) {
  if (options.concurrency) return fmt::format("closed loop, {} at a time", *options.concurrency);
  if (options.arrivals.kind == ArrivalKind::kReplay) {
    return fmt::format("open loop, replay of {} requests", options.arrivals.instants.size());
  }
  return fmt::format("open loop, {}, {:g}/s", to_string(options.arrivals.kind), options.arrivals.rate);
}

LoadReportOptions report_options(const BenchOptions& options, const std::vector<std::string>& models) {
  const std::string deadline =
      options.deadline ? fmt::format("{:g} ms", options.deadline->to_milliseconds()) : "none: best effort";
  return {
      .models = models,
      .deadline = options.deadline,
      .rows_per_request = options.rows,
      .settings = {
          {"server", fmt::format("{} ({})", options.url, options.protocol == ClientProtocol::kGrpc ? "gRPC" : "HTTP")},
          {"load", describe_load(options)},
          {"models", models.size() == 1 ? models.front() : fmt::format("{}", models.size())},
          {"deadline", deadline},
          {"duration",
           fmt::format("{:g} s after {:g} s of warm-up", options.duration.to_seconds(), options.warmup.to_seconds())},
          {"seed", fmt::format("{}", options.seed)}}};
}

Status check(const BenchOptions& options) {
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

Result<std::vector<std::string>> choose_models(const BenchOptions& options, InferenceClient& client) {
  if (!options.models.empty() && options.models != std::vector<std::string>{"all"}) return options.models;
  FOLIOT_ASSIGN_OR_RETURN(std::vector<std::string> models, client.ready_models());
  if (models.empty()) return Status::unavailable(fmt::format("the server at {} has no model ready", options.url));
  return models;
}

Result<std::vector<PreparedRequest>> prepare_model(const BenchOptions& options, const std::string& model,
                                                   uint64_t bytes_max, InferenceClient& client, Random& random) {
  FOLIOT_ASSIGN_OR_RETURN(const ModelDescription description, client.describe(model));
  std::vector<PreparedRequest> requests;
  uint64_t bytes = 0;
  do {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<InputTensor> inputs,
                            random_inputs(description, options.rows, options.shapes, random));
    for (const InputTensor& input : inputs) bytes += input.bytes.size();
    requests.push_back(client.prepare({.model = model, .inputs = std::move(inputs), .deadline = options.deadline}));
  } while (requests.size() < kVariantsMax && bytes < bytes_max);
  return requests;
}

}  // namespace

Result<LoadReport> run_bench(const BenchOptions& options, const LoadHooks& hooks) {
  FOLIOT_RETURN_IF_ERROR(check(options));
  LoadPlan plan;
  if (!options.concurrency) {
    FOLIOT_ASSIGN_OR_RETURN(plan.arrivals, make_arrivals(options.arrivals));
  }
  LateSink sink;
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceClient> client, make_client(client_options(options), sink));
  FOLIOT_RETURN_IF_ERROR(client->connect());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> models, choose_models(options, *client));

  Random random(options.seed);
  for (const std::string& model : models) {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<PreparedRequest> requests,
                            prepare_model(options, model, kPreparedBytesMax / models.size(), *client, random));
    plan.requests.push_back(std::move(requests));
  }
  plan.concurrency = options.concurrency.value_or(1);
  plan.popularity = Popularity(static_cast<uint32_t>(models.size()), options.zipf);
  plan.warmup = options.warmup;
  plan.duration = options.duration;
  plan.patience = patience(options);
  plan.in_flight_max = options.in_flight_max;
  plan.spin = options.spin;
  plan.seed = options.seed;

  LoadReport report(report_options(options, models));
  LoadGenerator generator(std::move(plan), report);
  sink.attach(generator);
  FOLIOT_RETURN_IF_ERROR(generator.run(*client, hooks));
  return report;
}

}  // namespace foliot
