#include "edge/grpc/grpc_personal.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "answer/inference/personal_service.h"
#include "edge/grpc/grpc_request.h"
#include "edge/requests/personal_request.h"
#include "edge/requests/request_parameters.h"

namespace foliot {
namespace {

// Calls of one method that can be accepted at the same instant.
constexpr int kPersonalAcceptedAtOnce = 16;

Status no_name(std::string_view member) {
  return Status::invalid_argument("'" + std::string(member) + "' is missing: a number, or a text of 1 to " +
                                  std::to_string(kPersonalTextBytesMax) + " bytes");
}

Status number_of_name(std::string_view member, const std::string& text, uint64_t& number) {
  if (text.empty() || text.size() > kPersonalTextBytesMax) return no_name(member);
  number = number_of_text(text);
  return Status();
}

Status read_user(const personal::User& user, uint64_t& number) {
  if (user.has_text()) return number_of_name("user", user.text(), number);
  if (!user.has_number()) return no_name("user");
  number = user.number();
  return Status();
}

Status read_users(const auto& users, std::vector<uint64_t>& numbers) {
  if (users.empty()) return Status::invalid_argument("'users' is empty");
  for (const personal::User& user : users) FOLIOT_RETURN_IF_ERROR(read_user(user, numbers.emplace_back()));
  return Status();
}

// nullptr: there are none.
std::shared_ptr<const ItemTensors> read_tensors(const auto& tensors) {
  if (tensors.empty()) return nullptr;
  auto inputs = std::make_shared<ItemTensors>();
  for (const personal::Tensor& tensor : tensors) {
    inputs->push_back({.name = tensor.name(),
                       .datatype = tensor.datatype(),
                       .shape = {tensor.shape().begin(), tensor.shape().end()},
                       .bytes = tensor.contents()});
  }
  return inputs;
}

// What a method reads and writes.
struct PredictMethod {
  using Request = personal::PredictRequest;
  using Response = personal::PredictResponse;
  static constexpr Scope kScope = Scope::kInfer;
  static constexpr const char* kName = "Predict";

  static Status read(const Request& request, PersonalRequest& call) {
    std::vector<UserItem> pairs;
    if (request.pairs().empty()) return Status::invalid_argument("'pairs' is empty");
    for (const auto& pair : request.pairs()) {
      FOLIOT_RETURN_IF_ERROR(read_user(pair.user(), pairs.emplace_back().user));
      pairs.back().item = pair.item();
    }
    call.query = std::move(pairs);
    call.inputs = read_tensors(request.inputs());
    return Status();
  }
  static void write(const PersonalAnswer& answer, Response& response) {
    response.mutable_predictions()->Add(answer.predictions.begin(), answer.predictions.end());
  }
};

struct TopKMethod {
  using Request = personal::TopKRequest;
  using Response = personal::TopKResponse;
  static constexpr Scope kScope = Scope::kInfer;
  static constexpr const char* kName = "TopK";

  static Status read(const Request& request, PersonalRequest& call) {
    TopKQuery query{.users = {}, .items = {request.items().begin(), request.items().end()}, .k = request.k()};
    FOLIOT_RETURN_IF_ERROR(read_users(request.users(), query.users));
    call.query = std::move(query);
    call.inputs = read_tensors(request.inputs());
    return Status();
  }
  static void write(const PersonalAnswer& answer, Response& response) {
    for (const PersonalList& given : answer.lists) {
      auto* const list = response.add_results();
      list->set_query(given.query);
      for (const PersonalSlot& slot : given.slots) {
        auto* const item = list->add_items();
        item->set_item(slot.item);
        item->set_score(slot.score);
        if (!slot.is_drawn) continue;
        item->set_drawn(true);
        item->set_probability(slot.probability);
      }
    }
  }
};

struct ObserveMethod {
  using Request = personal::ObserveRequest;
  using Response = personal::ObserveResponse;
  static constexpr Scope kScope = Scope::kObserve;
  static constexpr const char* kName = "Observe";

