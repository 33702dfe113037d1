#include "frontend/grpc_server.h"

#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <health.grpc.pb.h>
#include <inference.grpc.pb.h>
#include <pthread.h>

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "frontend/call_error.h"
#include "frontend/grpc_credentials.h"
#include "frontend/grpc_request.h"
#include "frontend/server_info.h"

namespace foliot {
namespace {

using InferenceProtocol = inference::GRPCInferenceService::AsyncService;
using HealthProtocol = grpc::health::v1::Health::AsyncService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;

// Unary inferences and streams that can be accepted at the same instant.
constexpr int kAcceptedAtOnce = 16;
// Requests of one stream that are unanswered, or whose answers are unwritten.
constexpr size_t kStreamRequestsMax = 1024;
// To say hello, TLS included.
constexpr Duration kHandshakeTimeout = Duration::seconds(10);
// How long stop() lets calls end by themselves.
constexpr std::chrono::milliseconds kStopGrace{200};

grpc::Status to_grpc(const CallError& error) { return {static_cast<grpc::StatusCode>(error.grpc_code), error.message}; }
grpc::Status to_grpc(const Status& status) { return status.ok() ? grpc::Status::OK : to_grpc(call_error(status)); }

int milliseconds(Duration duration) { return static_cast<int>(duration.to_milliseconds()); }

// What the completion queue hands back.
class Event {
 public:
  virtual void happen(bool ok) = 0;

 protected:
  ~Event() = default;
};

// An event that calls a method of what it is part of.
template <typename Owner>
class Tag final : public Event {
 public:
  Tag(Owner& owner, void (Owner::*method)(bool)) : owner_(owner), method_(method) {}
  void happen(bool ok) override { (owner_.*method_)(ok); }

 private:
  Owner& owner_;
  void (Owner::*method_)(bool);
};

// One call of a client's, or the readiness to accept one. Owned by the list.
class Rpc {
 public:
  virtual ~Rpc() = default;
  std::list<std::unique_ptr<Rpc>>::iterator place;
};

}  // namespace

struct GrpcServer::State {
  State(GrpcServerOptions given, InferenceService& given_service, ModelRepository& given_repository,
        const Gate& given_gate);

  Status start();
  void run();
  void stop();

  // Takes a new Rpc into the list.
  template <typename T, typename... Arguments>
  void add(Arguments&&... arguments) {
    rpcs.push_front(std::make_unique<T>(*this, std::forward<Arguments>(arguments)...));
    rpcs.front()->place = rpcs.begin();
  }
  void remove(Rpc& rpc) { rpcs.erase(rpc.place); }

  // Serves a method whose answer is there at once, handle(request, response), to
  // whose key has the scope; to everybody without one.
  template <typename Request, typename Response, typename Accept, typename Handle>
  void serve(Accept accept, Handle handle, std::optional<Scope> scope = Scope::kInfer);
  // Serves a method whose answer comes later: handle(request, finish).
  template <typename Request, typename Response, typename Accept, typename Handle>
  void serve_later(Accept accept, Handle handle, std::optional<Scope> scope);
  void serve_server_methods();
  void serve_model_methods();
  void serve_repository_methods();
  void serve_unsupported_methods();
  void serve_health();

  void on_mail(bool /*ok*/) { mailbox->deliver(); }

  const GrpcServerOptions options;
  InferenceService& service;
  ModelRepository& repository;
  const Gate& gate;
  const std::shared_ptr<GrpcCredentials> tls;  // null: plain
  int port = 0;
  // No operation may begin any more. Of the I/O thread.
  bool stopping = false;

