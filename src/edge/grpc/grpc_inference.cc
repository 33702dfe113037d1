#include "edge/grpc/grpc_inference.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "answer/inference/call_error.h"
#include "edge/grpc/grpc_request.h"
#include "edge/requests/expected_answer.h"

namespace foliot {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;

// Inferences and streams that can be accepted at the same instant.
constexpr int kAcceptedAtOnce = 16;
// Requests of one stream that are unanswered, or whose answers are unwritten.
constexpr size_t kStreamRequestsMax = 1024;
// One stream's answers may fill this part of what their source may have.
constexpr uint64_t kStreamsOfSource = 4;

uint64_t expected_answer_bytes(const ServedNames& names, const ModelInferRequest& message) {
  const bool has_shape = message.inputs_size() > 0 && message.inputs(0).shape_size() > 0;
  const auto asked_for = [&message](std::string_view output) {
    return message.outputs().empty() ||
           std::ranges::any_of(message.outputs(), [&](const auto& asked) { return asked.name() == output; });
  };
  return foliot::expected_answer_bytes(names, message.model_name(), message.model_version(),
                                       has_shape ? message.inputs(0).shape(0) : 1, asked_for);
}

// One message and its inference, from either kind of call.
class GrpcInference {
 public:
  explicit GrpcInference(const GrpcCalls& calls) : sent_(std::make_shared<Sent>(calls.message_bytes_max())) {}
  // What it is read into.
  GrpcMessage<ModelInferRequest>& read() { return sent_->read; }
  const ModelInferRequest& message() const { return sent_->read.message; }

  std::optional<CallError> start(GrpcCalls& calls, std::shared_ptr<Tenant> tenant, const grpc::ServerContext& context,
                                 AnswerSink& sink) {
    if (!sent_->read.status.ok()) return call_error(sent_->read.status);
    ModelInferRequest& message = sent_->read.message;
    Result<GrpcRequest> decoded = decode_grpc_request(message);
    if (!decoded.ok()) return call_error(decoded.status());
    request_ = std::move(decoded).value();
    sent_->converted = std::move(request_.converted);
    Query& query = request_.query;
    query.owner = sent_;
    query.name = message.model_name();
    const Result<std::string_view> asked = request_.parameters.version_or_label(message.model_version());
    if (!asked.ok()) return call_error(asked.status());
    query.version = *asked;
    query.split_key = request_.parameters.split_key;
    query.arrival = calls.now();
    const TimePoint by_timeout = request_.parameters.deadline(query.arrival);
    const TimePoint by_call = deadline_of(context, query.arrival);
    query.deadline = std::min(by_timeout, by_call);
    query.deadline_origin = by_timeout <= by_call ? DeadlineOrigin::kTimeout : DeadlineOrigin::kGrpcCall;
    query.request_class = request_.parameters.request_class;
    query.context = request_.parameters.context;
    query.traceparent = traceparent_of(context);
    query.accuracy = request_.parameters.accuracy;
    query.cost = request_.parameters.cost;
    query.body_bytes = message.ByteSizeLong();
    calls.parts().unknown_names.note(request_.parameters.unknown);
    Inference::Started started = calls.parts().inference.start(query, {std::move(tenant), *calls.mailbox(), sink});
    if (auto* error = std::get_if<CallError>(&started)) return std::move(*error);
    call_ = std::get<CallId>(started);
    return std::nullopt;
  }

  // The answer stays until this is destroyed. The response is empty if it was refused.
  void take(std::unique_ptr<Answer> answer, ModelInferResponse& response) {
    answer_ = std::move(answer);
    if (answer_->served()) encode_grpc_response(*answer_, request_, response);
  }
  // Before the response leaves: why it must not. What never began is settled.
  std::optional<CallError> settle() {
    if (answer_ == nullptr) return std::nullopt;
    answer_->settle();
    if (answer_->served()) return std::nullopt;
    return answer_->error();
  }

  // REQUIRES: it has its answer.
  RequestId number() const { return answer_->number(); }

  bool unordered() const { return request_.unordered; }

  void cancel(GrpcCalls& calls) { calls.parts().inference.cancel(call_); }

 private:
  // Devices may read it longer than its call lasts.
  struct Sent {
    explicit Sent(uint64_t bytes_max) : read(bytes_max) {}
    GrpcMessage<ModelInferRequest> read;
    std::vector<std::string> converted;  // GrpcRequest's
  };

  const std::shared_ptr<Sent> sent_;
  GrpcRequest request_;
  CallId call_;
  std::unique_ptr<Answer> answer_;
};

class UnaryInference final : public GrpcCall, public AnswerSink {
 public:
  UnaryInference(GrpcCalls& calls, InferenceProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    context_.AsyncNotifyWhenDone(done_tag_.pointer());
    protocol.accept("ModelInfer", &context_, &inference_.read(), &writer_, calls.queue(), accepted_tag_.pointer());
  }

