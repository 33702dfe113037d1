// The fields of each message, in their order on the wire, once for both directions:
// fields(wire, message) is called with a FieldWriter, or with a FieldReader and a message
// to fill, after which sound(message) says whether its fields go together.
//
// Lists are limited by what there is to read, so memory is bounded by a frame's size.
#ifndef FOLIOT_CLUSTER_TRANSPORT_MESSAGE_FIELDS_H_
#define FOLIOT_CLUSTER_TRANSPORT_MESSAGE_FIELDS_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cluster/transport/message.h"
#include "cluster/transport/wire.h"
#include "foundation/core/action.h"
#include "foundation/core/bounded_row.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"

namespace foliot {

// A message as `Wire` takes it: a reader changes it.
template <typename Wire, typename Message>
using Carried = std::conditional_t<Wire::kReads, Message, const Message>;

// ---- What an enumeration, or an element of a list, is limited by ----

template <typename Enumeration>
inline constexpr Enumeration kLastOf = Enumeration();
template <>
inline constexpr ActionType kLastOf<ActionType> = ActionType::kInfer;
template <>
inline constexpr OutcomeStatus kLastOf<OutcomeStatus> = kOutcomeStatusLast;
template <>
inline constexpr Refusal kLastOf<Refusal> = kRefusalLast;
template <>
inline constexpr StageCondition::Value kLastOf<StageCondition::Value> = StageCondition::Value::kArgmax;
template <>
inline constexpr StageCondition::Comparison kLastOf<StageCondition::Comparison> = StageCondition::Comparison::kNotEqual;
template <>
inline constexpr DataType kLastOf<DataType> = kDataTypeLast;
template <>
inline constexpr HomeCallKind kLastOf<HomeCallKind> = HomeCallKind::kExport;
template <>
inline constexpr HomeOutcome kLastOf<HomeOutcome> = HomeOutcome::kFailed;

// The bytes that one takes at least.
template <typename Element>
inline constexpr size_t kBytesMin = sizeof(Element);
template <>
inline constexpr size_t kBytesMin<std::string> = sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<std::vector<uint32_t>> = sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<std::span<const std::byte>> = sizeof(uint64_t);
template <>
inline constexpr size_t kBytesMin<TensorSpec> = 3 * sizeof(uint32_t) + 2;
template <>
inline constexpr size_t kBytesMin<Bucket> = sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<Runnable> = 5 * sizeof(uint32_t) + sizeof(int64_t);
template <>
inline constexpr size_t kBytesMin<std::vector<Duration>> = sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<ModelInfo> = 64;
template <>
inline constexpr size_t kBytesMin<Workers::Worker> = 3 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<Unserved::Model> = 3 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<Pipelines::Pipeline> = 3 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<Tasks::Task> = 4 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<HomeOffer> = 2 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<VisitOrder::Piece> = 2 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<VisitOrder::Input> = 5 * sizeof(uint32_t);
template <>
inline constexpr size_t kBytesMin<StageCondition> = 2 * sizeof(uint64_t) + sizeof(uint32_t) + 2;
template <>
inline constexpr size_t kBytesMin<Visits::Visit> = 5 * sizeof(uint32_t) + 1;
template <>
inline constexpr size_t kBytesMin<Completion::VisitAnswer> = 2 * sizeof(uint32_t) + sizeof(uint64_t);
template <>
inline constexpr size_t kBytesMin<BatchRows::Row> = 2 * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint16_t);

// ---- The two directions ----