  InferenceProtocol protocol;
  HealthProtocol health;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::list<std::unique_ptr<Rpc>> rpcs;
  Tag<State> mail_tag{*this, &State::on_mail};
  grpc::Alarm mail_alarm;
  std::shared_ptr<Mailbox> mailbox;
  std::thread thread;
};

namespace {

std::string_view authorization_of(const grpc::ServerContext& context) {
  const auto shown = context.client_metadata().find("authorization");
  if (shown == context.client_metadata().end()) return {};
  return {shown->second.data(), shown->second.size()};
}

// Why the caller may not call; nothing if it may. No scope: everybody may.
std::optional<grpc::Status> turned_away(const Gate& gate, const grpc::ServerContext& context,
                                        std::optional<Scope> scope, std::string_view what) {
  if (gate.open() || !scope) return std::nullopt;
  const auto error = gate.turn_away(authorization_of(context), *scope, context.peer(), what);
  if (!error) return std::nullopt;
  return to_grpc(*error);
}

// ---- Methods other than inference

template <typename State, typename Request, typename Response>
class UnaryRpc final : public Rpc {
 public:
  using Writer = grpc::ServerAsyncResponseWriter<Response>;
  using Finish = std::function<void(grpc::Status)>;
  struct Method {
    std::function<void(grpc::ServerContext*, Request*, Writer*, void*)> accept;
    std::function<void(const Request&, Response&, Finish)> handle;
    std::optional<Scope> scope;
  };

  UnaryRpc(State& server, std::shared_ptr<const Method> method) : server_(server), method_(std::move(method)) {
    method_->accept(&context_, &request_, &writer_, static_cast<Event*>(&accepted_));
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || server_.stopping) return server_.remove(*this);
    server_.template add<UnaryRpc>(method_);
    const Finish finish = [this](const grpc::Status& status) {
      if (!server_.stopping) writer_.Finish(response_, status, static_cast<Event*>(&finished_));
    };
    const auto refusal = turned_away(server_.gate, context_, method_->scope, Request::descriptor()->name());
    refusal ? finish(*refusal) : method_->handle(request_, response_, finish);
  }
  void on_finished(bool /*ok*/) { server_.remove(*this); }

  State& server_;
  const std::shared_ptr<const Method> method_;
  grpc::ServerContext context_;
  Request request_;
  Response response_;
  Writer writer_{&context_};
  Tag<UnaryRpc> accepted_{*this, &UnaryRpc::on_accepted};
  Tag<UnaryRpc> finished_{*this, &UnaryRpc::on_finished};
};

// ---- Inference

// When the client stops waiting, on our clock.
TimePoint deadline_of(const grpc::ServerContext& context, TimePoint now) {
  using std::chrono::system_clock;
  const system_clock::time_point deadline = context.deadline();
  if (deadline == system_clock::time_point::max()) return TimePoint::infinite_future();
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - system_clock::now());
  return now + Duration::nanoseconds(left.count());
}

// One message and its inference, from either kind of call.
class GrpcInference {
 public:
  ModelInferRequest& message() { return message_; }

  std::optional<CallError> start(InferenceService& service, const std::shared_ptr<Tenant>& tenant,
                                 const grpc::ServerContext& context, Mailbox& mailbox, CallOwner& owner) {
    Result<GrpcRequest> decoded = decode_grpc_request(message_);
    if (!decoded.ok()) return call_error(decoded.status());
    request_ = std::move(decoded).value();
    request_.query.arrival = service.now();
    request_.query.transport_deadline = deadline_of(context, request_.query.arrival);
    auto started =
        service.start(message_.model_name(), message_.model_version(), request_.query, tenant, mailbox, owner);
    if (auto* error = std::get_if<CallError>(&started)) return std::move(*error);
    pending_ = std::get<std::unique_ptr<PendingCall>>(std::move(started));
    return std::nullopt;
  }

  // After it is done; empty if it was refused.
  void encode(ModelInferResponse& response) {
    if (pending_->call().served()) encode_grpc_response(pending_->call(), request_.marks_final_response, response);
  }
  // Before the response leaves: why it must not. What never began is settled.
  std::optional<CallError> settle(InferenceService& service) {
    if (pending_ == nullptr) return std::nullopt;
    service.settle(*pending_);
    if (pending_->call().served()) return std::nullopt;
    return refusal_of(pending_->call());
  }

  void cancel(InferenceService& service) {
    if (pending_ != nullptr) service.cancel(*pending_);
  }

 private:
  ModelInferRequest message_;
  GrpcRequest request_;
  std::unique_ptr<PendingCall> pending_;
};

template <typename State>
class UnaryInferenceRpc final : public Rpc, public CallOwner {
 public:
  explicit UnaryInferenceRpc(State& server) : server_(server) {
    context_.AsyncNotifyWhenDone(static_cast<Event*>(&done_tag_));
    server_.protocol.RequestModelInfer(&context_, &inference_.message(), &writer_, server_.queue.get(),
                                       server_.queue.get(), static_cast<Event*>(&accepted_tag_));
  }

