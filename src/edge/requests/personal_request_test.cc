#include "edge/requests/personal_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(PersonalMethod method, std::string_view body) {
  const Result<PersonalRequest> request = parse_personal_request(method, body);
  return request.ok() ? "" : request.status().message();
}

template <typename T>
T parsed(PersonalMethod method, std::string_view body) {
  const Result<PersonalRequest> request = parse_personal_request(method, body);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? std::get<T>(request->query) : T();
}

std::vector<std::pair<uint64_t, uint64_t>> pairs_of(std::string_view body) {
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  for (const UserItem& pair : parsed<std::vector<UserItem>>(PersonalMethod::kPredict, body)) {
    pairs.emplace_back(pair.user, pair.item);
  }
  return pairs;
}

TEST(PersonalRequestTest, PairsUsersWithItems) {
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(pairs_of(R"({"user": 7, "item": 3})"), ElementsAre(Pair(7, 3)));
  EXPECT_THAT(pairs_of(R"({"user": 7, "items": [3, 4]})"), ElementsAre(Pair(7, 3), Pair(7, 4)));
  EXPECT_THAT(pairs_of(R"({"users": [7, 8], "items": [3, 4]})"), ElementsAre(Pair(7, 3), Pair(8, 4)));
  EXPECT_THAT(pairs_of(R"({"user": 18446744073709551615, "item": 0})"), ElementsAre(Pair(~uint64_t{0}, 0)));
  EXPECT_THAT(error_of(PersonalMethod::kPredict, R"({"users": [7, 8], "items": [3, 4, 5]})"),
              HasSubstr("2 users and 3"));
}

TEST(PersonalRequestTest, ATextIsANumberByItsHash) {
  EXPECT_EQ(number_of_text("ada"), parsed<ForgetQuery>(PersonalMethod::kForget, R"({"user": "ada"})").users[0]);
  EXPECT_NE(number_of_text("7"), 7U);
  EXPECT_EQ(number_of_text("abc"), 0xeacf018fbf1678baU);  // sha256("abc") begins ba 78 16 bf 8f 01 cf ea
}

TEST(PersonalRequestTest, ReadsObservations) {
  const auto all = parsed<std::vector<ItemObservation>>(
      PersonalMethod::kObserve,
      R"({"observations": [{"user": 1, "item": 2, "value": -4.5, "id": "x", "query": 9}, {"user": 3, "item": 4, "value": 5, "id": 6}]})");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].query, 9U);
  EXPECT_EQ(all[0].id, number_of_text("x"));
  EXPECT_EQ(all[0].value, -4.5);
  EXPECT_EQ(all[1].user, 3U);
  EXPECT_EQ(all[1].item, 4U);
  EXPECT_EQ(all[1].id, 6U);
  EXPECT_EQ(all[1].query, 0U);
}