inline constexpr uint32_t kRowsOfWord = 64;  // of a RowSet
inline constexpr double kSharesOfOne = std::numeric_limits<uint16_t>::max();

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  // Appends to `bytes`, which outlives it.
  explicit FieldWriter(WireBytes& bytes) : wire_(bytes) {}

  template <typename... Field>
  void operator()(const Field&... each) {
    (put(each), ...);
  }

 private:
  template <typename Field>
  void put(const Field& field) {
    if constexpr (requires { wire_.put(field); }) {
      wire_.put(field);
    } else {
      fields(*this, field);
    }
  }
  template <typename Element>
  void put(const std::vector<Element>& list) {
    put_all(list);
  }
  void put(const BatchRows& rows) { put_all(rows); }
  template <typename Number>
  void put(const RowNumbers<Number>& numbers) {
    put_all(numbers);
  }
  // In words of 64, the first rows in the first, up to the last that has any.
  void put(const RowSet& rows) {
    std::vector<uint64_t> words;
    for (RowSet left = rows; left.any(); left >>= kRowsOfWord) {
      words.push_back((left & RowSet(std::numeric_limits<uint64_t>::max())).to_ullong());
    }
    put_all(words);
  }
  void put(const std::map<std::string, int64_t>& extents) {
    put(static_cast<uint32_t>(extents.size()));
    for (const auto& [name, extent] : extents) (*this)(name, extent);
  }
  // The holder's id and one; zero: none, and no handle follows.
  void put(const PayloadReference& reference) {
    put(reference ? reference.holder->value() + 1 : 0);
    if (reference) put(reference.handle);
  }
  // Shares of something, each as so many of kSharesOfOne.
  void put(const std::vector<double>& shares) {
    put(static_cast<uint32_t>(shares.size()));
    for (const double share : shares) put(static_cast<uint16_t>(std::lround(share * kSharesOfOne)));
  }
  // Zero: none.
  void put(const std::optional<Duration>& duration) { put(duration.value_or(Duration())); }
  // Whether there is one; then the bound.
  void put(const std::optional<RowBound>& bound) {
    put(bound.has_value());
    if (bound) put(*bound);
  }

  template <typename List>
  void put_all(const List& list) {
    put(static_cast<uint32_t>(list.size()));
    for (const auto& element : list) put(element);
  }

  WireWriter wire_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(std::span<const std::byte> bytes) : wire_(bytes) {}

  template <typename... Field>
  void operator()(Field&... each) {
    (get(each), ...);
  }
  bool failed() const { return wire_.failed(); }
  // Everything was there and in its range, and nothing is left.
  bool complete() const { return wire_.complete(); }
  size_t left() const { return wire_.left(); }

 private:
  template <typename Field>
  void get(Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      wire_.get(field, kLastOf<Field>);
    } else if constexpr (requires { wire_.get(field); }) {
      wire_.get(field);
    } else {
      fields(*this, field);
      if (!failed() && !sound(field)) wire_.fail();
    }
  }
  template <typename Element>
  void get(std::vector<Element>& list) {
    list.resize(wire_.get_count(kBytesMin<Element>));
    for (Element& element : list) get(element);
  }
  void get(BatchRows& rows) {
    uint32_t count = wire_.get_count(kBytesMin<BatchRows::Row>);
    if (count > kBatchSizeMax) wire_.fail();
    rows = BatchRows();
    for (; count > 0 && !failed(); --count) {
      BatchRows::Row row;
      get(row);
      rows.add(row);
    }
  }
  template <typename Number>
  void get(RowNumbers<Number>& numbers) {
    const uint32_t count = wire_.get_count(sizeof(Number));
    if (count > kBatchSizeMax) wire_.fail();
    numbers.clear();
    for (uint32_t row = 0; row < count && !failed(); ++row) {
      Number number = 0;
      get(number);
      numbers.set(row, number);
    }
  }
  void get(RowSet& rows) {
    const uint32_t count = wire_.get_count(sizeof(uint64_t));
    if (count > kBatchSizeMax / kRowsOfWord) wire_.fail();
    rows.reset();
    for (uint32_t i = 0; i < count && !failed(); ++i) {
      uint64_t word = 0;
      get(word);
      rows |= RowSet(word) << (i * kRowsOfWord);
    }
  }
  void get(std::map<std::string, int64_t>& extents) {
    uint32_t count = wire_.get_count(kBytesMin<std::string> + sizeof(int64_t));
    extents.clear();
    for (; count > 0 && !failed(); --count) {
      std::string name;
      get(name);
      get(extents[name]);
    }
  }
  void get(PayloadReference& reference) {
    uint32_t holder = 0;
    get(holder);
    reference = {};
    if (holder == 0) return;
    reference.holder = DeviceId(holder - 1);
    get(reference.handle);
  }
  void get(std::vector<double>& shares) {
    shares.resize(wire_.get_count(sizeof(uint16_t)));
    for (double& share : shares) {
      uint16_t of_one = 0;
      get(of_one);
      share = of_one / kSharesOfOne;
    }
  }
  void get(std::optional<Duration>& duration) {
    Duration given;
    get(given);
    duration = given > Duration() ? std::optional(given) : std::nullopt;
  }
  void get(std::optional<RowBound>& bound) {
    bool given = false;
    get(given);
    bound.reset();
    if (given) get(bound.emplace());
  }

  WireReader wire_;
};

template <typename Message>
bool sound(const Message& /*message*/) {
  return true;
}

// ---- Models ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, RowBound>& bound) {
  wire(bound.shape, bound.string_bytes);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, TensorSpec>& tensor) {
  wire(tensor.name, tensor.type, tensor.shape, tensor.dimension_names, tensor.labels, tensor.bound);
}