  void on_call_done() override {
    inference_.encode(response_);
    const auto error = inference_.settle(server_.service);
    error ? finish_with(*error) : finish(grpc::Status::OK);
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || server_.stopping) return server_.remove(*this);
    server_.template add<UnaryInferenceRpc>();
    if (const auto refusal = turned_away(server_.gate, context_, Scope::kInfer, "ModelInfer")) return finish(*refusal);
    const std::shared_ptr<Tenant> tenant = server_.gate.tenant_of(authorization_of(context_));
    if (const auto error = inference_.start(server_.service, tenant, context_, *server_.mailbox, *this)) {
      finish_with(*error);
    }
  }
  void finish_with(const CallError& error) {
    if (!error.reason.empty()) context_.AddTrailingMetadata("foliot-refusal", std::string(error.reason));
    if (error.retry_after)
      context_.AddTrailingMetadata("retry-after", std::to_string(retry_after_seconds(*error.retry_after)));
    finish(to_grpc(error));
  }
  void finish(const grpc::Status& status) {
    if (!server_.stopping) writer_.Finish(response_, status, static_cast<Event*>(&finished_tag_));
  }
  void on_finished(bool /*ok*/) {
    finished_ = true;
    remove_if_over();
  }
  void on_done(bool /*ok*/) {
    done_ = true;
    if (context_.IsCancelled() && !finished_) inference_.cancel(server_.service);
    remove_if_over();
  }
  void remove_if_over() {
    if (finished_ && done_) server_.remove(*this);
  }

  State& server_;
  grpc::ServerContext context_;
  GrpcInference inference_;
  ModelInferResponse response_;
  grpc::ServerAsyncResponseWriter<ModelInferResponse> writer_{&context_};
  bool finished_ = false;
  bool done_ = false;
  Tag<UnaryInferenceRpc> accepted_tag_{*this, &UnaryInferenceRpc::on_accepted};
  Tag<UnaryInferenceRpc> finished_tag_{*this, &UnaryInferenceRpc::on_finished};
  Tag<UnaryInferenceRpc> done_tag_{*this, &UnaryInferenceRpc::on_done};
};

template <typename State>
class StreamInferenceRpc final : public Rpc {
 public:
  explicit StreamInferenceRpc(State& server) : server_(server) {
    context_.AsyncNotifyWhenDone(static_cast<Event*>(&done_tag_));
    server_.protocol.RequestModelStreamInfer(&context_, &stream_, server_.queue.get(), server_.queue.get(),
                                             static_cast<Event*>(&accepted_tag_));
  }

 private:
  // One request of the stream: in flight, then waiting to be written.
  struct Item final : public CallOwner {
    explicit Item(StreamInferenceRpc& owner) : stream(owner) {}
    void on_call_done() override { stream.on_item_done(*this); }

    StreamInferenceRpc& stream;
    GrpcInference inference;
    ModelStreamInferResponse response;
    typename std::list<Item>::iterator place;
  };

  void on_accepted(bool ok) {
    if (!ok || server_.stopping) return server_.remove(*this);
    server_.template add<StreamInferenceRpc>();
    if (const auto refusal = turned_away(server_.gate, context_, Scope::kInfer, "ModelStreamInfer")) {
      input_ended_ = finishing_ = true;
      stream_.Finish(*refusal, static_cast<Event*>(&finished_tag_));
      return;
    }
    tenant_ = server_.gate.tenant_of(authorization_of(context_));
    read();
  }

  void read() {
    const bool full = in_flight_.size() + to_write_.size() >= kStreamRequestsMax;
    if (reading_ || input_ended_ || full || server_.stopping) return;
    reading_ = true;
    next_.emplace_back(*this);
    stream_.Read(&next_.front().inference.message(), static_cast<Event*>(&read_tag_));
  }
  void on_read(bool ok) {
    reading_ = false;
    if (ok) {
      start_item();
    } else {
      input_ended_ = true;
      next_.clear();
    }
    advance();
  }

