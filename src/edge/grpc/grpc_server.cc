#include "edge/grpc/grpc_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <health.grpc.pb.h>
#include <inference.grpc.pb.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "edge/grpc/grpc_acceptor.h"
#include "edge/grpc/grpc_calls.h"
#include "edge/grpc/grpc_credentials.h"
#include "edge/grpc/grpc_feedback.h"
#include "edge/grpc/grpc_inference.h"
#include "edge/grpc/grpc_jobs.h"
#include "edge/grpc/grpc_personal.h"
#include "edge/grpc/grpc_request.h"
#include "edge/grpc/grpc_unknown_methods.h"
#include "edge/requests/frontend_timeouts.h"
#include "edge/requests/request_parameters.h"
#include "edge/requests/server_info.h"
#include "edge/requests/server_settings.h"
#include "foundation/base/check.h"
#include "foundation/platform/thread.h"

namespace foliot {
namespace {

using HealthProtocol = GrpcService<grpc::health::v1::Health::AsyncService>;

LogSetting log_setting_of(const inference::LogSettingsRequest::SettingValue& setting) {
  if (setting.has_bool_param()) return setting.bool_param();
  if (setting.has_uint32_param()) return uint64_t{setting.uint32_param()};
  return setting.string_param();
}

int milliseconds(Duration duration) { return static_cast<int>(duration.to_milliseconds()); }

// A method other than inference.
template <typename Request, typename Response>
class UnaryCall final : public GrpcCall {
 public:
  using Writer = grpc::ServerAsyncResponseWriter<Response>;
  using Finish = std::function<void(grpc::Status)>;
  struct Method {
    std::function<void(grpc::ServerContext*, GrpcMessage<Request>*, Writer*, void*)> accept;
    std::function<void(const Request&, Response&, Finish)> handle;
    std::optional<Scope> scope;
  };

  UnaryCall(GrpcCalls& calls, std::shared_ptr<const Method> method) : GrpcCall(calls), method_(std::move(method)) {
    method_->accept(&context_, &sent_, &writer_, accepted_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<UnaryCall>(method_);
    const Finish finish = [this](const grpc::Status& status) {
      if (calls_.stopping()) return;
      const grpc::Status ending = within_budget(status, response_);
      writer_.Finish(response_, ending, finished_.pointer());
    };
    const auto refusal = turned_away(method_->scope, Request::descriptor()->name());
    if (refusal) return finish(*refusal);
    sent_.status.ok() ? method_->handle(sent_.message, response_, finish) : finish(to_grpc(sent_.status));
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  const std::shared_ptr<const Method> method_;
  GrpcMessage<Request> sent_{calls_.message_bytes_max()};
  Response response_;
  Writer writer_{&context_};
  GrpcTag<UnaryCall> accepted_{*this, &UnaryCall::on_accepted};
  GrpcTag<UnaryCall> finished_{*this, &UnaryCall::on_finished};
};

}  // namespace

struct GrpcServer::State {
  State(GrpcServerOptions given, const ProtocolParts& given_parts, const std::function<TimePoint()>& now);

  Status start();
  void stop();
  std::unordered_map<uint16_t, Turn> calling_ports();

  // Serves a method whose answer is there at once, handle(request, response), to keys
  // with the scope; without a scope, to every caller.
  template <typename Request, typename Response, typename Accept, typename Handle>
  void serve(Accept accept, Handle handle, std::optional<Scope> scope = Scope::kInfer);
  // Serves a method whose answer comes later: handle(request, finish).
  template <typename Request, typename Response, typename Accept, typename Handle>
  void serve_later(Accept accept, Handle handle, std::optional<Scope> scope);
  void serve_server_methods();
  void serve_model_methods();
  void serve_repository_methods();
  void serve_shared_memory_methods();
  void serve_settings();
  void serve_health();
  static ParameterValue value_of(const inference::ModelRepositoryParameter& parameter) {
    if (parameter.has_bool_param()) return parameter.bool_param();
    if (parameter.has_int64_param()) return parameter.int64_param();
    if (parameter.has_string_param()) return std::string_view(parameter.string_param());
    return {};
  }
  // Of a load or an unload.
  Status read_parameters(const auto& request, VersionRequest* version) {
    UnknownNamesOfRequest unknown;
    for (const auto& [name, parameter] : request.parameters()) {
      FOLIOT_RETURN_IF_ERROR(read_repository_parameter(name, value_of(parameter), version, unknown));
    }
    parts.unknown_names.note(unknown);
    return Status();
  }

