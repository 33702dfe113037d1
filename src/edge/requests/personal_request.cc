#include "edge/requests/personal_request.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "edge/requests/json_request.h"
#include "edge/requests/request_parameters.h"
#include "foundation/access/api_key.h"
#include "foundation/json/bounded_json.h"

namespace foliot {
namespace {

using PersonalJson = nlohmann::json;

constexpr JsonBounds kPersonalBounds{.bytes_max = kPersonalBodyBytesMax, .values_max = kPersonalBodyBytesMax};

Status wrong_personal_member(std::string_view member, const PersonalJson& value, std::string_view wanted) {
  return Status::invalid_argument(fmt::format("'{}' must be {}, got {}", member, wanted, shown_json(value)));
}

// Reads the members of one object, and refuses those that are unknown.
class PersonalMembers {
 public:
  explicit PersonalMembers(const PersonalJson& json) : json_(json) {}

  const PersonalJson* find(std::string_view member) {
    const auto found = json_.find(member);
    if (found == json_.end()) return nullptr;
    ++known_;
    return &*found;
  }
  Result<uint64_t> whole(std::string_view member) {
    const PersonalJson* const value = find(member);
    if (value == nullptr) return Status::invalid_argument(fmt::format("'{}' is missing", member));
    return to_whole(member, *value);
  }
  // A user, or the id of an observation.
  Result<uint64_t> name(std::string_view member) {
    const PersonalJson* const value = find(member);
    if (value == nullptr) return Status::invalid_argument(fmt::format("'{}' is missing", member));
    return to_name(member, *value);
  }
  // One by `single` or a list by `several`; neither: empty.
  Result<std::vector<uint64_t>> list(std::string_view single, std::string_view several, auto convert) {
    const PersonalJson* const one = find(single);
    const PersonalJson* const more = find(several);
    if (one != nullptr && more != nullptr) {
      return Status::invalid_argument(fmt::format("send either '{}' or '{}'", single, several));
    }
    std::vector<uint64_t> list;
    if (one != nullptr) {
      FOLIOT_ASSIGN_OR_RETURN(const uint64_t value, convert(single, *one));
      list.push_back(value);
    }
    if (more == nullptr) return list;
    if (!more->is_array() || more->empty()) return wrong_personal_member(several, *more, "a list that is not empty");
    list.reserve(more->size());
    for (const PersonalJson& element : *more) {
      FOLIOT_ASSIGN_OR_RETURN(const uint64_t value, convert(several, element));
      list.push_back(value);
    }
    return list;
  }
  Result<std::vector<uint64_t>> users() {
    FOLIOT_ASSIGN_OR_RETURN(std::vector<uint64_t> users, list("user", "users", to_name));
    if (users.empty()) return Status::invalid_argument("'user' is missing");
    return users;
  }
  Result<std::vector<uint64_t>> items() { return list("item", "items", to_whole); }

  // Whether all were asked for.
  Status finish(std::string_view known) const {
    if (known_ == json_.size()) return Status();
    return Status::invalid_argument(fmt::format("unknown member; known are {}", known));
  }

  static Result<uint64_t> to_whole(std::string_view member, const PersonalJson& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    return wrong_personal_member(member, value, "a whole number from 0 to 2^64 - 1");
  }
  static Result<uint64_t> to_name(std::string_view member, const PersonalJson& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    // Neither users nor ids are shown: they may be names of persons.
    const auto* const text = value.get_ptr<const std::string*>();
    if (text != nullptr && !text->empty() && text->size() <= kPersonalTextBytesMax) return number_of_text(*text);
    return Status::invalid_argument(fmt::format(
        "'{}' must be a whole number from 0 to 2^64 - 1 or a text of 1 to {} bytes", member, kPersonalTextBytesMax));
  }