  void start_item() {
    in_flight_.splice(in_flight_.begin(), next_);
    Item& item = in_flight_.front();
    item.place = in_flight_.begin();
    if (const auto error = item.inference.start(server_.service, tenant_, context_, *server_.mailbox, item)) {
      put_error(item, *error);
      to_write_.splice(to_write_.end(), in_flight_, item.place);
    }
  }
  void on_item_done(Item& item) {
    item.inference.encode(*item.response.mutable_infer_response());
    to_write_.splice(to_write_.end(), in_flight_, item.place);
    advance();
  }
  void put_error(Item& item, const CallError& error) {
    item.response.Clear();
    item.response.set_error_message(error.message);
    item.response.mutable_infer_response()->set_id(item.inference.message().id());
    item.response.mutable_infer_response()->set_model_name(item.inference.message().model_name());
  }

  void write() {
    if (writing_ || to_write_.empty() || server_.stopping) return;
    writing_ = true;
    Item& item = to_write_.front();
    if (const auto error = item.inference.settle(server_.service)) put_error(item, *error);
    grpc::WriteOptions write_options;
    // More follow at once: let the transport send them together.
    if (to_write_.size() > 1) write_options.set_buffer_hint();
    stream_.Write(item.response, write_options, static_cast<Event*>(&written_tag_));
  }
  void on_written(bool ok) {
    writing_ = false;
    to_write_.pop_front();
    if (!ok) {
      for (Item& item : to_write_) item.inference.settle(server_.service);
      to_write_.clear();
    }
    advance();
  }

  // Begins whatever can begin.
  void advance() {
    write();
    read();
    const bool answered = input_ended_ && in_flight_.empty() && to_write_.empty();
    if (!answered || finishing_ || server_.stopping) return;
    finishing_ = true;
    stream_.Finish(grpc::Status::OK, static_cast<Event*>(&finished_tag_));
  }
  void on_finished(bool /*ok*/) {
    finished_ = true;
    remove_if_over();
  }
  void on_done(bool /*ok*/) {
    done_ = true;
    if (context_.IsCancelled())
      for (Item& item : in_flight_) item.inference.cancel(server_.service);
    remove_if_over();
  }
  void remove_if_over() {
    if (finished_ && done_) server_.remove(*this);
  }

  State& server_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<ModelStreamInferResponse, ModelInferRequest> stream_{&context_};
  std::shared_ptr<Tenant> tenant_;
  std::list<Item> next_;  // the one that is being read
  std::list<Item> in_flight_;
  std::list<Item> to_write_;  // the first may be being written
  bool reading_ = false;
  bool writing_ = false;
  bool input_ended_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  bool done_ = false;
  Tag<StreamInferenceRpc> accepted_tag_{*this, &StreamInferenceRpc::on_accepted};
  Tag<StreamInferenceRpc> read_tag_{*this, &StreamInferenceRpc::on_read};
  Tag<StreamInferenceRpc> written_tag_{*this, &StreamInferenceRpc::on_written};
  Tag<StreamInferenceRpc> finished_tag_{*this, &StreamInferenceRpc::on_finished};
  Tag<StreamInferenceRpc> done_tag_{*this, &StreamInferenceRpc::on_done};
};

}  // namespace

// ---- The server

GrpcServer::State::State(GrpcServerOptions given, InferenceService& given_service, ModelRepository& given_repository,
                         const Gate& given_gate)
    : options(std::move(given)),
      service(given_service),
      repository(given_repository),
      gate(given_gate),
      tls(options.tls ? std::make_shared<GrpcCredentials>(*options.tls) : nullptr),
      mailbox(std::make_shared<Mailbox>(options.requests_in_flight_max, [this] {
        // Long past, or gRPC would round it up to the next millisecond.
        mail_alarm.Set(queue.get(), gpr_time_0(GPR_CLOCK_MONOTONIC), static_cast<Event*>(&mail_tag));
      })) {}

template <typename Request, typename Response, typename Accept, typename Handle>
void GrpcServer::State::serve_later(Accept accept, Handle handle, std::optional<Scope> scope) {
  using Unary = UnaryRpc<State, Request, Response>;
  auto method = std::make_shared<typename Unary::Method>();
  method->accept = [this, accept](grpc::ServerContext* context, Request* request, auto* writer, void* tag) {
    accept(context, request, writer, queue.get(), queue.get(), tag);
  };
  method->handle = handle;
  method->scope = scope;
  add<Unary>(std::move(method));
}