inline bool sound(const TensorSpec& tensor) {
  constexpr size_t kDimensionsMax = 64;
  return tensor.shape.size() <= kDimensionsMax && tensor.dimension_names.size() <= kDimensionsMax &&
         check_labels(tensor.labels).ok() && check_bound(tensor).ok();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Bucket>& bucket) {
  wire(bucket.dimensions);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Runnable>& runnable) {
  wire(runnable.kind, runnable.batch_sizes, runnable.pages, runnable.seed_load, runnable.seed_exec,
       runnable.operator_ends);
}

// -1 ns: nullopt.
template <typename Wire>
void batch_delay_field(Wire& wire, Carried<Wire, std::optional<Duration>>& delay) {
  constexpr Duration kNone = Duration::nanoseconds(-1);
  Duration carried = delay.value_or(kNone);
  wire(carried);
  if constexpr (Wire::kReads) delay = carried == kNone ? std::nullopt : std::optional(carried);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, ModelInfo>& model) {
  wire(model.id, model.name, model.version, model.content, model.batching, model.inputs, model.outputs, model.buckets,
       model.runnables, model.default_slo, model.weight);
  batch_delay_field(wire, model.batch_delay);
  wire(model.cache, model.from_framework);
}

// What the rest of the program takes for granted.
inline bool sound(const Runnable& runnable) {
  constexpr size_t kBatchSizesMax = 256;
  const auto& sizes = runnable.batch_sizes;
  if (!is_kind_name(runnable.kind) || sizes.empty() || sizes.size() > kBatchSizesMax) return false;
  if (sizes.front() == 0 || sizes.back() > kBatchSizeMax || runnable.pages == 0) return false;
  if (std::ranges::adjacent_find(sizes, std::greater_equal<>()) != sizes.end()) return false;
  const auto& ends = runnable.operator_ends;
  if (ends.size() > kOperatorEndsMax || !std::ranges::is_sorted(ends) || (!ends.empty() && ends.back() != 1))
    return false;
  return runnable.seed_load >= Duration() && std::ranges::all_of(runnable.seed_exec, [&](const auto& seeds) {
           return seeds.size() == sizes.size() &&
                  std::ranges::all_of(seeds, [](Duration exec) { return exec >= Duration(); });
         });
}

inline bool sound(const ModelInfo& model) {
  constexpr size_t kBucketsMax = std::numeric_limits<uint16_t>::max();  // a BucketId counts them
  if (model.name.empty() || !(model.weight > 0) || model.batch_delay.value_or(Duration()) < Duration()) return false;
  if (model.buckets.empty() || model.buckets.size() > kBucketsMax) return false;
  if (model.runnables.empty() || model.runnables.size() > kKindsMax) return false;
  return std::ranges::all_of(model.runnables, [&](const Runnable& runnable) {
    return runnable.seed_exec.size() == model.buckets.size() && model.find(runnable.kind) == &runnable;
  });
}

// ---- All links ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Goodbye>& message) {
  wire(message.reason);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Ping>& message) {
  wire(message.sent);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Pong>& message) {
  wire(message.ping_sent, message.server_time);
}

// ---- Action link ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Registration>& message) {
  wire(message.worker, message.kind, message.data_address, message.page_counts, message.lane_counts,
       message.context_counts, message.models, message.residents, message.held_bytes, message.held_payloads);
}

// Models have names of their own, and each device's residents are positions in the list of
// models, ascending.
inline bool sound(const Registration& message) {
  std::vector<ModelId> ids;
  ids.reserve(message.models.size());
  for (const ModelInfo& model : message.models) ids.push_back(model.id);
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end() && is_kind_name(message.kind) &&
         message.residents.size() == message.page_counts.size() &&
         message.lane_counts.size() == message.page_counts.size() &&
         std::ranges::all_of(message.lane_counts, [](uint32_t count) { return count >= 1 && count <= kLanesMax; }) &&
         message.context_counts.size() == message.page_counts.size() &&
         std::ranges::all_of(message.context_counts,
                             [](uint32_t count) { return count >= 1 && count <= kContextsMax; }) &&
         std::ranges::all_of(message.residents, [&](const std::vector<uint32_t>& models) {
           return std::ranges::adjacent_find(models, std::greater_equal<>()) == models.end() &&
                  (models.empty() || models.back() < message.models.size());
         });
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Welcome>& message) {
  wire(message.devices, message.models);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Offer>& message) {
  wire(message.model);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Withdrawal>& message) {
  wire(message.model);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Naming>& message) {
  wire(message.model, message.name);
}

