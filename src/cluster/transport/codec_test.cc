#include "cluster/transport/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace foliot {
namespace {

TimePoint at(int64_t ns) { return TimePoint::from_nanoseconds(ns); }
Duration ns(int64_t n) { return Duration::nanoseconds(n); }

ModelInfo model(uint32_t id = 7) {
  return {.id = ModelId(id),
          .name = "bert",
          .version = "3",
          .content = "0123abcd",
          .batching = true,
          .inputs = {{.name = "ids", .type = DataType::kInt64, .shape = {-1}, .dimension_names = {"sequence"}}},
          .outputs = {{.name = "logits", .shape = {2}, .labels = {"bad", "good"}},
                      {.name = "text", .type = DataType::kBytes, .shape = {-1}, .bound = RowBound{{4}, 100}}},
          .buckets = {{.dimensions = {{"sequence", 64}}}, {.dimensions = {{"sequence", 128}}}},
          .runnables = {{.kind = "cpu:4",
                         .batch_sizes = {1, 2, 8},
                         .pages = 9,
                         .seed_load = ns(77),
                         .seed_exec = {{ns(1), ns(2), ns(3)}, {ns(4), ns(5), ns(6)}}},
                        {.kind = "cuda", .seed_exec = {{ns(7)}, {ns(8)}}}},
          .default_slo = ns(100),
          .weight = 2.5,
          .batch_delay = ns(5),
          .cache = true};
}

Action infer(uint32_t rows) {
  Action action{.id = ActionId(1),
                .type = ActionType::kInfer,
                .device = DeviceId(2),
                .model = ModelId(3),
                .earliest = at(4),
                .latest = TimePoint::infinite_future(),
                .expected = ns(6),
                .bucket = BucketId(7),
                .batch_size = 64,
                .lanes = {4, 4},
                .range = {5, 9},
                .context = 3};
  // Every other one refers to a held payload.
  for (uint32_t i = 0; i < rows; ++i) {
    PayloadReference input;
    if (i % 2 == 1) input = {DeviceId(300 + i), PayloadHandle(400 + i)};
    action.rows.add({RequestId(100 + i), PayloadHandle(200 + i), input, static_cast<uint16_t>(i)});
  }
  return action;
}

Completion completion() {
  return {.id = RequestId(1),
          .model = ModelId(2),
          .task = ServedTaskId(17),
          .payload = PayloadHandle(3),
          .refusal = Refusal::kLate,
          .detail = "too late by far",
          .arrival = at(4),
          .deadline = at(5),
          .finished = at(6),
          .earliest_completion = at(7),
          .batch_size = 8,
          .cold_start = true,
          .exec_start = at(9),
          .input_duration = ns(10),
          .exec_duration = ns(11),
          .output_duration = ns(12),
          .action = ActionId(13),
          .device = DeviceId(14),
          .visits = {{0, ActionId(13), DeviceId(14)}, {254, ActionId(15), DeviceId(16)}},
          .empty_stages = {2, 31}};
}

Request task_request() {
  return {.id = RequestId(2),
          .model = {},
          .task = ServedTaskId(3),
          .requirements = {.accuracy = 0.5, .cost_nanodollars_most = 4},
          .call = RequestId(1),
          .call_rows = 5,
          .deadline = at(6)};
}

VisitOrder visit_order() {
  const StageCondition condition{.output = 1,
                                 .value = StageCondition::Value::kElement,
                                 .element = 2,
                                 .comparison = StageCondition::Comparison::kAtLeast,
                                 .limit = 0.5};
  return {
      .inputs = {{.pieces = {{}}},
                 {.tensor = 3, .taken = {2, 5}, .pieces = {{254, DeviceId(4)}, {253, DeviceId(5)}}, .pieces_most = 3}},
      .conditions = {condition},
      .answers = {0, 2},
      .held = true,
      .count = 2};
}

Frame frame_of(const WireBytes& bytes) {
  uint32_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length + kFrameLengthBytes, bytes.size());
  return {static_cast<MessageType>(bytes[kFrameLengthBytes]), std::span(bytes).subspan(kFrameLengthBytes + 1)};
}