template <typename Request, typename Response, typename Accept, typename Handle>
void GrpcServer::State::serve(Accept accept, Handle handle, std::optional<Scope> scope) {
  const auto handle_and_finish = [handle](const Request& request, Response& response, const auto& finish) {
    finish(handle(request, response));
  };
  serve_later<Request, Response>(accept, handle_and_finish, scope);
}

// The generated name of the method that accepts calls of `method`.
#define FOLIOT_ACCEPT(service_object, method) \
  [this](auto... arguments) { service_object.Request##method(arguments...); }

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
        response.set_ready(service.ready());
        return grpc::Status::OK;
      },
      std::nullopt);
  serve<ServerMetadataRequest, ServerMetadataResponse>(FOLIOT_ACCEPT(protocol, ServerMetadata),
                                                       [](auto&, auto& response) {
                                                         response.set_name(std::string(kServerName));
                                                         response.set_version(std::string(kServerVersion));
                                                         for (std::string_view extension : kExtensions)
                                                           response.add_extensions(std::string(extension));
                                                         return grpc::Status::OK;
                                                       });
}

void GrpcServer::State::serve_model_methods() {
  using namespace inference;  // NOLINT: the messages of the protocol
  serve<ModelReadyRequest, ModelReadyResponse>(
      FOLIOT_ACCEPT(protocol, ModelReady), [this](auto& request, auto& response) {
        const auto model = service.find(request.name(), request.version());
        response.set_ready(model.ok());  // an unknown model is one that is not ready
        return grpc::Status::OK;
      });
  serve<ModelMetadataRequest, ModelMetadataResponse>(
      FOLIOT_ACCEPT(protocol, ModelMetadata), [this](auto& request, auto& response) {
        const auto model = service.find(request.name(), request.version());
        if (model.ok()) encode_metadata(**model, response);
        return to_grpc(model.status());
      });
  serve<ModelConfigRequest, ModelConfigResponse>(FOLIOT_ACCEPT(protocol, ModelConfig),
                                                 [this](auto& request, auto& response) {
                                                   const auto model = service.find(request.name(), request.version());
                                                   if (model.ok()) encode_config(**model, *response.mutable_config());
                                                   return to_grpc(model.status());
                                                 });
  serve<ModelStatisticsRequest, ModelStatisticsResponse>(
      FOLIOT_ACCEPT(protocol, ModelStatistics), [this](auto& request, auto& response) {
        if (request.name().empty()) {
          for (const auto& model : service.statistics().snapshot())
            encode_statistics(model, *response.add_model_stats());
          return grpc::Status::OK;
        }
        const auto model = service.find(request.name(), request.version());
        if (model.ok()) encode_statistics(service.statistics().of(**model).snapshot(), *response.add_model_stats());
        return to_grpc(model.status());
      });
}

void GrpcServer::State::serve_repository_methods() {
  using namespace inference;            // NOLINT: the messages of the protocol
  if (!options.repository_api) return;  // its calls end as UNIMPLEMENTED
  serve<RepositoryIndexRequest, RepositoryIndexResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryIndex),
      [this](auto& request, auto& response) {
        for (const auto& [name, entry] : *service.catalog().snapshot()) {
          if (request.ready() && entry.state != ModelState::kReady) continue;
          auto* model = response.add_models();
          model->set_name(name);
          model->set_version(entry.version);
          model->set_state(std::string(to_string(entry.state)));
          model->set_reason(entry.reason);
        }
        return grpc::Status::OK;
      },
      Scope::kAdmin);
  // May end on any thread, and after the server; the mailbox brings the answer
  // to the I/O thread or drops it.
  const auto finish_by_mail = [this](const auto& finish) {
    return
        [mail = mailbox, finish](const Status& status) { mail->post([status, finish] { finish(to_grpc(status)); }); };
  };
  serve_later<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryModelLoad),
      [this, finish_by_mail](auto& request, auto&, const auto& finish) {
        repository.load(request.model_name(), finish_by_mail(finish));
      },
      Scope::kAdmin);
  serve_later<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
      FOLIOT_ACCEPT(protocol, RepositoryModelUnload),
      [this, finish_by_mail](auto& request, auto&, const auto& finish) {
        repository.unload(request.model_name(), finish_by_mail(finish));
      },
      Scope::kAdmin);
}