  void on_answer(CallId /*call*/, std::unique_ptr<Answer> answer) override {
    inference_.take(std::move(answer), response_);
    const auto error = inference_.settle();
    const RequestId number = inference_.number();
    if (number != RequestId()) context_.AddTrailingMetadata("foliot-request", std::to_string(number.value()));
    error ? finish_with(*error) : finish(grpc::Status::OK);
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<UnaryInference>(protocol_);
    if (const auto refusal = turned_away(Scope::kInfer, "ModelInfer")) return finish(*refusal);
    if (const auto error = hold_request(inference_.message().ByteSizeLong())) return finish_with(*error);
    const uint64_t answer_bytes = expected_answer_bytes(calls_.parts().names, inference_.message());
    if (const auto error = expect_answer(answer_bytes)) return finish_with(*error);
    if (const auto error = inference_.start(calls_, tenant(), context_, *this)) finish_with(*error);
  }
  void finish_with(const CallError& error) {
    add_refusal(error, context_);
    finish(to_grpc(error));
  }
  void finish(const grpc::Status& status) {
    if (calls_.stopping()) return;
    const grpc::Status ending = within_budget(status, response_);
    writer_.Finish(response_, ending, finished_tag_.pointer());
  }
  void on_finished(bool /*ok*/) {
    finished_ = true;
    remove_if_over();
  }
  void on_done(bool /*ok*/) {
    done_ = true;
    if (context_.IsCancelled() && !finished_) inference_.cancel(calls_);
    remove_if_over();
  }
  void remove_if_over() {
    if (finished_ && done_) calls_.remove(*this);
  }

  InferenceProtocol& protocol_;
  GrpcInference inference_{calls_};
  ModelInferResponse response_;
  grpc::ServerAsyncResponseWriter<ModelInferResponse> writer_{&context_};
  bool finished_ = false;
  bool done_ = false;
  GrpcTag<UnaryInference> accepted_tag_{*this, &UnaryInference::on_accepted};
  GrpcTag<UnaryInference> finished_tag_{*this, &UnaryInference::on_finished};
  GrpcTag<UnaryInference> done_tag_{*this, &UnaryInference::on_done};
};

// Answers in the order of the requests, but those that need not wait. Reads no further request while the answers that
// the client has not taken, and those that are expected, are more than a stream may have, or the requests that it has
// read more than its source may have; one is always answered.
class StreamInference final : public GrpcCall {
 public:
  StreamInference(GrpcCalls& calls, InferenceProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    context_.AsyncNotifyWhenDone(done_tag_.pointer());
    protocol.accept_stream("ModelStreamInfer", &context_, &stream_, calls.queue(), accepted_tag_.pointer());
  }
  ~StreamInference() override {
    calls_.answers().release(source_, unwritten_bytes_);
    calls_.bodies().resize(source_, requests_bytes_, 0);
  }
  Turn turn() const override {
    return in_flight_.empty() && to_write_.empty() && !finishing_ ? Turn::kTheirs : Turn::kOurs;
  }

 private:
  // One request of the stream: in flight, then waiting to be written.
  struct Item final : public AnswerSink {
    explicit Item(StreamInference& owner) : stream(owner), inference(owner.calls_) {}
    void on_answer(CallId /*call*/, std::unique_ptr<Answer> answer) override {
      stream.on_answer(*this, std::move(answer));
    }

    StreamInference& stream;
    GrpcInference inference;
    ModelStreamInferResponse response;
    bool answered = false;
    uint64_t bytes = 0;          // of the response, once it is answered
    uint64_t request_bytes = 0;  // that are held
    std::list<Item>::iterator place;
  };

  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<StreamInference>(protocol_);
    if (const auto refusal = turned_away(Scope::kInfer, "ModelStreamInfer")) {
      input_ended_ = finishing_ = true;
      stream_.Finish(*refusal, finished_tag_.pointer());
      return;
    }
    tenant_ = tenant();
    source_ = source();
    read();
  }

