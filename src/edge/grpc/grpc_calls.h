// GrpcCalls: the calls of one gRPC server, those under way and the readiness to accept
// more, and the loop that serves them on one completion queue.
//
// Threading: the I/O thread calls run(), which calls everything else, but for what is
// called before it and what says otherwise.
#ifndef FOLIOT_EDGE_GRPC_GRPC_CALLS_H_
#define FOLIOT_EDGE_GRPC_GRPC_CALLS_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "answer/inference/call_error.h"
#include "answer/inference/mailbox.h"
#include "edge/grpc/turn.h"
#include "edge/requests/answer_budget.h"
#include "edge/requests/body_budget.h"
#include "edge/requests/gate.h"
#include "edge/requests/protocol_parts.h"
#include "foundation/base/status.h"

namespace foliot {

class GrpcCalls;

grpc::Status to_grpc(const CallError& error);
grpc::Status to_grpc(const Status& status);
// The trailing metadata of a refusal: foliot-refusal, and retry-after or, where no retry can help,
// grpc-retry-pushback-ms.
void add_refusal(const CallError& error, grpc::ServerContext& context);
// When the client stops waiting, on the clock of `now`.
TimePoint deadline_of(const grpc::ServerContext& context, TimePoint now);

// The client's metadata; empty: it has none. The view is the context's.
std::string_view traceparent_of(const grpc::ServerContext& context);

// What the completion queue hands back.
class GrpcEvent {
 public:
  virtual void happen(bool ok) = 0;

 protected:
  ~GrpcEvent() = default;
};

// An event that calls a method of what it is part of.
template <typename Owner>
class GrpcTag final : public GrpcEvent {
 public:
  GrpcTag(Owner& owner, void (Owner::*method)(bool)) : owner_(owner), method_(method) {}
  void happen(bool ok) override { (owner_.*method_)(ok); }
  // As the completion queue takes it.
  void* pointer() { return static_cast<GrpcEvent*>(this); }

 private:
  Owner& owner_;
  void (Owner::*method_)(bool);
};

// One call of a client's, or the readiness to accept one.
class GrpcCall {
 public:
  virtual ~GrpcCall();
  // The client's; 0: there is none yet.
  uint16_t peer_port() const;
  virtual Turn turn() const { return Turn::kOurs; }

 protected:
  explicit GrpcCall(GrpcCalls& calls) : calls_(calls) {}
  // Why the client may not call `what`; nothing if it may. No scope: no key is needed.
  std::optional<grpc::Status> turned_away(std::optional<Scope> scope, std::string_view what) const;
  std::shared_ptr<Tenant> tenant() const;
  // Of the call, for the budget of answers: its key's name, or its address.
  std::string source() const;
  // With what a call of one answer ends: `status`, or that the answer has no room beside those that its source has not
  // read; `response` is empty then. The room is held until the call is over.
  template <typename Response>
  grpc::Status within_budget(const grpc::Status& status, Response& response) {
    if (!status.ok() || hold_answer(response.ByteSizeLong())) return status;
    response.Clear();
    return refused(no_room());
  }
  // Its answer will have so many bytes: why there is no room for it beside those that its source has not read, or that
  // it expects; nothing if there is. The room is held as that of an answer.
  std::optional<CallError> expect_answer(uint64_t bytes);
  // A message of so many bytes has come: why its source may have no more; nothing if it may. The room is held until the
  // call is over.
  std::optional<CallError> hold_request(uint64_t bytes);
  std::string_view authorization() const;

  GrpcCalls& calls_;
  grpc::ServerContext context_;

 private:
  friend class GrpcCalls;

  // Instead of what was held.
  bool hold_answer(uint64_t bytes);
  grpc::Status refused(const CallError& error);
  CallError no_room() const;

  std::string answer_source_;  // of what is held
  uint64_t answer_bytes_held_ = 0;
  std::string request_source_;  // likewise
  uint64_t request_bytes_held_ = 0;
  std::list<std::unique_ptr<GrpcCall>>::iterator place_;
};

class GrpcCalls {
 public:
  // `now` is the clock of what answers. `bodies` and `answers`, which outlive this, have the messages under way and the
  // answers that were not written yet.
  GrpcCalls(const ProtocolParts& parts, std::function<TimePoint()> now, uint32_t requests_in_flight_max,
            uint64_t message_bytes_max, BodyBudget& bodies, AnswerBudget& answers);

  // Before all else.
  void use(std::unique_ptr<grpc::ServerCompletionQueue> queue) { queue_ = std::move(queue); }
  // Until shut_down().
  void run();
  // Any thread. No operation begins from here on.
  void shut_down();

  // Makes a T(*this, arguments...), which owns itself until remove().
  template <typename T, typename... Arguments>
  void add(Arguments&&... arguments) {
    all_.push_front(std::make_unique<T>(*this, std::forward<Arguments>(arguments)...));
    all_.front()->place_ = all_.begin();
  }
  void remove(GrpcCall& call) { all_.erase(call.place_); }
  // No operation may begin any more.
  bool stopping() const { return stopping_; }

  const ProtocolParts& parts() const { return parts_; }
  TimePoint now() const { return now_(); }
  // Of a request, inflated.
  uint64_t message_bytes_max() const { return message_bytes_max_; }
  BodyBudget& bodies() { return bodies_; }
  AnswerBudget& answers() { return answers_; }
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  const std::shared_ptr<Mailbox>& mailbox() { return mailbox_; }
  // Of clients that have calls under way: which side has to act, the server if in one
  // of them. Any thread but the I/O thread, which answers.
  std::unordered_map<uint16_t, Turn> calling_ports();

 private:
  void on_mail(bool /*ok*/) { mailbox_->deliver(); }

  const ProtocolParts parts_;
  const std::function<TimePoint()> now_;
  const uint64_t message_bytes_max_;
  BodyBudget& bodies_;
  AnswerBudget& answers_;
  bool stopping_ = false;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::list<std::unique_ptr<GrpcCall>> all_;
  GrpcTag<GrpcCalls> mail_tag_{*this, &GrpcCalls::on_mail};
  grpc::Alarm mail_alarm_;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_CALLS_H_