void GrpcServer::State::serve_unsupported_methods() {
  using namespace inference;  // NOLINT: the messages of the protocol
  const auto nothing = [](auto&, auto&) { return grpc::Status::OK; };
  const auto unsupported = [](const char* what) {
    return [what](auto&, auto&) { return to_grpc(Status::unimplemented(fmt::format("{} not supported", what))); };
  };
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
      FOLIOT_ACCEPT(protocol, SystemSharedMemoryRegister), unsupported("shared memory is"));
  serve<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      FOLIOT_ACCEPT(protocol, CudaSharedMemoryRegister), unsupported("shared memory is"));
  serve<TraceSettingRequest, TraceSettingResponse>(FOLIOT_ACCEPT(protocol, TraceSetting),
                                                   unsupported("trace settings are"));
  serve<LogSettingsRequest, LogSettingsResponse>(FOLIOT_ACCEPT(protocol, LogSettings), unsupported("log settings are"));
}

void GrpcServer::State::serve_health() {
  using namespace grpc::health::v1;  // NOLINT: the messages of the protocol
  serve<HealthCheckRequest, HealthCheckResponse>(
      FOLIOT_ACCEPT(health, Check),
      [this](auto& request, auto& response) {
        bool serving = service.ready();
        if (!request.service().empty() && request.service() != inference::GRPCInferenceService::service_full_name()) {
          const auto model = service.find(request.service(), "");
          if (model.status().code() == StatusCode::kNotFound) return to_grpc(model.status());
          serving = model.ok();
        }
        response.set_status(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
        return grpc::Status::OK;
      },
      std::nullopt);
}

#undef FOLIOT_ACCEPT

Status GrpcServer::State::start() {
  const bool ipv6 = options.address.find(':') != std::string::npos;
  const std::string host = ipv6 ? fmt::format("[{}]", options.address) : options.address;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(fmt::format("{}:{}", host, options.port), tls ? tls : grpc::InsecureServerCredentials(),
                           &port);
  // By default gRPC lets two servers share a port.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(options.requests_in_flight_max));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(options.header_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(kHandshakeTimeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(options.idle_timeout));
  grpc::ResourceQuota memory("messages");
  memory.Resize(options.bodies_bytes_max);
  builder.SetResourceQuota(memory);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<uint64_t>(options.body_bytes_max, INT_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&protocol);
  builder.RegisterService(&health);
  queue = builder.AddCompletionQueue();
  server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    server.reset();
    queue->Shutdown();
    run();  // only drains it
    return Status::already_exists(
        fmt::format("port {} of {} is in use or cannot be listened on; choose another with --grpc-port", options.port,
                    options.address));
  }
  serve_server_methods();
  serve_model_methods();
  serve_repository_methods();
  serve_unsupported_methods();
  serve_health();
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    add<UnaryInferenceRpc<State>>();
    add<StreamInferenceRpc<State>>();
  }
  thread = std::thread([this] {
    pthread_setname_np(pthread_self(), "foliot-grpc");
    run();
  });
  return Status::ok_status();
}

void GrpcServer::State::run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Event*>(tag)->happen(ok);
  rpcs.clear();
}

void GrpcServer::State::stop() {
  if (!thread.joinable()) return;
  server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  // The queue is shut down by its own thread, so that none of its operations
  // begins after that.
  mailbox->post([this] {
    stopping = true;
    mailbox->close();
    queue->Shutdown();
  });
  thread.join();
}

GrpcServer::GrpcServer(GrpcServerOptions options, InferenceService& service, ModelRepository& repository,
                       const Gate& gate)
    : state_(std::make_unique<State>(std::move(options), service, repository, gate)) {}

GrpcServer::~GrpcServer() { stop(); }

Status GrpcServer::start() { return state_->start(); }

void GrpcServer::stop() { state_->stop(); }

void GrpcServer::use_tls(const TlsIdentity& identity) {
  FOLIOT_CHECK(state_->tls != nullptr);
  state_->tls->use(identity);
}

uint16_t GrpcServer::port() const { return static_cast<uint16_t>(state_->port); }

}  // namespace foliot