 private:
  const PersonalJson& json_;
  size_t known_ = 0;
};

Result<std::optional<Duration>> read_personal_timeout(PersonalMembers& members) {
  const PersonalJson* const parameters = members.find("parameters");
  if (parameters == nullptr) return std::optional<Duration>();
  if (!parameters->is_object()) return wrong_personal_member("parameters", *parameters, "an object");
  PersonalMembers known(*parameters);
  std::optional<Duration> timeout;
  if (const PersonalJson* const value = known.find("timeout")) {
    if (!value->is_number_integer()) return wrong_personal_member("timeout", *value, "a whole number of microseconds");
    const bool is_huge =
        value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    FOLIOT_ASSIGN_OR_RETURN(timeout,
                            parse_timeout(is_huge ? std::numeric_limits<int64_t>::max() : value->get<int64_t>()));
  }
  FOLIOT_RETURN_IF_ERROR(known.finish("timeout").with_context("parameters"));
  return timeout;
}

Result<std::vector<UserItem>> read_pairs(PersonalMembers& members) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<uint64_t> users, members.users());
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<uint64_t> items, members.items());
  if (items.empty()) return Status::invalid_argument("'item' is missing");
  if (users.size() != 1 && users.size() != items.size()) {
    return Status::invalid_argument(fmt::format(
        "{} users and {} items make no pairs; send as many of both, or one 'user'", users.size(), items.size()));
  }
  std::vector<UserItem> pairs;
  for (size_t i = 0; i < items.size(); ++i) pairs.push_back({users.size() == 1 ? users[0] : users[i], items[i]});
  return pairs;
}

Result<TopKQuery> read_top_k(PersonalMembers& members) {
  TopKQuery query;
  FOLIOT_ASSIGN_OR_RETURN(query.users, members.users());
  FOLIOT_ASSIGN_OR_RETURN(query.items, members.items());
  FOLIOT_ASSIGN_OR_RETURN(query.k, members.whole("k"));
  return query;
}

Result<ItemObservation> read_observation(PersonalMembers& members) {
  ItemObservation observation;
  FOLIOT_ASSIGN_OR_RETURN(observation.user, members.name("user"));
  FOLIOT_ASSIGN_OR_RETURN(observation.item, members.whole("item"));
  FOLIOT_ASSIGN_OR_RETURN(observation.id, members.name("id"));
  if (const PersonalJson* const query = members.find("query")) {
    FOLIOT_ASSIGN_OR_RETURN(observation.query, PersonalMembers::to_whole("query", *query));
  }
  const PersonalJson* const value = members.find("value");
  if (value == nullptr) return Status::invalid_argument("'value' is missing");
  if (!value->is_number()) return wrong_personal_member("value", *value, "a number");
  observation.value = value->get<double>();
  return observation;
}

constexpr std::string_view kObservationMembers = "user, item, value, id and query";

Result<std::vector<ItemObservation>> read_observations(PersonalMembers& members) {
  std::vector<ItemObservation> observations;
  const PersonalJson* const list = members.find("observations");
  if (list == nullptr) {
    FOLIOT_ASSIGN_OR_RETURN(const ItemObservation observation, read_observation(members));
    observations.push_back(observation);
    return observations;
  }
  if (!list->is_array() || list->empty()) {
    return wrong_personal_member("observations", *list, "a list that is not empty");
  }
  for (const PersonalJson& element : *list) {
    const std::string where = fmt::format("observations[{}]", observations.size());
    if (!element.is_object()) return wrong_personal_member(where, element, "an object");
    PersonalMembers of_element(element);
    const Result<ItemObservation> observation = read_observation(of_element);
    if (!observation.ok()) return observation.status().with_context(where);
    FOLIOT_RETURN_IF_ERROR(of_element.finish(kObservationMembers).with_context(where));
    observations.push_back(*observation);
  }
  return observations;
}

// nullptr: there are none. `data`: what follows the JSON.
Result<std::shared_ptr<const ItemTensors>> read_item_inputs(PersonalMembers& members, std::string_view data) {
  const PersonalJson* const given = members.find("inputs");
  if (given == nullptr) {
    if (data.empty()) return std::shared_ptr<const ItemTensors>();
    return Status::invalid_argument("there is binary data, and no 'inputs' that it belongs to");
  }
  // Alone: other members mean something else in a request of inference.
  std::string request = fmt::format("{{\"inputs\":{}}}", given->dump());
  const size_t json_bytes = request.size();
  request += data;
  JsonRequestDecoder decoder;
  FOLIOT_ASSIGN_OR_RETURN(const JsonRequest decoded, decoder.decode(request, json_bytes));
  auto inputs = std::make_shared<ItemTensors>();
  for (const TensorView& view : decoded.query.inputs) {
    inputs->push_back({.name = std::string(view.name),
                       .datatype = std::string(view.datatype),
                       .shape = view.shape,
                       .bytes = {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()}});
  }
  return std::shared_ptr<const ItemTensors>(std::move(inputs));
}