  void read() {
    if (reading_ || input_ended_ || is_full() || calls_.stopping()) return;
    reading_ = true;
    next_.emplace_back(*this);
    stream_.Read(&next_.front().inference.read(), read_tag_.pointer());
  }
  bool is_full() const {
    const size_t requests = in_flight_.size() + to_write_.size();
    if (requests == 0) return false;
    if (requests >= kStreamRequestsMax) return true;
    const uint64_t expected = unwritten_bytes_ + in_flight_.size() * answer_bytes_;
    const AnswerBudget& answers = calls_.answers();
    return expected > answers.source_bytes_max() / kStreamsOfSource ||
           (unwritten_bytes_ > 0 && answers.is_exceeded_by(source_)) ||
           (requests_bytes_ > 0 && calls_.bodies().is_exceeded_by(source_));
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
    in_flight_.splice(in_flight_.end(), next_);
    Item& item = in_flight_.back();
    item.place = std::prev(in_flight_.end());
    hold_request(item, item.inference.message().ByteSizeLong());
    if (answer_bytes_ == 0) answer_bytes_ = expected_answer_bytes(calls_.parts().names, item.inference.message());
    if (const auto error = item.inference.start(calls_, tenant_, context_, item)) {
      put_error(item, *error);
      put_to_write(item);
    }
  }
  void hold_request(Item& item, uint64_t bytes) {
    if (bytes <= kUnsharedBodyBytes) return;
    item.request_bytes = bytes;
    requests_bytes_ += bytes;
    calls_.bodies().add(source_, bytes);
  }
  void forget_request(Item& item) {
    requests_bytes_ -= item.request_bytes;
    if (item.request_bytes > 0) calls_.bodies().resize(source_, item.request_bytes, 0);
  }
  // With those that wait for it.
  void put_to_write(Item& item) {
    item.answered = true;
    item.bytes = item.response.ByteSizeLong();
    answer_bytes_ = std::max(answer_bytes_, item.bytes);
    unwritten_bytes_ += item.bytes;
    calls_.answers().add(source_, item.bytes);
    if (item.inference.unordered()) return to_write_.splice(to_write_.end(), in_flight_, item.place);
    for (auto next = in_flight_.begin(); next != in_flight_.end();) {
      const auto place = next++;
      if (place->answered) {
        to_write_.splice(to_write_.end(), in_flight_, place);
      } else if (!place->inference.unordered()) {
        return;
      }
    }
  }
  void on_answer(Item& item, std::unique_ptr<Answer> answer) {
    item.inference.take(std::move(answer), *item.response.mutable_infer_response());
    put_to_write(item);
    advance();
  }
  void put_error(Item& item, const CallError& error) {
    item.response.Clear();
    item.response.set_error_message(error.message);
    item.response.mutable_infer_response()->set_id(item.inference.message().id());
    item.response.mutable_infer_response()->set_model_name(item.inference.message().model_name());
    encode_number(error.request, *item.response.mutable_infer_response());
  }

  void write() {
    if (writing_ || to_write_.empty() || calls_.stopping()) return;
    writing_ = true;
    Item& item = to_write_.front();
    if (const auto error = item.inference.settle()) put_error(item, *error);
    grpc::WriteOptions write_options;
    // More follow at once: let the transport send them together.
    if (to_write_.size() > 1) write_options.set_buffer_hint();
    stream_.Write(item.response, write_options, written_tag_.pointer());
  }
  void on_written(bool ok) {
    writing_ = false;
    forget_answer();
    while (!ok && !to_write_.empty()) {
      to_write_.front().inference.settle();
      forget_answer();
    }
    advance();
  }

  void forget_answer() {
    const uint64_t bytes = to_write_.front().bytes;
    unwritten_bytes_ -= bytes;
    calls_.answers().release(source_, bytes);
    forget_request(to_write_.front());
    to_write_.pop_front();
  }

  // Begins whatever can begin.
  void advance() {
    write();
    read();
    const bool answered = input_ended_ && in_flight_.empty() && to_write_.empty();
    if (!answered || finishing_ || calls_.stopping()) return;
    finishing_ = true;
    stream_.Finish(grpc::Status::OK, finished_tag_.pointer());
  }
  void on_finished(bool /*ok*/) {
    finished_ = true;
    remove_if_over();
  }
  void on_done(bool /*ok*/) {
    done_ = true;
    if (context_.IsCancelled())
      for (Item& item : in_flight_) item.inference.cancel(calls_);
    remove_if_over();
  }
  void remove_if_over() {
    if (finished_ && done_) calls_.remove(*this);
  }

  InferenceProtocol& protocol_;
  grpc::ServerAsyncReaderWriter<ModelStreamInferResponse, GrpcMessage<ModelInferRequest>> stream_{&context_};
  std::shared_ptr<Tenant> tenant_;
  std::string source_;
  uint64_t requests_bytes_ = 0;   // of those in flight and to be written
  uint64_t unwritten_bytes_ = 0;  // of answers
  uint64_t answer_bytes_ = 0;     // of the longest so far, or as is expected of the first
  std::list<Item> next_;          // the one that is being read
  std::list<Item> in_flight_;     // in their order, and those whose answers wait for earlier ones
  std::list<Item> to_write_;      // the first may be being written
  bool reading_ = false;
  bool writing_ = false;
  bool input_ended_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  bool done_ = false;
  GrpcTag<StreamInference> accepted_tag_{*this, &StreamInference::on_accepted};
  GrpcTag<StreamInference> read_tag_{*this, &StreamInference::on_read};
  GrpcTag<StreamInference> written_tag_{*this, &StreamInference::on_written};
  GrpcTag<StreamInference> finished_tag_{*this, &StreamInference::on_finished};
  GrpcTag<StreamInference> done_tag_{*this, &StreamInference::on_done};
};

}  // namespace

void serve_inferences(InferenceProtocol& protocol, GrpcCalls& calls) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    calls.add<UnaryInference>(protocol);
    calls.add<StreamInference>(protocol);
  }
}

}  // namespace foliot