// A decoded message is equal if it encodes to the same bytes. Truncated or extended
// anywhere, it is refused.
template <typename Message>
void check_round_trip(const Message& message, MessageType type) {
  SCOPED_TRACE(to_string(type));
  WireBytes bytes;
  encode(message, bytes);
  const Frame frame = frame_of(bytes);
  EXPECT_EQ(frame.type, type);
  Message decoded;
  ASSERT_TRUE(decode(frame, decoded).ok());
  WireBytes again;
  encode(decoded, again);
  EXPECT_EQ(again, bytes);

  for (size_t size = 0; size < frame.body.size(); ++size) {
    Message cut;
    EXPECT_EQ(decode({type, frame.body.first(size)}, cut).code(), StatusCode::kInvalidArgument) << size;
  }
  bytes.push_back(std::byte{0});
  Message longer;
  const Status status = decode({type, std::span(bytes).subspan(kFrameLengthBytes + 1)}, longer);
  EXPECT_NE(status.message().find("1 bytes too many"), std::string::npos) << status.message();
}

TEST(CodecTest, EveryMessageSurvivesAndIsExactlyItself) {
  check_round_trip(Goodbye{"because"}, MessageType::kGoodbye);
  check_round_trip(Ping{at(1)}, MessageType::kPing);
  check_round_trip(Pong{at(1), at(2)}, MessageType::kPong);
  check_round_trip(
      Registration{"one", "cpu:4", "peer:1", {3, 4}, {1, 64}, {1, 8}, {model(), model(8)}, {{0, 1}, {}}, 5, 6},
      MessageType::kRegistration);
  check_round_trip(Welcome{{DeviceId(1), DeviceId(2)}, {ModelId(3)}}, MessageType::kWelcome);
  check_round_trip(Welcome{{DeviceId(1)}, {kUnnamed, ModelId(3), kUnnamed}}, MessageType::kWelcome);
  check_round_trip(Offer{model()}, MessageType::kOffer);
  check_round_trip(Withdrawal{ModelId(1)}, MessageType::kWithdrawal);
  check_round_trip(Naming{ModelId(1), ModelId(2)}, MessageType::kNaming);
  check_round_trip(Release{ModelId(1)}, MessageType::kRelease);
  check_round_trip(infer(0), MessageType::kAction);
  check_round_trip(infer(kBatchSizeMax), MessageType::kAction);
  check_round_trip(Outcome{.action = ActionId(1),
                           .type = ActionType::kLoad,
                           .device = DeviceId(2),
                           .model = ModelId(3),
                           .status = OutcomeStatus::kFailed,
                           .start = at(4),
                           .end = at(5),
                           .duration = ns(6),
                           .input_duration = ns(7),
                           .output_duration = ns(8),
                           .output_end = at(9),
                           .ready = at(4)},
                   MessageType::kOutcome);
  check_round_trip(Outcome{.action = ActionId(1), .failed_rows = RowSet(0x8000000000000005)}, MessageType::kOutcome);
  Outcome large{.action = ActionId(1), .failed_rows = RowSet(5)};
  large.failed_rows.set(kBatchSizeMax - 1);
  large.unfed_rows.set(64);
  large.conditions.set(kBatchSizeMax - 1, 9);
  check_round_trip(large, MessageType::kOutcome);
  check_round_trip(Outcome{.action = ActionId(1), .counts = {0, 3, 2.5f, 0, 16}}, MessageType::kOutcome);
  check_round_trip(Outcome{.action = ActionId(1), .unfed_rows = RowSet(6), .conditions = {0, 3, 0, 255}},
                   MessageType::kOutcome);
  check_round_trip(Visits{ActionId(1), {{0, visit_order()}, {7, {}}}}, MessageType::kVisits);
  check_round_trip(Discard{RequestId(1)}, MessageType::kDiscard);
  check_round_trip(Models{{model()}}, MessageType::kModels);
  check_round_trip(Pipelines{{{PipelineId(1), "animals", {"[[stage]]", "", "name = 'a'"}}, {{}, "birds", {}}}},
                   MessageType::kPipelines);
  check_round_trip(
      Tasks{{{ServedTaskId(1), "digits", {"[[variant]]", "model = 'a'"}, {"a = 0.5"}}, {{}, "letters", {}}}},
      MessageType::kTasks);
  check_round_trip(task_request(), MessageType::kRequest);
  check_round_trip(Request{.id = RequestId(1),
                           .model = ModelId(2),
                           .pipeline = PipelineId(12),
                           .bucket = BucketId(3),
                           .payload = PayloadHandle(4),
                           .input = {DeviceId(9), PayloadHandle(10)},
                           .consumers = 11,
                           .arrival = at(5),
                           .deadline = at(6),
                           .tenant = TenantId(7),
                           .tenant_weight = 8},
                   MessageType::kRequest);
  check_round_trip(Cancel{RequestId(1)}, MessageType::kCancel);
  check_round_trip(Unserved{{{"bert", "3", "model.onnx: not a model"}, {"resnet", "1", ""}}}, MessageType::kUnserved);
  check_round_trip(Label{RequestId(1), {"order-17", 200}}, MessageType::kLabel);
  check_round_trip(Label{RequestId(1), {"", 0, "", {1, uint64_t{1} << 63, 3}}}, MessageType::kLabel);
  check_round_trip(completion(), MessageType::kCompletion);
  check_round_trip(StatisticsRequest{}, MessageType::kStatisticsRequest);
  check_round_trip(Statistics{.elapsed = ns(1),
                              .devices = 2,
                              .requests = 3,
                              .served = 4,
                              .actions = 5,
                              .decisions = 6,
                              .decision = {.p50 = ns(7), .p99 = ns(8), .p999 = ns(9), .max = ns(10)},
                              .decision_processor = {.p50 = ns(11), .p99 = ns(12), .p999 = ns(13), .max = ns(14)},
                              .processor_time = ns(15),
                              .bytes_received = 16,
                              .bytes_sent = 17},
                   MessageType::kStatistics);
  check_round_trip(Leave{}, MessageType::kLeave);
  check_round_trip(Admission{7}, MessageType::kAdmission);
  check_round_trip(Workers{{{"one", "peer:1", {DeviceId(1), DeviceId(2)}}, {}}}, MessageType::kWorkers);
  const std::vector<std::byte> bytes(5, std::byte{1});
  const TensorBytes tensors{bytes, {}, bytes};
  check_round_trip(Attach{7, 8}, MessageType::kAttach);
  check_round_trip(Fetch{ActionId(1), RequestId(2), PayloadHandle(3)}, MessageType::kFetch);
  check_round_trip(Fetch{ActionId(1), RequestId(2), {}, 3, {0, 4}}, MessageType::kFetch);
  check_round_trip(Fetch{ActionId(1), RequestId(2), {}, 255, {0, 4}, {{0, 1}, {253, 254}}}, MessageType::kFetch);
  check_round_trip(Inputs{ActionId(1), RequestId(2), tensors, 3}, MessageType::kInputs);
  check_round_trip(Outputs{ActionId(1), RequestId(2), PayloadHandle(3), tensors}, MessageType::kOutputs);
  check_round_trip(Outputs{ActionId(1), RequestId(2), PayloadHandle(3), {}, {DeviceId(0), PayloadHandle(4)}, {}},
                   MessageType::kOutputs);
  check_round_trip(Outputs{ActionId(1), RequestId(2), PayloadHandle(3), {}, {}, "it is gone"}, MessageType::kOutputs);
  check_round_trip(Consumed{PayloadHandle(1), 2}, MessageType::kConsumed);
  check_round_trip(HomeOffer{"one", "one:1"}, MessageType::kHomeOffer);
  check_round_trip(Homes{3, {{"one", "one:1"}, {"two", "two:1"}}}, MessageType::kHomes);
  check_round_trip(HomeCall{.id = 1,
                            .epoch = 2,
                            .kind = HomeCallKind::kPull,
                            .changes = true,
                            .model = "films",
                            .user = 3,
                            .timeout = ns(4),
                            .digests = {{3, 1, 2, 9}},
                            .caller = "one",
                            .bytes = bytes},
                   MessageType::kHomeCall);
  check_round_trip(HomeReply{1, HomeOutcome::kBehind, {3, 4}, bytes}, MessageType::kHomeReply);
  check_round_trip(Leadership{9}, MessageType::kLeadership);
}