  const GrpcServerOptions options;
  const ProtocolParts parts;
  const std::shared_ptr<GrpcCredentials> tls;  // null: plain
  uint16_t port = 0;

  InferenceProtocol protocol;
  HealthProtocol health;
  PersonalProtocol personal;
  ApplicationsProtocol applications;
  JobsProtocol jobs;
  BodyBudget bodies;
  AnswerBudget answers;
  grpc::AsyncGenericService unknown_methods;
  GrpcCalls calls;
  std::vector<std::unique_ptr<GrpcCalls>> more_calls;  // inferences alone
  std::unique_ptr<grpc::Server> server;
  GrpcAcceptor acceptor;
  std::vector<std::thread> threads;  // of calls, then of more_calls
};

GrpcServer::State::State(GrpcServerOptions given, const ProtocolParts& given_parts,
                         const std::function<TimePoint()>& now)
    : options(std::move(given)),
      parts(given_parts),
      tls(options.tls ? std::make_shared<GrpcCredentials>(*options.tls) : nullptr),
      bodies(options.bodies_bytes_max),
      answers(options.bodies_bytes_max),
      calls(parts, now, options.requests_in_flight_max, options.body_bytes_max, bodies, answers),
      acceptor({.connections_max = options.connections_max,
                .idle_timeout = options.idle_timeout,
                .request_timeout = options.request_timeout,
                .now = [this] { return calls.now(); },
                .calling_ports = [this] { return calling_ports(); }}) {
  FOLIOT_CHECK(options.threads > 0);
  while (more_calls.size() + 1 < options.threads) {
    more_calls.push_back(std::make_unique<GrpcCalls>(parts, now, options.requests_in_flight_max, options.body_bytes_max,
                                                     bodies, answers));
  }
}

std::unordered_map<uint16_t, Turn> GrpcServer::State::calling_ports() {
  std::unordered_map<uint16_t, Turn> ports = calls.calling_ports();
  for (const auto& more : more_calls) {
    for (const auto& [client, turn] : more->calling_ports()) {
      Turn& known = ports.try_emplace(client, turn).first->second;
      known = std::max(known, turn);
    }
  }
  return ports;
}

template <typename Request, typename Response, typename Accept, typename Handle>
void GrpcServer::State::serve_later(Accept accept, Handle handle, std::optional<Scope> scope) {
  using Unary = UnaryCall<Request, Response>;
  auto method = std::make_shared<typename Unary::Method>();
  method->accept = [this, accept](grpc::ServerContext* context, GrpcMessage<Request>* sent, auto* writer, void* tag) {
    accept(context, sent, writer, calls.queue(), tag);
  };
  method->handle = handle;
  method->scope = scope;
  calls.add<Unary>(std::move(method));
}

template <typename Request, typename Response, typename Accept, typename Handle>
void GrpcServer::State::serve(Accept accept, Handle handle, std::optional<Scope> scope) {
  const auto handle_and_finish = [handle](const Request& request, Response& response, const auto& finish) {
    finish(handle(request, response));
  };
  serve_later<Request, Response>(accept, handle_and_finish, scope);
}

// What accepts calls of `method`.
#define FOLIOT_ACCEPT(service_object, method) \
  [this](auto... arguments) { service_object.accept(#method, arguments...); }

void GrpcServer::State::serve_server_methods() {
  using namespace inference;  // NOLINT: the messages of the protocol
  serve<ServerLiveRequest, ServerLiveResponse>(
      FOLIOT_ACCEPT(protocol, ServerLive),
      [](auto&, auto& response) {
        response.set_live(true);
        return grpc::Status::OK;
      },
      std::nullopt);
  serve<ServerReadyRequest, ServerReadyResponse>(
      FOLIOT_ACCEPT(protocol, ServerReady),
      [this](auto&, auto& response) {
        response.set_ready(parts.names.ready());
        return grpc::Status::OK;
      },
      std::nullopt);
  serve<ServerMetadataRequest, ServerMetadataResponse>(FOLIOT_ACCEPT(protocol, ServerMetadata),
                                                       [](auto&, auto& response) {
                                                         response.set_name(std::string(kServerName));
                                                         response.set_version(std::string(server_version()));
                                                         for (std::string_view extension : kExtensions)
                                                           response.add_extensions(std::string(extension));
                                                         return grpc::Status::OK;
                                                       });
}

void GrpcServer::State::serve_model_methods() {
  using namespace inference;  // NOLINT: the messages of the protocol
  serve<ModelReadyRequest, ModelReadyResponse>(
      FOLIOT_ACCEPT(protocol, ModelReady), [this](auto& request, auto& response) {
        const auto model = parts.names.find(request.name(), request.version());
        response.set_ready(model.ok());  // an unknown model is one that is not ready
        return grpc::Status::OK;
      });
  serve<ModelMetadataRequest, ModelMetadataResponse>(
      FOLIOT_ACCEPT(protocol, ModelMetadata), [this](auto& request, auto& response) {
        const auto model = parts.names.find(request.name(), request.version());
        if (!model.ok()) return to_grpc(model.status());
        const auto all = parts.names.find_all(request.name());
        if (all.ok()) encode_metadata(**model, *all, response);
        return to_grpc(all.status());
      });
  serve<ModelConfigRequest, ModelConfigResponse>(
      FOLIOT_ACCEPT(protocol, ModelConfig), [this](auto& request, auto& response) {
        const auto model = parts.names.find(request.name(), request.version());
        if (model.ok()) encode_config(**model, *response.mutable_config());
        return to_grpc(model.status());
      });
  serve<ModelStatisticsRequest, ModelStatisticsResponse>(
      FOLIOT_ACCEPT(protocol, ModelStatistics), [this](auto& request, auto& response) {
        if (request.name().empty()) {
          for (const auto& model : parts.statistics.snapshot()) encode_statistics(model, *response.add_model_stats());
          return grpc::Status::OK;
        }
        const auto model = parts.names.find(request.name(), request.version());
        if (!model.ok()) return to_grpc(model.status());
        const auto all = parts.names.find_all(request.name());
        for (const auto& each : request.version().empty() && all.ok() ? *all : std::vector{*model}) {
          encode_statistics(parts.statistics.of(*each)->snapshot(), *response.add_model_stats());
        }
        return grpc::Status::OK;
      });
}

void GrpcServer::State::serve_repository_methods() {
  using namespace inference;            // NOLINT: the messages of the protocol
  if (!options.repository_api) return;  // its calls end as UNIMPLEMENTED
  serve<RepositoryIndexRequest, RepositoryIndexResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryIndex),
      [this](auto& request, auto& response) {
        for (const auto& [name, entry] : parts.names.snapshot()) {
          // Of several versions each has an entry of its own.
          if (entry->versions != nullptr || (request.ready() && entry->state != ModelState::kReady)) continue;
          auto* model = response.add_models();
          model->set_name(std::string(client_name(name)));
          model->set_version(entry->version);
          model->set_state(std::string(to_string(entry->state)));
          model->set_reason(entry->reason);
        }
        return grpc::Status::OK;
      },
      Scope::kAdmin);
  // May end on any thread, and after the server; the mailbox brings the answer
  // to the I/O thread or drops it.
  const auto finish_by_mail = [this](const auto& finish) {
    return [mail = calls.mailbox(), finish](const Status& status) {
      mail->post([status, finish] { finish(to_grpc(status)); });
    };
  };
  serve_later<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryModelLoad),
      [this, finish_by_mail](auto& request, auto&, const auto& finish) {
        VersionRequest version;
        const Status status = read_parameters(request, &version);
        if (!status.ok()) return finish(to_grpc(status));
        parts.repository.load_version(request.model_name(), version, finish_by_mail(finish));
      },
      Scope::kAdmin);
  serve_later<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryModelUnload),
      [this, finish_by_mail](auto& request, auto&, const auto& finish) {
        const Status status = read_parameters(request, nullptr);
        if (!status.ok()) return finish(to_grpc(status));
        parts.repository.unload(request.model_name(), finish_by_mail(finish));
      },
      Scope::kAdmin);
}