inline bool sound(const Naming& message) { return message.name != kUnnamed; }

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Release>& message) {
  wire(message.model);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, BatchRows::Row>& row) {
  wire(row.request, row.payload, row.input, row.consumers);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, LaneInterval>& lanes) {
  wire(lanes.first, lanes.count);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, OperatorRange>& range) {
  wire(range.first, range.last);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Action>& message) {
  wire(message.id, message.type, message.device, message.model, message.earliest, message.latest, message.expected,
       message.bucket, message.batch_size, message.lanes, message.range, message.context, message.rows);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Outcome>& message) {
  wire(message.action, message.type, message.device, message.model, message.status, message.start, message.end,
       message.duration, message.input_duration, message.output_duration, message.output_end, message.ready,
       message.failed_rows, message.unfed_rows, message.conditions, message.counts);
}

inline bool sound(const Outcome& message) {
  return message.status != OutcomeStatus::kLost &&
         (message.done() || (message.failed_rows.none() && message.unfed_rows.none()));
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, TensorPart>& part) {
  wire(part.index, part.of);
}

inline bool sound(const TensorPart& part) { return part.index < part.of && part.of <= kSlotsMax; }

// One more than the position; zero: none.
template <typename Wire>
void position_field(Wire& wire, Carried<Wire, std::optional<uint32_t>>& position) {
  uint32_t number = position ? *position + 1 : 0;
  wire(number);
  if constexpr (Wire::kReads) position = number == 0 ? std::nullopt : std::optional(number - 1);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, VisitOrder::Piece>& piece) {
  position_field(wire, piece.slot);  // none: the call's
  wire(piece.holder);
}

inline bool sound(const VisitOrder::Piece& piece) { return piece.slot.value_or(0) < kSlotsMax; }

template <typename Wire>
void fields(Wire& wire, Carried<Wire, VisitOrder::Input>& input) {
  wire(input.tensor, input.taken, input.pieces, input.pieces_most);
}

inline bool sound(const VisitOrder::Input& input) {
  return input.pieces_most > 0 && input.pieces_most <= kSlotsMax && input.pieces.size() <= input.pieces_most;
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, StageCondition>& condition) {
  wire(condition.output, condition.value, condition.element, condition.comparison, condition.limit);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, VisitOrder>& order) {
  wire(order.inputs, order.conditions, order.answers, order.held);
  position_field(wire, order.count);  // none: nothing is counted
}

inline bool sound(const VisitOrder& order) {
  return order.conditions.size() <= kConditionsMax &&
         std::ranges::adjacent_find(order.answers, std::greater_equal<>()) == order.answers.end();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Visits::Visit>& visit) {
  wire(visit.row, visit.order);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Visits>& message) {
  wire(message.action, message.visits);
}

inline bool sound(const Visits& message) {
  return message.visits.size() <= kBatchSizeMax &&
         std::ranges::adjacent_find(message.visits, std::greater_equal<>(), &Visits::Visit::row) ==
             message.visits.end();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Discard>& message) {
  wire(message.visit);
}

template <typename Wire>
void fields(Wire& /*wire*/, Carried<Wire, Leave>& /*empty*/) {}

// ---- Request link ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Admission>& message) {
  wire(message.client);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Models>& message) {
  wire(message.models);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Pipelines::Pipeline>& pipeline) {
  wire(pipeline.id, pipeline.name, pipeline.lines);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Pipelines>& message) {
  wire(message.pipelines);
}

// By name, each once.
template <typename Definition>
bool sound_definitions(const std::vector<Definition>& list) {
  return list.size() <= kDefinitionsMax &&
         std::ranges::adjacent_find(list, std::greater_equal<>(), &Definition::name) == list.end() &&
         std::ranges::all_of(list, [](const Definition& definition) {
           return !definition.name.empty() && definition.lines.size() <= kDefinitionLinesMax;
         });
}

inline bool sound(const Pipelines& message) { return sound_definitions(message.pipelines); }

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Tasks::Task>& task) {
  wire(task.id, task.name, task.lines, task.accuracies);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Tasks>& message) {
  wire(message.tasks);
}

inline bool sound(const Tasks& message) {
  return sound_definitions(message.tasks) && std::ranges::all_of(message.tasks, [](const Tasks::Task& task) {
           return task.accuracies.size() <= kDefinitionLinesMax;
         });
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Unserved::Model>& model) {
  wire(model.name, model.version, model.reason);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Unserved>& message) {
  wire(message.models);
}