TEST(CodecTest, FieldsArriveWhereTheyLeft) {
  WireBytes bytes;
  encode(infer(2), bytes);
  Action action;
  ASSERT_TRUE(decode(frame_of(bytes), action).ok());
  EXPECT_EQ(action.device, DeviceId(2));
  EXPECT_TRUE(action.latest.is_infinite());
  EXPECT_EQ(action.rows[1].request, RequestId(101));
  EXPECT_EQ(action.rows[1].payload, PayloadHandle(201));
  EXPECT_FALSE(action.rows[0].input);
  EXPECT_EQ(action.rows[1].input, (PayloadReference{DeviceId(301), PayloadHandle(401)}));
  EXPECT_EQ(action.rows[1].consumers, 1);
  bytes.clear();
  encode(Models{{model()}}, bytes);
  Models models;
  ASSERT_TRUE(decode(frame_of(bytes), models).ok());
  EXPECT_EQ(models.models[0].buckets[1].dimensions.at("sequence"), 128);
  EXPECT_EQ(models.models[0].default_slo, ns(100));
  EXPECT_EQ(models.models[0].batch_delay, ns(5));
  EXPECT_EQ(models.models[0].inputs[0].dimension_names[0], "sequence");
  EXPECT_EQ(models.models[0].outputs[0].labels, (std::vector<std::string>{"bad", "good"}));
  EXPECT_FALSE(models.models[0].outputs[0].bound);
  EXPECT_EQ(models.models[0].outputs[1].bound, (RowBound{{4}, 100}));
  for (const std::optional<Duration> delay : {std::optional<Duration>(), std::optional(Duration())}) {
    ModelInfo other = model();
    other.batch_delay = delay;
    bytes.clear();
    encode(Models{{other}}, bytes);
    ASSERT_TRUE(decode(frame_of(bytes), models).ok());
    EXPECT_EQ(models.models[0].batch_delay, delay);
  }
  bytes.clear();
  encode(task_request(), bytes);
  Request request;
  ASSERT_TRUE(decode(frame_of(bytes), request).ok());
  EXPECT_EQ(request.task, ServedTaskId(3));
  EXPECT_EQ(request.requirements, task_request().requirements);
  EXPECT_EQ(request.call, RequestId(1));
  EXPECT_EQ(request.call_rows, 5u);
  bytes.clear();
  encode(Naming{ModelId(1), ModelId(2)}, bytes);
  Naming naming;
  ASSERT_TRUE(decode(frame_of(bytes), naming).ok());
  EXPECT_EQ(naming.model, ModelId(1));
  EXPECT_EQ(naming.name, ModelId(2));
}

