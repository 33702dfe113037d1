#include "edge/grpc/grpc_calls.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "foundation/base/held_wakes.h"

namespace foliot {
namespace {

std::string_view metadata_of(const grpc::ServerContext& context, const char* name) {
  const auto shown = context.client_metadata().find(name);
  if (shown == context.client_metadata().end()) return {};
  return {shown->second.data(), shown->second.size()};
}

}  // namespace

std::string_view traceparent_of(const grpc::ServerContext& context) { return metadata_of(context, "traceparent"); }

grpc::Status to_grpc(const CallError& error) { return {static_cast<grpc::StatusCode>(error.grpc_code), error.message}; }
grpc::Status to_grpc(const Status& status) { return status.ok() ? grpc::Status::OK : to_grpc(call_error(status)); }

void add_refusal(const CallError& error, grpc::ServerContext& context) {
  if (!error.reason.empty()) context.AddTrailingMetadata("foliot-refusal", std::string(error.reason));
  if (error.retry_after) {
    context.AddTrailingMetadata("retry-after", std::to_string(retry_after_seconds(*error.retry_after)));
  } else {
    // Clients that try again by themselves (a retryPolicy) must not: it would only add to the load.
    context.AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
  }
}

TimePoint deadline_of(const grpc::ServerContext& context, TimePoint now) {
  using std::chrono::system_clock;
  const system_clock::time_point deadline = context.deadline();
  if (deadline == system_clock::time_point::max()) return TimePoint::infinite_future();
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - system_clock::now());
  return now + Duration::nanoseconds(left.count());
}

GrpcCall::~GrpcCall() {
  calls_.answers().release(answer_source_, answer_bytes_held_);
  calls_.bodies().resize(request_source_, request_bytes_held_, 0);
}

std::string GrpcCall::source() const {
  if (const std::shared_ptr<Tenant> key = tenant()) return key->statistics().name;
  const std::string peer = context_.peer();
  return peer.substr(0, peer.rfind(':'));
}

bool GrpcCall::hold_answer(uint64_t bytes) {
  calls_.answers().release(answer_source_, std::exchange(answer_bytes_held_, 0));
  if (bytes <= kSmallAnswerBytes) return true;
  if (answer_source_.empty()) answer_source_ = source();
  if (!calls_.answers().hold(answer_source_, bytes)) return false;
  answer_bytes_held_ = bytes;
  return true;
}

std::optional<CallError> GrpcCall::expect_answer(uint64_t bytes) {
  // One of more is refused, if at all, for what is wrong with it.
  if (hold_answer(std::min(bytes, calls_.answers().source_bytes_max()))) return std::nullopt;
  return no_room();
}

std::optional<CallError> GrpcCall::hold_request(uint64_t bytes) {
  if (bytes <= kUnsharedBodyBytes) return std::nullopt;
  request_source_ = source();
  if (calls_.bodies().resize(request_source_, 0, bytes)) {
    request_bytes_held_ = bytes;
    return std::nullopt;
  }
  CallError error = call_error(Status::unavailable(calls_.bodies().refusal(request_source_, 0)));
  error.retry_after = Duration::seconds(1);
  return error;
}

CallError GrpcCall::no_room() const {
  CallError error = call_error(Status::unavailable(calls_.answers().refusal(answer_source_)));
  error.retry_after = Duration::seconds(1);
  return error;
}

grpc::Status GrpcCall::refused(const CallError& error) {
  add_refusal(error, context_);
  return to_grpc(error);
}

uint16_t GrpcCall::peer_port() const {
  const std::string peer = context_.peer();  // ipv4:192.0.2.1:80
  uint16_t port = 0;
  std::from_chars(peer.data() + peer.rfind(':') + 1, peer.data() + peer.size(), port);
  return port;
}

std::optional<grpc::Status> GrpcCall::turned_away(std::optional<Scope> scope, std::string_view what) const {
  const Gate& gate = calls_.parts().gate;
  if (gate.open() || !scope) return std::nullopt;
  const auto error = gate.turn_away(authorization(), *scope, context_.peer(), what);
  if (!error) return std::nullopt;
  return to_grpc(*error);
}

std::shared_ptr<Tenant> GrpcCall::tenant() const { return calls_.parts().gate.tenant_of(authorization()); }

std::string_view GrpcCall::authorization() const { return metadata_of(context_, "authorization"); }

GrpcCalls::GrpcCalls(const ProtocolParts& parts, std::function<TimePoint()> now, uint32_t requests_in_flight_max,
                     uint64_t message_bytes_max, BodyBudget& bodies, AnswerBudget& answers)
    : parts_(parts),
      now_(std::move(now)),
      message_bytes_max_(message_bytes_max),
      bodies_(bodies),
      answers_(answers),
      mailbox_(std::make_shared<Mailbox>(requests_in_flight_max, [this] {
        // Long past, or gRPC would round it up to the next millisecond.
        mail_alarm_.Set(queue_.get(), gpr_time_0(GPR_CLOCK_MONOTONIC), mail_tag_.pointer());
      })) {}

void GrpcCalls::run() {
  const gpr_timespec long_past = gpr_time_0(GPR_CLOCK_MONOTONIC);  // AsyncNext() does not wait
  HeldWakes wakes;
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    int handled = 0;
    do {
      static_cast<GrpcEvent*>(tag)->happen(ok);
    } while (++handled < HeldWakes::kEventsMax &&
             queue_->AsyncNext(&tag, &ok, long_past) == grpc::CompletionQueue::GOT_EVENT);
    wakes.wake_held();
  }
  all_.clear();
}

void GrpcCalls::shut_down() {
  // By the queue's own thread, so that none of its operations begins after that.
  mailbox_->post([this] {
    stopping_ = true;
    mailbox_->close();
    queue_->Shutdown();
  });
}

std::unordered_map<uint16_t, Turn> GrpcCalls::calling_ports() {
  const auto answer = std::make_shared<std::promise<std::unordered_map<uint16_t, Turn>>>();
  mailbox_->post([this, answer] {
    std::unordered_map<uint16_t, Turn> ports;
    for (const auto& call : all_) {
      Turn& turn = ports.try_emplace(call->peer_port(), Turn::kTheirs).first->second;
      turn = std::max(turn, call->turn());
    }
    answer->set_value(std::move(ports));
  });
  return answer->get_future().get();
}

}  // namespace foliot