inline bool sound(const Unserved& message) {
  return message.models.size() <= kUnservedMax &&
         std::ranges::adjacent_find(message.models, std::greater_equal<>(), &Unserved::Model::name) ==
             message.models.end() &&
         std::ranges::all_of(message.models,
                             [](const Unserved::Model& model) { return model.reason.size() <= kReasonBytesMax; });
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Workers::Worker>& worker) {
  wire(worker.name, worker.data_address, worker.devices);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Workers>& message) {
  wire(message.workers);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Request>& message) {
  wire(message.id, message.model, message.pipeline, message.task, message.bucket, message.payload, message.input,
       message.consumers, message.arrival, message.deadline, message.reserve, message.tenant, message.tenant_weight,
       message.offline, message.optional);
  if (message.task == ServedTaskId()) return;
  wire(message.requirements.accuracy, message.requirements.cost_nanodollars_most, message.call, message.call_rows);
}

inline bool sound_task(const Request& message) {
  const TaskRequirements& asked = message.requirements;
  return (message.task == ServedTaskId() || message.pipeline == PipelineId()) && asked.accuracy >= 0 &&
         asked.accuracy <= 1 && asked.cost_nanodollars_most >= 0 && message.call_rows > 0;
}

inline bool sound(const Request& message) {
  return message.tenant_weight > 0 && message.tenant_weight <= kTenantWeightMax &&
         (!message.offline || message.deadline.is_infinite()) && sound_task(message);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, CallLabel>& label) {
  wire(label.text, label.bytes, label.trace.trace_high, label.trace.trace_low, label.trace.span);
}

inline bool sound(const CallLabel& label) {
  return label.travels() && label.text.size() <= kCallLabelBytesMax && label.bytes >= label.text.size();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Label>& message) {
  wire(message.request, message.label);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Cancel>& message) {
  wire(message.request, message.reason);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Completion::VisitAnswer>& answer) {
  wire(answer.slot, answer.action, answer.device);
}

inline bool sound(const Completion::VisitAnswer& answer) { return answer.slot < kSlotsMax; }

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Completion>& message) {
  wire(message.id, message.model, message.pipeline, message.task, message.payload, message.refusal, message.detail,
       message.arrival, message.deadline, message.finished, message.earliest_completion, message.batch_size,
       message.cold_start, message.exec_start, message.input_duration, message.exec_duration, message.output_duration,
       message.action, message.device, message.visits, message.empty_stages);
}

inline bool sound(const Completion& message) {
  return std::ranges::all_of(message.empty_stages, [](uint32_t stage) { return stage < kStagesMax; });
}

template <typename Wire>
void fields(Wire& /*wire*/, Carried<Wire, StatisticsRequest>& /*empty*/) {}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Quantiles>& quantiles) {
  wire(quantiles.p50, quantiles.p99, quantiles.p999, quantiles.max);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Statistics>& message) {
  wire(message.elapsed, message.devices, message.requests, message.served, message.actions, message.decisions,
       message.decision, message.decision_processor, message.processor_time, message.bytes_received,
       message.bytes_sent);
}

// ---- Data link ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Attach>& message) {
  wire(message.client, message.epoch);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Fetch>& message) {
  wire(message.action, message.request, message.payload, message.source, message.tensors, message.taken);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Inputs>& message) {
  wire(message.action, message.request, message.tensors, message.source);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Outputs>& message) {
  wire(message.action, message.request, message.payload, message.tensors, message.held, message.detail);
}

inline bool sound(const Outputs& message) { return message.tensors.empty() || !message.held; }

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Consumed>& message) {
  wire(message.payload, message.consumers);
}

// ---- Home link ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, HomeOffer>& message) {
  wire(message.name, message.address);
}

inline bool sound(const HomeOffer& message) {
  return !message.name.empty() && message.name.size() <= kHomeNameBytesMax && !message.address.empty();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Homes>& message) {
  wire(message.epoch, message.homes);
}

inline bool sound(const Homes& message) {
  return message.homes.size() <= kHomesMax &&
         std::ranges::adjacent_find(message.homes, std::greater_equal<>(), &HomeOffer::name) == message.homes.end();
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, UserDigest>& digest) {
  wire(digest.user, digest.generation, digest.observations, digest.hash);
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, HomeCall>& message) {
  wire(message.id, message.epoch, message.kind, message.changes, message.model, message.user, message.timeout,
       message.digests, message.caller, message.bytes);
}

inline bool sound(const HomeCall& message) {
  return message.kind != HomeCallKind::kPull || message.digests.size() == 1;
}

template <typename Wire>
void fields(Wire& wire, Carried<Wire, HomeReply>& message) {
  wire(message.id, message.outcome, message.users, message.bytes);
}

// ---- Election ----

template <typename Wire>
void fields(Wire& wire, Carried<Wire, Leadership>& message) {
  wire(message.epoch);
}

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_MESSAGE_FIELDS_H_