  static Status read(const Request& request, PersonalRequest& call) {
    std::vector<ItemObservation> observations;
    if (request.observations().empty()) return Status::invalid_argument("'observations' is empty");
    for (const auto& given : request.observations()) {
      ItemObservation& observation = observations.emplace_back();
      observation.user = given.user_number();
      if (!given.has_user_number()) {
        FOLIOT_RETURN_IF_ERROR(number_of_name("user", given.user_text(), observation.user));
      }
      observation.id = given.id_number();
      if (!given.has_id_number()) FOLIOT_RETURN_IF_ERROR(number_of_name("id", given.id_text(), observation.id));
      observation.item = given.item();
      observation.value = given.value();
      observation.query = given.query();
    }
    call.query = std::move(observations);
    call.inputs = read_tensors(request.inputs());
    return Status();
  }
  static void write(const PersonalAnswer&, Response&) {}
};

struct ForgetMethod {
  using Request = personal::ForgetRequest;
  using Response = personal::ForgetResponse;
  static constexpr Scope kScope = Scope::kObserve;
  static constexpr const char* kName = "Forget";

  static Status read(const Request& request, PersonalRequest& call) {
    ForgetQuery query;
    FOLIOT_RETURN_IF_ERROR(read_users(request.users(), query.users));
    call.query = std::move(query);
    return Status();
  }
  static void write(const PersonalAnswer&, Response&) {}
};

template <typename Method>
class GrpcPersonalCall final : public GrpcCall {
 public:
  GrpcPersonalCall(GrpcCalls& calls, PersonalProtocol& protocol) : GrpcCall(calls), protocol_(protocol) {
    protocol_.accept(Method::kName, &context_, &sent_, &writer_, calls.queue(), accepted_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<GrpcPersonalCall>(protocol_);
    if (const auto refusal = turned_away(Method::kScope, Method::Request::descriptor()->name())) {
      return finish(*refusal);
    }
    if (const Status status = start(); !status.ok()) finish_with(call_error(status));
  }

  // Its answer comes by mail, also when it is there at once.
  Status start() {
    FOLIOT_RETURN_IF_ERROR(sent_.status);
    PersonalService* const service = calls_.parts().personal;
    if (service == nullptr) return no_personal_models();
    PersonalRequest request;
    FOLIOT_RETURN_IF_ERROR(Method::read(sent_.message, request));
    FOLIOT_RETURN_IF_ERROR(check_personal_limits(request));
    FOLIOT_ASSIGN_OR_RETURN(const std::optional<Duration> timeout, parse_timeout(sent_.message.timeout()));
    PersonalCall call{.model = sent_.message.model(),
                      .arrival = calls_.now(),
                      .deadline = {},
                      .tenant = tenant(),
                      .inputs = request.inputs};
    call.deadline = deadline_of(context_, call.arrival);
    if (timeout) call.deadline = std::min(call.deadline, call.arrival + *timeout);
    // The call stays until it is finished; a mailbox delivers nothing after the server.
    start_personal(*service, call, std::move(request), [mailbox = calls_.mailbox(), this](PersonalResult result) {
      mailbox->post([this, result = std::move(result)] { on_result(result); });
    });
    return Status();
  }

  void on_result(const PersonalResult& result) {
    const auto* const answer = std::get_if<PersonalAnswer>(&result);
    if (answer == nullptr) return finish_with(std::get<CallError>(result));
    response_.set_version(answer->version);
    Method::write(*answer, response_);
    finish(grpc::Status::OK);
  }
  void finish_with(const CallError& error) {
    add_refusal(error, context_);
    finish(to_grpc(error));
  }
  void finish(const grpc::Status& status) {
    if (calls_.stopping()) return;
    const grpc::Status ending = within_budget(status, response_);
    writer_.Finish(response_, ending, finished_.pointer());
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  PersonalProtocol& protocol_;
  GrpcMessage<typename Method::Request> sent_{calls_.message_bytes_max()};
  typename Method::Response response_;
  grpc::ServerAsyncResponseWriter<typename Method::Response> writer_{&context_};
  GrpcTag<GrpcPersonalCall> accepted_{*this, &GrpcPersonalCall::on_accepted};
  GrpcTag<GrpcPersonalCall> finished_{*this, &GrpcPersonalCall::on_finished};
};

}  // namespace

void serve_personal_models(PersonalProtocol& protocol, GrpcCalls& calls) {
  for (int i = 0; i < kPersonalAcceptedAtOnce; ++i) {
    calls.add<GrpcPersonalCall<PredictMethod>>(protocol);
    calls.add<GrpcPersonalCall<TopKMethod>>(protocol);
    calls.add<GrpcPersonalCall<ObserveMethod>>(protocol);
    calls.add<GrpcPersonalCall<ForgetMethod>>(protocol);
  }
}

}  // namespace foliot