template <typename Message>
bool accepted(const Message& message) {
  WireBytes bytes;
  encode(message, bytes);
  Message decoded;
  return decode(frame_of(bytes), decoded).ok();
}

TEST(CodecTest, RefusesBoundsThatDoNotFitTheirTensor) {
  const auto with = [](auto change) {
    Models models{{model()}};
    change(models.models[0].outputs[1]);
    return accepted(models);
  };
  EXPECT_TRUE(with([](TensorSpec&) {}));
  EXPECT_FALSE(with([](TensorSpec& tensor) { tensor.bound.reset(); }));
  EXPECT_FALSE(with([](TensorSpec& tensor) { tensor.bound->shape = {4, 4}; }));
  EXPECT_FALSE(with([](TensorSpec& tensor) { tensor.bound->shape = {-1}; }));
  EXPECT_FALSE(with([](TensorSpec& tensor) { tensor.bound->string_bytes = UINT64_MAX; }));
  EXPECT_FALSE(with([](TensorSpec& tensor) { tensor.type = DataType::kFloat32; }));
}

TEST(CodecTest, RefusesWhatIsOutOfRange) {
  EXPECT_FALSE(accepted(Outcome{.status = static_cast<OutcomeStatus>(200)}));
  EXPECT_FALSE(accepted(Outcome{.status = OutcomeStatus::kLost})) << "no worker says so";
  EXPECT_FALSE(accepted(Action{.type = static_cast<ActionType>(3)}));
  EXPECT_FALSE(accepted(Completion{.refusal = static_cast<Refusal>(99)}));
  EXPECT_FALSE(accepted(Request{.deadline = at(INT64_MAX - 1)}));
  EXPECT_TRUE(accepted(Request{.deadline = TimePoint::infinite_future()}));
  EXPECT_FALSE(accepted(Request{.tenant_weight = 0}));
  EXPECT_FALSE(accepted(Request{.tenant_weight = kTenantWeightMax + 1}));
  EXPECT_FALSE(accepted(Naming{ModelId(1), kUnnamed}));
  const std::vector<std::byte> tensor(1);
  EXPECT_FALSE(accepted(Outputs{{}, {}, {}, {tensor}, {DeviceId(1), PayloadHandle(2)}, {}}));
  EXPECT_TRUE(accepted(Visits{{}, {{0, {}}, {1, {}}}}));
  EXPECT_FALSE(accepted(Visits{{}, {{1, {}}, {1, {}}}}));
  VisitOrder order = visit_order();
  order.answers = {2, 0};
  EXPECT_FALSE(accepted(Visits{{}, {{0, order}}}));
  order = visit_order();
  order.conditions.resize(kConditionsMax + 1);
  EXPECT_FALSE(accepted(Visits{{}, {{0, order}}}));
  order = visit_order();
  order.inputs[1].pieces[0].slot = kSlotsMax;
  EXPECT_FALSE(accepted(Visits{{}, {{0, order}}}));
  order = visit_order();
  order.inputs[1].pieces_most = 1;
  EXPECT_FALSE(accepted(Visits{{}, {{0, order}}}));
  order = visit_order();
  order.inputs[1].taken = {5, 5};
  EXPECT_FALSE(accepted(Visits{{}, {{0, order}}}));
  EXPECT_FALSE(accepted(Fetch{.tensors = {0}, .taken = {{0, 0}}}));
  EXPECT_FALSE(accepted(Completion{.visits = {{kSlotsMax, {}, {}}}}));
  EXPECT_FALSE(accepted(Completion{.empty_stages = {kStagesMax}}));
  EXPECT_FALSE(accepted(Pipelines{{{{}, "b", {}}, {{}, "a", {}}}}));
  EXPECT_FALSE(accepted(Pipelines{{{{}, "", {}}}}));
  EXPECT_FALSE(accepted(Outcome{.status = OutcomeStatus::kFailed, .unfed_rows = RowSet(1)}));
  EXPECT_TRUE(accepted(Unserved{{{"a", "1", std::string(kReasonBytesMax, 'r')}}}));
  EXPECT_FALSE(accepted(Unserved{{{"a", "1", std::string(kReasonBytesMax + 1, 'r')}}}));
  EXPECT_FALSE(accepted(Unserved{{{"b", "1", "r"}, {"a", "1", "r"}}}));
  EXPECT_FALSE(accepted(Unserved{{{"a", "1", "r"}, {"a", "2", "r"}}}));
  EXPECT_TRUE(accepted(Label{RequestId(1), {std::string(kCallLabelBytesMax, 'a'), kCallLabelBytesMax}}));
  EXPECT_FALSE(accepted(Label{RequestId(1), {std::string(kCallLabelBytesMax + 1, 'a'), 100}}));
  EXPECT_FALSE(accepted(Label{RequestId(1), {"order-17", 7}}));
  EXPECT_FALSE(accepted(Label{RequestId(1), {"", 0}}));
  EXPECT_TRUE(accepted(Label{RequestId(1), {"", 0, "", {0, 1, 2}}}));
}