TEST(PersonalRequestTest, ErrorsNameMemberAndValue) {
  const auto predict = [](std::string_view body) { return error_of(PersonalMethod::kPredict, body); };
  EXPECT_THAT(predict("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(predict(R"({"item": 3})"), HasSubstr("'user' is missing"));
  EXPECT_THAT(predict(R"({"user": 7})"), HasSubstr("'item' is missing"));
  EXPECT_THAT(predict(R"({"user": 7, "item": -3})"),
              HasSubstr("'item' must be a whole number from 0 to 2^64 - 1, got -3"));
  EXPECT_THAT(predict(R"({"user": 7, "item": "three"})"), HasSubstr("'item' must be a whole number"));
  EXPECT_THAT(predict(R"({"user": 1.5, "item": 3})"), HasSubstr("'user' must be a whole number"));
  EXPECT_THAT(predict(R"({"user": "", "item": 3})"), HasSubstr("a text of 1 to 256 bytes"));
  EXPECT_THAT(predict(R"({"user": 7, "items": []})"), HasSubstr("'items' must be a list that is not empty"));
  EXPECT_THAT(predict(R"({"user": 7, "item": 3, "items": [3]})"), HasSubstr("either 'item' or 'items'"));
  EXPECT_THAT(predict(R"({"user": 7, "item": 3, "colour": 1})"), HasSubstr("unknown member; known are user or users"));
  EXPECT_THAT(error_of(PersonalMethod::kTopK, R"({"user": 7})"), HasSubstr("'k' is missing"));
  const auto observe = [](std::string_view body) { return error_of(PersonalMethod::kObserve, body); };
  EXPECT_THAT(observe(R"({"user": 1, "item": 2, "value": NaN, "id": 3})"), HasSubstr("NaN is none"));
  EXPECT_THAT(observe(R"({"user": 1, "item": 2, "value": 1e999, "id": 3})"), HasSubstr("must be finite"));
  EXPECT_THAT(observe(R"({"user": 1, "item": 2, "value": 3})"), HasSubstr("'id' is missing"));
  EXPECT_THAT(observe(R"({"observations": [{"user": 1, "item": 2, "id": 3}]})"),
              HasSubstr("observations[0]: 'value' is missing"));
}

TEST(PersonalRequestTest, ErrorsDoNotShowUsers) {
  EXPECT_EQ(error_of(PersonalMethod::kForget, R"({"user": ["ada"]})").find("ada"), std::string::npos);
}

TEST(PersonalRequestTest, ListsAreBounded) {
  std::string items = "1";
  for (size_t i = 0; i < PersonalService::kPairsMax; ++i) items += ",1";
  EXPECT_THAT(error_of(PersonalMethod::kPredict, R"({"user": 7, "items": [)" + items + "]}"),
              HasSubstr("10001 pairs in a call: at most 10000 are allowed"));
  EXPECT_THAT(error_of(PersonalMethod::kPredict, std::string(kPersonalBodyBytesMax + 1, ' ')),
              HasSubstr("4194305 bytes"));
}

TEST(PersonalRequestTest, ReadsTheTimeout) {
  const auto timeout = [](std::string_view parameters) {
    const auto request = parse_personal_request(PersonalMethod::kForget,
                                                R"({"user": 7, "parameters": )" + std::string(parameters) + "}");
    return request.ok() ? request->timeout : std::optional(Duration::nanoseconds(-1));
  };
  EXPECT_EQ(timeout(R"({"timeout": 1500})"), Duration::microseconds(1500));
  EXPECT_EQ(timeout(R"({"timeout": 0})"), std::nullopt);
  EXPECT_EQ(timeout("{}"), std::nullopt);
  EXPECT_EQ(timeout(R"({"timeout": -1})"), Duration::nanoseconds(-1));
  EXPECT_EQ(timeout(R"({"timeouts": 1})"), Duration::nanoseconds(-1));
}

TEST(PersonalRequestTest, InputsOfItemsAreThoseOfInferences) {
  const std::string members =
      R"({"user": 7, "items": [3, 9], "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], )";
  const auto in_json = parse_personal_request(PersonalMethod::kPredict, members + R"("data": [1, 2]}]})");
  ASSERT_TRUE(in_json.ok()) << in_json.status().message();
  ASSERT_NE(in_json->inputs, nullptr);
  ASSERT_EQ(in_json->inputs->size(), 1U);
  const ItemTensor& tensor = in_json->inputs->front();
  EXPECT_EQ(tensor.name, "x");
  EXPECT_EQ(tensor.datatype, "FP32");
  EXPECT_EQ(tensor.shape, (Shape{2, 1}));
  EXPECT_EQ(tensor.bytes.size(), 8U);
  const std::string json = members + R"("parameters": {"binary_data_size": 8}}]})";
  const auto binary = parse_personal_request(PersonalMethod::kPredict, json + tensor.bytes, json.size());
  ASSERT_TRUE(binary.ok()) << binary.status().message();
  EXPECT_EQ(binary->inputs->front().bytes, tensor.bytes);
  const auto wrong = parse_personal_request(PersonalMethod::kPredict, json + "1234", json.size());
  EXPECT_THAT(wrong.status().message(), testing::HasSubstr("expected 8 bytes of binary data, got 4"));
  const auto one = parse_personal_request(
      PersonalMethod::kObserve,
      R"({"user": 7, "item": 3, "value": 1, "id": 1, "inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]})");
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one->inputs->size(), 1U) << "its id is none of an inference";
  const std::string none = R"({"user": 7, "item": 3})";
  EXPECT_EQ(parse_personal_request(PersonalMethod::kPredict, none)->inputs, nullptr);
  EXPECT_THAT(parse_personal_request(PersonalMethod::kPredict, none + "1234", none.size()).status().message(),
              testing::HasSubstr("no 'inputs'"));
  EXPECT_THAT(parse_personal_request(PersonalMethod::kForget, R"({"user": 7, "inputs": []})").status().message(),
              testing::HasSubstr("unknown member"));
}

}  // namespace
}  // namespace foliot
