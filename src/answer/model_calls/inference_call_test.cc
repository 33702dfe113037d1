#include "answer/model_calls/inference_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "answer/inference/conformance/test_models.h"
#include "foundation/core/bounded_row.h"
#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::shared_ptr<const ModelInfo> shared(ModelInfo info) { return std::make_shared<const ModelInfo>(std::move(info)); }

class InferenceCallTest : public ::testing::Test {
 protected:
  // A good query of `doubling`; tests break one thing at a time.
  Query doubling_query() {
    return {.id = "7", .arrival = {}, .inputs = {{"x", "FP32", {2, 2}, bytes_of(numbers_)}}, .outputs = {}};
  }
  std::string error_of(const Query& query, const ModelInfo& model = doubling_model(ModelId(1))) {
    const auto call = InferenceCall::make(shared(model), query);
    EXPECT_FALSE(call.ok());
    EXPECT_EQ(call.status().code(), StatusCode::kInvalidArgument);
    return call.status().message();
  }

  std::vector<float> numbers_{1, 2, 3, 4};
  std::vector<int64_t> tokens_{5, 6, 7, 8, 9};
};

TEST_F(InferenceCallTest, RowsAreViewsOfWhatWasSent) {
  const auto made = InferenceCall::make(shared(doubling_model(ModelId(1))), doubling_query());
  ASSERT_TRUE(made.ok()) << made.status().message();
  InferenceCall& call = *made.value();
  EXPECT_EQ(call.rows(), 2u);
  EXPECT_EQ(call.input(1, 0).data(), bytes_of(numbers_).data() + 8);
  EXPECT_EQ(values_of<float>(call.input(1, 0)), (std::vector<float>{3, 4}));
  EXPECT_EQ(call.output(0, 0).size(), 8u);
  EXPECT_EQ(call.output(1, 0).data(), call.output(0, 0).data() + 8);
}

std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