TEST(CodecTest, RefusesRequirementsThatCannotBe) {
  const auto accepted_with = [](auto change) {
    Request request = task_request();
    change(request);
    return accepted(request);
  };
  EXPECT_TRUE(accepted_with([](Request&) {}));
  for (const double accuracy : {-0.1, 1.1, std::nan("")}) {
    EXPECT_FALSE(accepted_with([&](Request& r) { r.requirements.accuracy = accuracy; })) << accuracy;
  }
  EXPECT_FALSE(accepted_with([](Request& r) { r.requirements.cost_nanodollars_most = -1; }));
  EXPECT_FALSE(accepted_with([](Request& r) { r.call_rows = 0; }));
  EXPECT_FALSE(accepted_with([](Request& r) { r.pipeline = PipelineId(1); }));
  EXPECT_FALSE(accepted(Tasks{{{{}, "b", {}}, {{}, "a", {}}}}));
  EXPECT_FALSE(accepted(Tasks{{{{}, "", {}}}}));
  const std::vector<std::string> lines(kDefinitionLinesMax + 1);
  EXPECT_FALSE(accepted(Tasks{{{{}, "a", lines}}}));
  EXPECT_FALSE(accepted(Tasks{{{{}, "a", {}, lines}}}));
}

TEST(CodecTest, WhatAWorkerBringsHasIdsOfItsOwn) {
  const auto accepted_with = [](std::vector<ModelInfo> models) {
    return accepted(Registration{"one", "cpu:4", "", {3}, {1}, {1}, std::move(models), {{}}});
  };
  EXPECT_TRUE(accepted_with({model(2), model(9), model(1)})) << "of one name";
  EXPECT_FALSE(accepted_with({model(2), model(9), model(2)}));
}

