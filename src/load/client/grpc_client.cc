#include "load/client/grpc_client.h"

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "foundation/base/mutex.h"
#include "foundation/platform/thread.h"
#include "inference.grpc.pb.h"
#include "load/client/refusal_reason.h"

namespace foliot {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(10);
constexpr auto kConnectTimeout = std::chrono::seconds(3);
constexpr const char* kInferMethod = "/inference.GRPCInferenceService/ModelInfer";

// A call that only asks something of the server: short, and waited for.
std::unique_ptr<grpc::ClientContext> control_context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  return context;
}

std::string describe_failure(const grpc::Status& status) {
  return fmt::format("gRPC status {}: {}", static_cast<int>(status.error_code()), status.error_message());
}

Status to_status(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return Status();
    case grpc::StatusCode::NOT_FOUND: return Status::not_found(status.error_message());
    case grpc::StatusCode::INVALID_ARGUMENT: return Status::invalid_argument(status.error_message());
    case grpc::StatusCode::UNAVAILABLE: return Status::unavailable(status.error_message());
    default: return Status::internal(describe_failure(status));
  }
}

Response to_response(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return {};
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      if (const Refusal refusal = find_refusal(status.error_message()); refusal != Refusal::kNone) {
        return {LoadOutcome::kRefused, std::string(to_string(refusal))};
      }
      break;
    default: return {LoadOutcome::kFailed, describe_failure(status)};
  }
  // What is left comes from this side of the wire.
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED: return {LoadOutcome::kFailed, kNoAnswerInTime};
    case grpc::StatusCode::CANCELLED: return {LoadOutcome::kFailed, kNoAnswerAtEnd};
    default: return {LoadOutcome::kFailed, describe_failure(status)};
  }
}