Status over_limit(std::string_view what, size_t count, size_t max) {
  if (count <= max) return Status();
  return Status::invalid_argument(
      fmt::format("{} {} in a call: at most {} are allowed; send several calls", count, what, max));
}

}  // namespace

uint64_t number_of_text(std::string_view text) {
  const KeyDigest digest = digest_of(text);
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number |= uint64_t{digest[i]} << (8 * i);
  return number;
}

std::optional<PersonalMethod> personal_method_named(std::string_view name) {
  if (name == "predict") return PersonalMethod::kPredict;
  if (name == "topk") return PersonalMethod::kTopK;
  if (name == "observe") return PersonalMethod::kObserve;
  if (name == "forget") return PersonalMethod::kForget;
  return std::nullopt;
}

Result<PersonalRequest> parse_personal_request(PersonalMethod method, std::string_view body,
                                               std::optional<size_t> json_bytes) {
  const std::string_view text = body.substr(0, json_bytes.value_or(body.size()));
  FOLIOT_ASSIGN_OR_RETURN(const PersonalJson json, parse_bounded_json(text, kPersonalBounds));
  if (!json.is_object()) {
    return Status::invalid_argument("the body must be a JSON object; numbers must be finite, NaN is none");
  }
  PersonalRequest request;
  PersonalMembers members(json);
  FOLIOT_ASSIGN_OR_RETURN(request.timeout, read_personal_timeout(members));
  if (method != PersonalMethod::kForget) {
    FOLIOT_ASSIGN_OR_RETURN(request.inputs, read_item_inputs(members, body.substr(text.size())));
  }
  switch (method) {
    case PersonalMethod::kPredict: {
      FOLIOT_ASSIGN_OR_RETURN(request.query, read_pairs(members));
      FOLIOT_RETURN_IF_ERROR(members.finish("user or users, item or items, inputs, and parameters"));
      break;
    }
    case PersonalMethod::kTopK: {
      FOLIOT_ASSIGN_OR_RETURN(request.query, read_top_k(members));
      FOLIOT_RETURN_IF_ERROR(members.finish("user or users, k, items, inputs, and parameters"));
      break;
    }
    case PersonalMethod::kObserve: {
      FOLIOT_ASSIGN_OR_RETURN(request.query, read_observations(members));
      FOLIOT_RETURN_IF_ERROR(
          members.finish(fmt::format("{}, or observations with these, inputs, and parameters", kObservationMembers)));
      break;
    }
    case PersonalMethod::kForget: {
      ForgetQuery query;
      FOLIOT_ASSIGN_OR_RETURN(query.users, members.users());
      FOLIOT_RETURN_IF_ERROR(members.finish("user or users, and parameters"));
      request.query = std::move(query);
      break;
    }
  }
  FOLIOT_RETURN_IF_ERROR(check_personal_limits(request));
  return request;
}

Status check_personal_limits(const PersonalRequest& request) {
  if (const auto* pairs = std::get_if<std::vector<UserItem>>(&request.query)) {
    return over_limit("pairs", pairs->size(), PersonalService::kPairsMax);
  }
  if (const auto* query = std::get_if<TopKQuery>(&request.query)) {
    FOLIOT_RETURN_IF_ERROR(over_limit("users", query->users.size(), PersonalService::kUsersMax));
    return over_limit("items", query->items.size(), PersonalService::kCandidatesMax);
  }
  if (const auto* observations = std::get_if<std::vector<ItemObservation>>(&request.query)) {
    return over_limit("observations", observations->size(), PersonalService::kObservationsMax);
  }
  return over_limit("users", std::get<ForgetQuery>(request.query).users.size(), PersonalService::kUsersMax);
}

Status no_personal_models() {
  return Status::not_found("this server has no personal models; `foliot serve` serves folders with a personal.toml");
}

void start_personal(PersonalService& service, const PersonalCall& call, PersonalRequest request, PersonalDone done) {
  struct Start {
    PersonalService& service;
    const PersonalCall& call;
    PersonalDone& done;
    void operator()(std::vector<UserItem>& pairs) { service.predict(call, std::move(pairs), std::move(done)); }
    void operator()(TopKQuery& query) { service.top_k(call, std::move(query), std::move(done)); }
    void operator()(std::vector<ItemObservation>& observations) {
      service.observe(call, std::move(observations), std::move(done));
    }
    void operator()(ForgetQuery& query) { service.forget(call, std::move(query.users), std::move(done)); }
  };
  std::visit(Start{service, call, done}, request.query);
}

}  // namespace foliot
