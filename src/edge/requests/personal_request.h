// Calls of personal models over HTTP, as JSON:
//
//   predict  {"user": 7, "item": 3}   {"user": 7, "items": [3, 4]}   {"users": [7, 8], "items": [3, 4]}, in pairs
//   topk     {"user": 7, "k": 10}     {"users": [7, 8], "k": 10, "items": [3, 4, 5]}, of these items
//   observe  {"user": 7, "item": 3, "value": 4.5, "id": "a1"}        {"observations": [{...}, ...]}
//   forget   {"user": 7}              {"users": [7, 8]}
//
// and where a model computes the features of items, predict, topk and observe with {"inputs": [{"name": "x",
// "datatype": "FP32", "shape": [2, 16], "data": [...]}]}: its inputs, with a row for each item of the call (each
// observation), as requests of inference have them; their data may follow the JSON (JsonRequest).
//
// With an observation the "query" of the answer that it follows from, and with each {"parameters": {"timeout":
// MICROSECONDS}}. Items are whole numbers. Users and ids of observations are whole numbers or texts; a text stands for
// the number number_of_text().
#ifndef FOLIOT_EDGE_REQUESTS_PERSONAL_REQUEST_H_
#define FOLIOT_EDGE_REQUESTS_PERSONAL_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "answer/inference/personal_service.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// The first eight bytes, little-endian, of its SHA-256.
uint64_t number_of_text(std::string_view text);
// Longer texts are refused.
inline constexpr size_t kPersonalTextBytesMax = 256;
// Longer JSON is refused before it is parsed.
inline constexpr size_t kPersonalBodyBytesMax = 4 << 20;

enum class PersonalMethod { kPredict, kTopK, kObserve, kForget };
// "predict", "topk", "observe", "forget".
std::optional<PersonalMethod> personal_method_named(std::string_view name);

// What is to be forgotten.
struct ForgetQuery {
  std::vector<uint64_t> users;
};

struct PersonalRequest {
  std::variant<std::vector<UserItem>, TopKQuery, std::vector<ItemObservation>, ForgetQuery> query;
  std::optional<Duration> timeout;
  std::shared_ptr<const ItemTensors> inputs{};  // null: none were sent
};

// Errors: kInvalidArgument naming member, value and limit.
// `json_bytes`: as JsonRequestDecoder has it.
Result<PersonalRequest> parse_personal_request(PersonalMethod method, std::string_view body,
                                               std::optional<size_t> json_bytes = std::nullopt);
// Of lists that no call may exceed. Errors: kInvalidArgument.
Status check_personal_limits(const PersonalRequest& request);

// Of a server without personal models.
Status no_personal_models();
// Starts the call.
void start_personal(PersonalService& service, const PersonalCall& call, PersonalRequest request, PersonalDone done);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_PERSONAL_REQUEST_H_