grpc::ByteBuffer encode(const InferenceBody& body) {
  inference::ModelInferRequest request;
  request.set_model_name(body.model);
  if (body.deadline) {
    (*request.mutable_parameters())["timeout"].set_int64_param(body.deadline->nanoseconds() / 1000);
  }
  if (body.needs.accuracy) (*request.mutable_parameters())["accuracy"].set_double_param(*body.needs.accuracy);
  if (body.needs.cost) (*request.mutable_parameters())["cost"].set_double_param(*body.needs.cost);
  for (const InputTensor& input : body.inputs) {
    auto* tensor = request.add_inputs();
    tensor->set_name(input.name);
    tensor->set_datatype(input.datatype);
    tensor->mutable_shape()->Add(input.shape.begin(), input.shape.end());
    request.add_raw_input_contents(input.bytes);
  }
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

class GrpcClient : public InferenceClient {
 public:
  GrpcClient(const ServerAddress& address, const ClientOptions& options, ResponseSink& sink)
      : address_(address), options_(options), sink_(sink) {}
  ~GrpcClient() override { stop(); }

  Status connect() override;
  Result<std::vector<ListedModel>> list_models() override;
  Result<ModelDescription> describe(const std::string& model) override;
  PreparedRequest prepare(const InferenceBody& body) override;
  void send(PreparedRequest request, uint64_t tag) override;
  void stop() override;

 private:
  struct Prepared {
    grpc::ByteBuffer message;
    std::optional<Duration> answer_timeout;
  };
  struct Call {
    uint64_t tag;
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };

  void receive(grpc::CompletionQueue& queue);
  // False once the client is being stopped.
  bool add(Call* call);

  const ServerAddress address_;
  const ClientOptions options_;
  ResponseSink& sink_;
  std::shared_ptr<grpc::Channel> control_channel_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_;
  std::vector<Thread> threads_;
  std::vector<Prepared> prepared_;
  std::atomic<uint64_t> turn_{0};

  Mutex mutex_;
  Condition all_done_;
  std::unordered_set<Call*> calls_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

Status GrpcClient::connect() {
  for (uint32_t i = 0; i < options_.connections; ++i) {
    grpc::ChannelArguments arguments;
    // Otherwise channels to one address share one connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(address_.to_string(), grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectTimeout)) {
      return Status::unavailable(
          fmt::format("no gRPC server answers at {}; start one with 'foliot serve'", address_.to_string()));
    }
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    if (i == 0) control_channel_ = std::move(channel);
  }
  for (uint32_t i = 0; i < std::min(options_.threads, options_.connections); ++i) {
    queues_.push_back(std::make_unique<grpc::CompletionQueue>());
    grpc::CompletionQueue& queue = *queues_.back();
    FOLIOT_ASSIGN_OR_RETURN(Thread thread,
                            Thread::start({.name = fmt::format("client-{}", i)}, [this, &queue] { receive(queue); }));
    threads_.push_back(std::move(thread));
  }
  return Status();
}

Result<std::vector<ListedModel>> GrpcClient::list_models() {
  const auto stub = inference::GRPCInferenceService::NewStub(control_channel_);
  const inference::RepositoryIndexRequest request;
  inference::RepositoryIndexResponse response;
  FOLIOT_RETURN_IF_ERROR(
      to_status(stub->RepositoryIndex(control_context().get(), request, &response)).with_context("list of models"));
  std::vector<ListedModel> models;
  for (const auto& entry : response.models()) {
    models.push_back({entry.name(), entry.version(), entry.state(), entry.reason()});
  }
  return models;
}

Result<ModelDescription> GrpcClient::describe(const std::string& model) {
  const auto stub = inference::GRPCInferenceService::NewStub(control_channel_);
  inference::ModelMetadataRequest request;
  request.set_name(model);
  inference::ModelMetadataResponse response;
  FOLIOT_RETURN_IF_ERROR(to_status(stub->ModelMetadata(control_context().get(), request, &response)));
  ModelDescription description{.name = model, .inputs = {}};
  for (const auto& input : response.inputs()) {
    description.inputs.push_back({input.name(), input.datatype(), {input.shape().begin(), input.shape().end()}});
  }
  return description;
}

PreparedRequest GrpcClient::prepare(const InferenceBody& body) {
  prepared_.push_back({encode(body), body.answer_timeout});
  return PreparedRequest(static_cast<uint32_t>(prepared_.size() - 1));
}

bool GrpcClient::add(Call* call) {
  const MutexLock lock(mutex_);
  if (!stopping_) calls_.insert(call);
  return !stopping_;
}

void GrpcClient::send(PreparedRequest request, uint64_t tag) {
  auto call = std::make_unique<Call>();
  call->tag = tag;
  const Prepared& prepared = prepared_.at(request.value());
  if (prepared.answer_timeout) {
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::nanoseconds(prepared.answer_timeout->nanoseconds()));
  }
  if (!add(call.get())) {
    sink_.on_response(tag, {LoadOutcome::kFailed, kNoAnswerAtEnd});
    return;
  }
  const uint64_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  Call* const started = call.release();  // receive() owns it now
  // The buffer is shared with the prepared one, not copied.
  started->reader = stubs_[turn % stubs_.size()]->PrepareUnaryCall(&started->context, kInferMethod, prepared.message,
                                                                   queues_[turn % queues_.size()].get());
  started->reader->StartCall();
  started->reader->Finish(&started->response, &started->status, started);
}

void GrpcClient::receive(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    sink_.on_response(call->tag, to_response(call->status));
    const MutexLock lock(mutex_);
    calls_.erase(call.get());
    if (calls_.empty()) all_done_.notify_all();
  }
}

void GrpcClient::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (Call* call : calls_) call->context.TryCancel();
    all_done_.wait(mutex_, [this]() REQUIRES(mutex_) { return calls_.empty(); });
  }
  for (const auto& queue : queues_) queue->Shutdown();
  threads_.clear();  // joins
  queues_.clear();
}

}  // namespace

std::unique_ptr<InferenceClient> make_grpc_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink) {
  return std::make_unique<GrpcClient>(address, options, sink);
}

}  // namespace foliot