TEST(CodecTest, RefusesResidentsThatCannotBe) {
  const auto accepted_with = [](std::vector<std::vector<uint32_t>> residents) {
    return accepted(Registration{"one", "cpu:4", "", {3}, {1}, {1}, {model(), model(8)}, std::move(residents)});
  };
  EXPECT_TRUE(accepted_with({{}}));
  EXPECT_TRUE(accepted_with({{0, 1}}));
  EXPECT_FALSE(accepted_with({}));
  EXPECT_FALSE(accepted_with({{0}, {1}}));
  EXPECT_FALSE(accepted_with({{1, 0}}));
  EXPECT_FALSE(accepted_with({{0, 0}}));
  EXPECT_FALSE(accepted_with({{2}}));
}

TEST(CodecTest, RefusesLanesThatCannotBe) {
  const auto accepted_with = [](std::vector<uint32_t> lane_counts) {
    return accepted(Registration{"one", "cpu:4", "", {3}, std::move(lane_counts), {1}, {model()}, {{}}});
  };
  EXPECT_TRUE(accepted_with({1}));
  EXPECT_TRUE(accepted_with({kLanesMax}));
  EXPECT_FALSE(accepted_with({0}));
  EXPECT_FALSE(accepted_with({kLanesMax + 1}));
  EXPECT_FALSE(accepted_with({}));
  EXPECT_FALSE(accepted_with({1, 1}));
}

TEST(CodecTest, RefusesContextsThatCannotBe) {
  const auto accepted_with = [](std::vector<uint32_t> context_counts) {
    return accepted(Registration{"one", "cpu:4", "", {3}, {1}, std::move(context_counts), {model()}, {{}}});
  };
  EXPECT_TRUE(accepted_with({1}));
  EXPECT_TRUE(accepted_with({kContextsMax}));
  EXPECT_FALSE(accepted_with({0}));
  EXPECT_FALSE(accepted_with({kContextsMax + 1}));
  EXPECT_FALSE(accepted_with({}));
  EXPECT_FALSE(accepted_with({1, 1}));
}

// A tensor of more bytes than the frame has.
TEST(CodecTest, ATensorLiesInItsFrame) {
  WireBytes bytes;
  WireWriter writer(bytes);
  for (int i = 0; i < 2; ++i) writer.put(uint64_t{1});
  writer.put(uint32_t{1});
  writer.put(uint64_t{2});
  writer.put(uint8_t{0});
  Inputs inputs;
  EXPECT_FALSE(decode({MessageType::kInputs, bytes}, inputs).ok());
}

TEST(CodecTest, RefusesAModelThatCannotBe) {
  const auto accepted_with = [](auto change) {
    ModelInfo changed = model();
    change(changed);
    EXPECT_EQ(accepted(Offer{changed}), accepted(Models{{changed}}));
    return accepted(Models{{changed}});
  };
  EXPECT_TRUE(accepted_with([](ModelInfo&) {}));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.name.clear(); }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].batch_sizes = {1, 8, 2}; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].batch_sizes = {1, 2, kBatchSizeMax + 1}; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.buckets.clear(); }));
  EXPECT_TRUE(accepted_with([](ModelInfo& m) { m.runnables[0].operator_ends = {0, 0.5, 1}; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].operator_ends = {0.6, 0.5, 1}; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].operator_ends = {0.5}; }));
  EXPECT_TRUE(accepted_with([](ModelInfo& m) { m.runnables[0].operator_ends.assign(kOperatorEndsMax, 1); }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].operator_ends.assign(kOperatorEndsMax + 1, 1); }));
  const auto with_buckets = [&](size_t count) {
    return accepted_with([&](ModelInfo& m) {
      m.buckets.resize(count);
      for (Runnable& runnable : m.runnables) runnable.seed_exec.resize(count, runnable.seed_exec[0]);
    });
  };
  EXPECT_TRUE(with_buckets(65535));
  EXPECT_FALSE(with_buckets(65536));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].seed_exec[1].pop_back(); }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[1].pages = 0; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.weight = 0; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.batch_delay = Duration::nanoseconds(-2); }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables.clear(); }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].kind = "two words"; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[0].kind = "cuda"; }));
  EXPECT_FALSE(accepted_with([](ModelInfo& m) { m.runnables[1].seed_exec.pop_back(); }));
}

// Four billion models in nine bytes.
TEST(CodecTest, ANumberThatWasMadeUpReservesNothing) {
  WireBytes bytes;
  WireWriter(bytes).put(UINT32_MAX);
  Models models;
  EXPECT_FALSE(decode({MessageType::kModels, bytes}, models).ok());
  EXPECT_TRUE(models.models.empty());
}

}  // namespace
}  // namespace foliot