TEST_F(InferenceCallTest, StringsGoIntoRowsOfOneSizeAndComeBack) {
  const std::string texts = serialized({"one two", ""});
  const Query query{.inputs = {{"text", "BYTES", {2}, view(texts)}}, .body_bytes = 100};
  const auto made = InferenceCall::make(shared(text_model(ModelId(1))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  InferenceCall& call = *made.value();
  const TensorSpec& input = call.model().inputs[0];
  ASSERT_EQ(call.input(0, 0).size(), bounded_row_bytes(input));
  EXPECT_EQ(elements_of(input, call.input(0, 0)).size(), 4u + 7);
  EXPECT_EQ(elements_of(input, call.input(1, 0)).size(), 4u);
  EXPECT_EQ(call.body_bytes(), 100 + 2 * bounded_row_bytes(input));

  const TensorSpec& output = call.model().outputs[0];
  ASSERT_TRUE(write_row(output, {2}, view(serialized({"one", "two"})), call.output(0, 0)));
  for (uint64_t row = 1; row <= 2; ++row) call.complete({.id = RequestId(row)});
  call.collect();
  EXPECT_EQ(call.requested_shape(0), (Shape{2, 2}));
  EXPECT_TRUE(call.requested_is_padded(0)) << "the second row has no words";
  EXPECT_EQ(call.take_requested(0), serialized({"one", "two", "", ""}));
}

TEST_F(InferenceCallTest, RowsOfEqualExtentsAreNotPadded) {
  const std::string texts = serialized({"a", "b"});
  const Query query{.inputs = {{"text", "BYTES", {2}, view(texts)}}};
  const auto made = InferenceCall::make(shared(text_model(ModelId(1))), query);
  ASSERT_TRUE(made.ok());
  InferenceCall& call = *made.value();
  for (uint32_t row = 0; row < 2; ++row) {
    ASSERT_TRUE(write_row(call.model().outputs[0], {1}, view(serialized({"w"})), call.output(row, 0)));
    call.complete({.id = RequestId(row + 1)});
  }
  call.collect();
  EXPECT_EQ(call.requested_shape(0), (Shape{2, 1}));
  EXPECT_FALSE(call.requested_is_padded(0));
  EXPECT_EQ(call.take_requested(0), serialized({"w", "w"}));
}

TEST_F(InferenceCallTest, ARowThatIsNoneIsEmpty) {
  const std::string texts = serialized({"a"});
  const Query query{.inputs = {{"text", "BYTES", {1}, view(texts)}}};
  const auto made = InferenceCall::make(shared(text_model(ModelId(1))), query);
  ASSERT_TRUE(made.ok());
  InferenceCall& call = *made.value();
  std::ranges::fill(call.output(0, 0), std::byte{0xff});
  call.complete({.id = RequestId(1)});
  call.collect();
  EXPECT_EQ(call.requested_shape(0), (Shape{1, 0}));
  EXPECT_EQ(call.take_requested(0), "");
}

TEST_F(InferenceCallTest, WrongStringsAreNamedWithTheirLimit) {
  const auto error = [&](const Shape& shape, const std::string& bytes) {
    return error_of({.inputs = {{"text", "BYTES", shape, view(bytes)}}}, text_model(ModelId(1)));
  };
  EXPECT_THAT(error({2}, serialized({"ok", "too long."})),
              AllOf(HasSubstr("model 'texts': input 'text': row 1 has strings of 9 bytes"), HasSubstr("up to 8")));
  EXPECT_THAT(error({2}, serialized({"ok"})), HasSubstr("expected 2 strings"));
  EXPECT_THAT(error({1}, serialized({"ok", "more"})), HasSubstr("got 8 bytes more"));
  EXPECT_THAT(error({1}, std::string("\xff\xff\xff\xff", 4)), HasSubstr("end before row 0 does"));
  EXPECT_THAT(error({1, 1}, serialized({"ok"})), HasSubstr("expected shape [rows], got [1,1]"));
}

TEST_F(InferenceCallTest, ManyRowsAreLimitedByTheMemoryThatTheyNeed) {
  std::string texts;
  for (int i = 0; i < 100; ++i) texts += serialized({"a"});
  const Query query{.inputs = {{"text", "BYTES", {100}, view(texts)}}};
  const auto made = InferenceCall::make(shared(text_model(ModelId(1))), query, {.output_bytes_max = 1000});
  EXPECT_THAT(made.status().message(),
              AllOf(HasSubstr("input 'text': 16 B of each of 100 rows"), HasSubstr("send fewer")));
}

TEST_F(InferenceCallTest, DimensionsWithoutBucketsHaveALimit) {
  ModelInfo info = text_model(ModelId(1));
  info.inputs = {{.name = "x", .shape = {-1, 2}, .dimension_names = {"", ""}, .bound = RowBound{{3, 2}, 0}}};
  const Query query{.inputs = {{"x", "FP32", {1, 2, 2}, bytes_of(numbers_)}}};
  const auto made = InferenceCall::make(shared(info), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(extents_of(info.inputs[0], (*made)->input(0, 0)), (Shape{2, 2}));
  EXPECT_EQ(elements_of(info.inputs[0], (*made)->input(0, 0)).size(), 16u);
  EXPECT_THAT(error_of({.inputs = {{"x", "FP32", {1, 4, 2}, bytes_of(numbers_)}}}, info),
              HasSubstr("expected shape [rows,0..3,2], got [1,4,2]"));
  EXPECT_THAT(error_of({.inputs = {{"x", "FP32", {1, 1, 2}, bytes_of(numbers_)}}}, info),
              HasSubstr("expected 8 bytes for 1 rows of 2 FP32, got 16"));
}

TEST_F(InferenceCallTest, TheFirstReasonOfAFailureCounts) {
  const auto made = InferenceCall::make(shared(doubling_model(ModelId(1))), doubling_query());
  ASSERT_TRUE(made.ok());
  (*made)->fail("ValueError: one");
  (*made)->fail("ValueError: two");
  EXPECT_EQ((*made)->failure(), "ValueError: one");
}

TEST_F(InferenceCallTest, PadsToTheFirstBucketThatFitsAndCropsBack) {
  const Query query{.id = "", .arrival = {}, .inputs = {{"tokens", "INT64", {1, 5}, bytes_of(tokens_)}}, .outputs = {}};
  const auto made = InferenceCall::make(shared(sequence_model(ModelId(2))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  InferenceCall& call = *made.value();
  EXPECT_EQ(call.bucket(), BucketId(1));
  EXPECT_EQ(values_of<int64_t>(call.input(0, 0)), (std::vector<int64_t>{5, 6, 7, 8, 9, 0, 0, 0}));

  const auto pairs = call.output(0, 0);
  ASSERT_EQ(pairs.size(), 8 * 2 * sizeof(int64_t));
  for (size_t i = 0; i < 16; ++i) {
    const auto value = static_cast<int64_t>(i);
    std::memcpy(pairs.data() + i * sizeof value, &value, sizeof value);
  }
  EXPECT_TRUE(call.complete(Completion{}));
  EXPECT_EQ(call.requested_shape(0), (Shape{1, 5, 2}));
  const std::string cropped = call.take_requested(0);
  EXPECT_EQ(values_of<int64_t>(std::as_bytes(std::span(cropped))),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(InferenceCallTest, PadsEachRowOfABatch) {
  const std::vector<int64_t> tokens{1, 2, 3, 4, 5, 6};
  const Query query{.id = "", .arrival = {}, .inputs = {{"tokens", "INT64", {2, 3}, bytes_of(tokens)}}, .outputs = {}};
  const auto made = InferenceCall::make(shared(sequence_model(ModelId(2))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()->bucket(), BucketId(0));
  EXPECT_EQ(values_of<int64_t>(made.value()->input(0, 0)), (std::vector<int64_t>{1, 2, 3, 0}));
  EXPECT_EQ(values_of<int64_t>(made.value()->input(1, 0)), (std::vector<int64_t>{4, 5, 6, 0}));
}

TEST_F(InferenceCallTest, WithoutABatchDimensionTheShapeIsWhole) {
  const std::vector<uint8_t> flags{1, 0, 0, 1};
  const Query query{.id = "", .arrival = {}, .inputs = {{"x", "BOOL", {2, 2}, bytes_of(flags)}}, .outputs = {}};
  const auto made = InferenceCall::make(shared(whole_model(ModelId(3))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()->rows(), 1u);
  EXPECT_EQ(made.value()->requested_shape(0), (Shape{2, 2}));
}

TEST_F(InferenceCallTest, IsDoneWithItsLastRowAndRefusedWithItsFirstRefusal) {
  const auto made = InferenceCall::make(shared(doubling_model(ModelId(1))), doubling_query());
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made.value()->complete({.refusal = Refusal::kExpired}));
  EXPECT_TRUE(made.value()->complete({.refusal = Refusal::kOverload}));
  EXPECT_FALSE(made.value()->served());
  EXPECT_EQ(made.value()->refusal().refusal, Refusal::kExpired);
}

TEST_F(InferenceCallTest, IsRefusedIfItsAnswerLeavesAfterItsDeadline) {
  for (const int64_t late : {0, 1}) {
    Query query = doubling_query();
    query.deadline = query.arrival + Duration::milliseconds(5);
    const auto made = InferenceCall::make(shared(doubling_model(ModelId(1))), query);
    ASSERT_TRUE(made.ok());
    InferenceCall& call = *made.value();
    const TimePoint finished = call.deadline() - Duration::milliseconds(1);
    while (!call.complete({.finished = finished})) {
    }
    call.settle(call.deadline() + Duration::nanoseconds(late));
    EXPECT_EQ(call.served(), late == 0);
    if (call.served()) continue;
    EXPECT_EQ(call.refusal().refusal, Refusal::kLate);
    EXPECT_EQ(call.refusal().finished, call.deadline() + Duration::nanoseconds(late));
    EXPECT_EQ(call.refusal().earliest_completion, finished);
  }
}

TEST_F(InferenceCallTest, OutputsComeInTheOrderAskedFor) {
  Query query{
      .id = "", .arrival = {}, .inputs = {{"tokens", "INT64", {1, 5}, bytes_of(tokens_)}}, .outputs = {"sum", "pairs"}};
  const auto made = InferenceCall::make(shared(sequence_model(ModelId(2))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made.value()->requested_count(), 2u);
  EXPECT_EQ(made.value()->requested_spec(0).name, "sum");
  EXPECT_EQ(made.value()->requested_spec(1).name, "pairs");
}

TEST_F(InferenceCallTest, ErrorsNameTheTensorWhatWasExpectedAndWhatCame) {
  Query query = doubling_query();
  query.inputs[0].name = "z";
  EXPECT_THAT(error_of(query), AllOf(HasSubstr("'z'"), HasSubstr("the inputs are x"), HasSubstr("'doubling'")));
  query = doubling_query();
  query.inputs.clear();
  EXPECT_THAT(error_of(query), HasSubstr("'x' is missing"));
  query = doubling_query();
  query.inputs.push_back(query.inputs[0]);
  EXPECT_THAT(error_of(query), HasSubstr("'x' was sent twice"));
  query = doubling_query();
  query.inputs[0].datatype = "INT8";
  EXPECT_THAT(error_of(query), AllOf(HasSubstr("'x'"), HasSubstr("FP32"), HasSubstr("INT8")));
  query = doubling_query();
  query.inputs[0].shape = {2, 3};
  EXPECT_THAT(error_of(query), AllOf(HasSubstr("'x'"), HasSubstr("[rows,2]"), HasSubstr("[2,3]")));
  query = doubling_query();
  query.inputs[0].shape = {4};
  EXPECT_THAT(error_of(query), HasSubstr("got [4]"));
  query = doubling_query();
  query.inputs[0].bytes = query.inputs[0].bytes.first(12);
  EXPECT_THAT(error_of(query), AllOf(HasSubstr("'x'"), HasSubstr("16 bytes"), HasSubstr("got 12")));
  query = doubling_query();
  query.outputs = {"w"};
  EXPECT_THAT(error_of(query), AllOf(HasSubstr("'w'"), HasSubstr("the outputs are y")));
  query.outputs = {"y", "y"};
  EXPECT_THAT(error_of(query), HasSubstr("'y' was asked for twice"));
}

TEST_F(InferenceCallTest, HasMoreRowsThanTheLargestBatch) {
  const std::vector<float> numbers(600 * 2);
  const Query query{.id = "", .arrival = {}, .inputs = {{"x", "FP32", {600, 2}, bytes_of(numbers)}}, .outputs = {}};
  const auto made = InferenceCall::make(shared(doubling_model(ModelId(1))), query);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()->rows(), 600u);
  EXPECT_EQ(made.value()->output(599, 0).data(), made.value()->output(0, 0).data() + 599 * 8);
}

TEST_F(InferenceCallTest, RowsAndOutputsOfACallAreLimited) {
  Query query = doubling_query();
  for (const int64_t rows : {int64_t{8193}, int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    query.inputs[0].shape = {rows, 2};
    EXPECT_THAT(error_of(query), AllOf(HasSubstr("1 to 8192 rows"), HasSubstr(std::to_string(rows)),
                                       HasSubstr("--requests-in-flight-max")));
  }
  const std::vector<float> numbers(5 * 2);
  query.inputs[0] = {"x", "FP32", {5, 2}, bytes_of(numbers)};
  ModelInfo model = doubling_model(ModelId(1));
  model.outputs[0].shape = {4 << 20};
  EXPECT_THAT(error_of(query, model), AllOf(HasSubstr("'y'"), HasSubstr("5 rows"), HasSubstr("--tensor-max")));
  // A batch was always allowed.
  query.inputs[0] = {"x", "FP32", {4, 2}, bytes_of(numbers).first(32)};
  EXPECT_TRUE(InferenceCall::make(shared(model), query, {.rows_max = 1, .output_bytes_max = 1}).ok());
}

TEST_F(InferenceCallTest, CutsOutputsBackWhereTheirLengthFollows) {
  ModelInfo model = sequence_model(ModelId(2));
  model.outputs = {{"half", DataType::kInt64, {-1}, {"(length + 1) / 2"}}, {"odd", DataType::kInt64, {-1}, {"odd_1"}}};
  model.buckets = {{{{"length", 8}, {"(length + 1) / 2", 4}, {"odd_1", 64}}}};
  for (const size_t length : {size_t{5}, size_t{8}}) {
    const std::vector<int64_t> tokens(length);
    const Query query{.id = "",
                      .arrival = {},
                      .inputs = {{"tokens", "INT64", {1, static_cast<int64_t>(length)}, bytes_of(tokens)}},
                      .outputs = {}};
    const auto made = InferenceCall::make(shared(model), query);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made.value()->requested_shape(0), (Shape{1, length == 5 ? 3 : 4}));
    EXPECT_FALSE(made.value()->requested_is_padded(0));
    EXPECT_EQ(made.value()->requested_shape(1), (Shape{1, 64}));
    EXPECT_EQ(made.value()->requested_is_padded(1), length == 5);
  }
}

TEST_F(InferenceCallTest, VariableDimensionsMustFitABucket) {
  Query query{.id = "", .arrival = {}, .inputs = {{"tokens", "INT64", {1, 9}, bytes_of(tokens_)}}, .outputs = {}};
  EXPECT_THAT(error_of(query, sequence_model(ModelId(2))), AllOf(HasSubstr("length = 9"), HasSubstr("8")));
  query.inputs[0].shape = {1, 0};
  EXPECT_THAT(error_of(query, sequence_model(ModelId(2))), HasSubstr("[rows,length]"));
  query.inputs[0].shape = {1, -5};
  EXPECT_THAT(error_of(query, sequence_model(ModelId(2))), HasSubstr("got [1,-5]"));
}

// Points of a set, of which zeros would be others.
TEST_F(InferenceCallTest, AFirstDimensionThatIsNoBatchIsNotPadded) {
  ModelInfo model = sequence_model(ModelId(2));
  model.batching = false;
  model.inputs = {{"tokens", DataType::kInt64, {-1}, {"points"}}};
  model.outputs = {{"y", DataType::kInt64, {-1}, {"points"}}};
  model.buckets = {{{{"points", 2}}}, {{{"points", 4}}}};
  const auto query_of = [&](int64_t points) {
    return Query{.id = "",
                 .arrival = {},
                 .inputs = {{"tokens", "INT64", {points}, bytes_of(tokens_).first(static_cast<size_t>(points) * 8)}},
                 .outputs = {}};
  };
  for (const int64_t points : {2, 4}) {
    const auto made = InferenceCall::make(shared(model), query_of(points));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made.value()->bucket(), BucketId(points == 2 ? 0 : 1));
  }
  EXPECT_THAT(error_of(query_of(3), model), AllOf(HasSubstr("points = 3"), HasSubstr("[points = 2], [points = 4]"),
                                                  HasSubstr("[buckets]"), HasSubstr("not padded")));
}

TEST_F(InferenceCallTest, InputsMustAgreeOnRowsAndDimensions) {
  ModelInfo model = sequence_model(ModelId(2));
  model.inputs.push_back({"mask", DataType::kInt64, {-1}, {"length"}});
  Query query{.id = "",
              .arrival = {},
              .inputs = {{"tokens", "INT64", {1, 5}, bytes_of(tokens_)},
                         {"mask", "INT64", {1, 4}, bytes_of(tokens_).first(32)}},
              .outputs = {}};
  EXPECT_THAT(error_of(query, model), AllOf(HasSubstr("'mask'"), HasSubstr("length = 5"), HasSubstr("got 4")));
  query.inputs[1].shape = {2, 5};
  EXPECT_THAT(error_of(query, model), AllOf(HasSubstr("'mask'"), HasSubstr("1 rows"), HasSubstr("got 2")));
}

TEST(DeadlineTest, TheTighterCounts) {
  const TimePoint arrival = TimePoint() + Duration::seconds(10);
  ModelInfo model = doubling_model(ModelId(1));
  Query query{.arrival = arrival};
  EXPECT_TRUE(deadline_of(query, model).is_infinite());
  model.default_slo = Duration::milliseconds(30);
  EXPECT_EQ(deadline_of(query, model), arrival + Duration::milliseconds(30));
  query.deadline = arrival + Duration::milliseconds(20);
  EXPECT_EQ(deadline_of(query, model), arrival + Duration::milliseconds(20));
  query.deadline = arrival + Duration::milliseconds(40);
  EXPECT_EQ(deadline_of(query, model), arrival + Duration::milliseconds(30));
  for (const RequestClass without : {RequestClass::kBestEffort, RequestClass::kOffline}) {
    query.request_class = without;
    EXPECT_TRUE(deadline_of(query, model).is_infinite());
  }
}

}  // namespace
}  // namespace foliot