void GrpcServer::State::serve_shared_memory_methods() {
  using namespace inference;  // NOLINT: the messages of the protocol
  const auto nothing = [](auto&, auto&) { return grpc::Status::OK; };
  const auto unsupported = [](auto&, auto&) { return to_grpc(shared_memory_not_supported()); };
  // Nothing is ever registered, so that status and unregister are always right.
  serve<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
      FOLIOT_ACCEPT(protocol, SystemSharedMemoryStatus), nothing);
  serve<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
      FOLIOT_ACCEPT(protocol, SystemSharedMemoryUnregister), nothing);
  serve<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(FOLIOT_ACCEPT(protocol, CudaSharedMemoryStatus),
                                                                       nothing);
  serve<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      FOLIOT_ACCEPT(protocol, CudaSharedMemoryUnregister), nothing);
  serve<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
      FOLIOT_ACCEPT(protocol, SystemSharedMemoryRegister), unsupported);
  serve<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      FOLIOT_ACCEPT(protocol, CudaSharedMemoryRegister), unsupported);
}

void GrpcServer::State::serve_settings() {
  using namespace inference;  // NOLINT: the messages of the protocol
  serve<TraceSettingRequest, TraceSettingResponse>(FOLIOT_ACCEPT(protocol, TraceSetting), [this](auto& request,
                                                                                                 auto& response) {
    if (!request.model_name().empty()) {
      const Status model = parts.names.find(request.model_name(), "").status();
      if (!model.ok()) return to_grpc(model);
    }
    for (const auto& [name, setting] : request.settings()) {
      const Status status = check_trace_setting(parts.traces, name, {setting.value().begin(), setting.value().end()});
      if (!status.ok()) return to_grpc(status);
    }
    for (const auto& [name, values] : trace_settings(parts.traces))
      for (const std::string& value : values) (*response.mutable_settings())[name].add_value(value);
    return grpc::Status::OK;
  });
  serve<LogSettingsRequest, LogSettingsResponse>(
      FOLIOT_ACCEPT(protocol, LogSettings), [this](auto& request, auto& response) {
        for (const auto& [name, setting] : request.settings()) {
          const Status status = check_log_setting(parts.log_levels, name, log_setting_of(setting));
          if (!status.ok()) return to_grpc(status);
        }
        for (const auto& [name, setting] : log_settings(parts.log_levels)) {
          auto& shown = (*response.mutable_settings())[name];
          if (const auto* flag = std::get_if<bool>(&setting)) shown.set_bool_param(*flag);
          if (const auto* number = std::get_if<uint64_t>(&setting))
            shown.set_uint32_param(static_cast<uint32_t>(*number));
          if (const auto* text = std::get_if<std::string>(&setting)) shown.set_string_param(*text);
        }
        return grpc::Status::OK;
      });
}

