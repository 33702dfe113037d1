#include "edge/grpc/grpc_feedback.h"

#include "edge/requests/feedback.h"

namespace foliot {
namespace {

// Calls that can be accepted at the same instant.
constexpr int kFeedbackAcceptedAtOnce = 16;

class GrpcFeedbackCall final : public GrpcCall {
 public:
  GrpcFeedbackCall(GrpcCalls& calls, ApplicationsProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    protocol_.accept("Feedback", &context_, &sent_, &writer_, calls.queue(), accepted_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<GrpcFeedbackCall>(protocol_);
    const auto refusal = turned_away(Scope::kFeedback, "Feedback");
    writer_.Finish({}, refusal ? *refusal : to_grpc(learn()), finished_.pointer());
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  Status learn() const {
    FOLIOT_RETURN_IF_ERROR(sent_.status);
    const applications::FeedbackRequest& request = sent_.message;
    Feedback feedback{
        .feedback_id = request.feedback_id(), .label = {request.label().begin(), request.label().end()}, .losses = {}};
    for (const auto& loss : request.losses()) feedback.losses.emplace_back(loss.model(), loss.loss());
    FOLIOT_RETURN_IF_ERROR(feedback.check());
    Observation observation = feedback.observation();
    observation.name = request.application();
    observation.tenant = tenant();
    return calls_.parts().inference.observe(observation);
  }

  ApplicationsProtocol& protocol_;
  GrpcMessage<applications::FeedbackRequest> sent_{calls_.message_bytes_max()};
  grpc::ServerAsyncResponseWriter<applications::FeedbackResponse> writer_{&context_};
  GrpcTag<GrpcFeedbackCall> accepted_{*this, &GrpcFeedbackCall::on_accepted};
  GrpcTag<GrpcFeedbackCall> finished_{*this, &GrpcFeedbackCall::on_finished};
};

}  // namespace

void serve_feedback(ApplicationsProtocol& protocol, GrpcCalls& calls) {
  for (int i = 0; i < kFeedbackAcceptedAtOnce; ++i) calls.add<GrpcFeedbackCall>(protocol);
}

}  // namespace foliot