void GrpcServer::State::serve_health() {
  using namespace grpc::health::v1;  // NOLINT: the messages of the protocol
  serve<HealthCheckRequest, HealthCheckResponse>(
      FOLIOT_ACCEPT(health, Check),
      [this](auto& request, auto& response) {
        bool serving = parts.names.ready();
        if (!request.service().empty() && request.service() != inference::GRPCInferenceService::service_full_name()) {
          const auto model = parts.names.find(request.service(), "");
          if (model.status().code() == StatusCode::kNotFound) return to_grpc(model.status());
          serving = model.ok();
        }
        response.set_status(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
        return grpc::Status::OK;
      },
      std::nullopt);
  // It names the models, which health does not show to all clients.
  serve<HealthListRequest, HealthListResponse>(FOLIOT_ACCEPT(health, List), [this](auto&, auto& response) {
    const auto put = [&](const std::string& service, bool serving) {
      (*response.mutable_statuses())[service].set_status(serving ? HealthCheckResponse::SERVING
                                                                 : HealthCheckResponse::NOT_SERVING);
    };
    for (const auto& [name, entry] : parts.names.snapshot()) put(name, parts.names.find(name, "").ok());
    put(inference::GRPCInferenceService::service_full_name(), parts.names.ready());
    put("", parts.names.ready());
    return grpc::Status::OK;
  });
}

#undef FOLIOT_ACCEPT

Status GrpcServer::State::start() {
  FOLIOT_ASSIGN_OR_RETURN(port, acceptor.listen(options.address, options.port));
  grpc::ServerBuilder builder;
  using Experimental = grpc::ServerBuilder::experimental_type;
  auto connections = builder.experimental().AddExternalConnectionAcceptor(
      Experimental::ExternalConnectionType::FROM_FD, tls ? tls : grpc::InsecureServerCredentials());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(options.requests_in_flight_max));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(options.header_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(kFrontendTimeouts.handshake));
  // Each inference ends at its deadline without gRPC, which would set a timer for each.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(options.idle_timeout));
  // Clients ping at most every 10 s, unless they were built to do worse; half of that leaves room for what the network
  // holds back. gRPC's default, five minutes, ends connections of clients that keep them alive.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             milliseconds(kFrontendTimeouts.ping_interval_least));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  grpc::ResourceQuota memory("messages");
  memory.Resize(options.bodies_bytes_max);
  builder.SetResourceQuota(memory);
  // GrpcMessage inflates: gRPC would without a limit.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<uint64_t>(options.body_bytes_max, INT_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&protocol);
  builder.RegisterService(&health);
  builder.RegisterService(&personal);
  builder.RegisterService(&applications);
  if (options.repository_api) builder.RegisterService(&jobs);
  builder.RegisterAsyncGenericService(&unknown_methods);
  calls.use(builder.AddCompletionQueue());
  for (const auto& more : more_calls) more->use(builder.AddCompletionQueue());
  server = builder.BuildAndStart();
  FOLIOT_CHECK(server != nullptr);
  serve_server_methods();
  serve_model_methods();
  serve_repository_methods();
  serve_shared_memory_methods();
  serve_settings();
  serve_health();
  serve_inferences(protocol, calls);
  for (const auto& more : more_calls) serve_inferences(protocol, *more);
  serve_personal_models(personal, calls);
  serve_feedback(applications, calls);
  if (options.repository_api) serve_jobs(jobs, calls);
  refuse_unknown_methods(unknown_methods, calls);
  const auto run = [](GrpcCalls& served) {
    pthread_setname_np(pthread_self(), "foliot-grpc");
    wake_promptly();
    served.run();
  };
  threads.emplace_back(run, std::ref(calls));
  for (const auto& more : more_calls) threads.emplace_back(run, std::ref(*more));
  acceptor.start(std::move(connections));
  return Status::ok_status();
}

void GrpcServer::State::stop() {
  acceptor.stop();
  if (threads.empty()) return;
  server->Shutdown(std::chrono::system_clock::now() +
                   std::chrono::nanoseconds(kFrontendTimeouts.stop_grace.nanoseconds()));
  calls.shut_down();
  for (const auto& more : more_calls) more->shut_down();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
}

GrpcServer::GrpcServer(GrpcServerOptions options, const ProtocolParts& parts, const std::function<TimePoint()>& now)
    : state_(std::make_unique<State>(std::move(options), parts, now)) {}

GrpcServer::~GrpcServer() { stop(); }

Status GrpcServer::start() { return state_->start(); }

void GrpcServer::stop() { state_->stop(); }

void GrpcServer::use_tls(const TlsIdentity& identity) {
  FOLIOT_CHECK(state_->tls != nullptr);
  state_->tls->use(identity);
}

uint16_t GrpcServer::port() const { return state_->port; }

}  // namespace foliot
