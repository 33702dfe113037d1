#include "transport/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace foliot {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kController: return "controller";
    case Role::kWorker: return "worker";
    case Role::kClient: return "client";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(MessageType type) {
  switch (type) {
    case MessageType::kGoodbye: return "GOODBYE";
    case MessageType::kPing: return "PING";
    case MessageType::kPong: return "PONG";
    case MessageType::kRegistration: return "REGISTRATION";
    case MessageType::kWelcome: return "WELCOME";
    case MessageType::kAction: return "ACTION";
    case MessageType::kOutcome: return "OUTCOME";
    case MessageType::kModels: return "MODELS";
    case MessageType::kRequest: return "REQUEST";
    case MessageType::kCancel: return "CANCEL";
    case MessageType::kCompletion: return "COMPLETION";
    case MessageType::kStatisticsRequest: return "STATISTICS_REQUEST";
    case MessageType::kStatistics: return "STATISTICS";
    case MessageType::kLeave: return "LEAVE";
    case MessageType::kAdmission: return "ADMISSION";
    case MessageType::kWorkers: return "WORKERS";
    case MessageType::kAttach: return "ATTACH";
    case MessageType::kFetch: return "FETCH";
    case MessageType::kInputs: return "INPUTS";
    case MessageType::kOutputs: return "OUTPUTS";
    case MessageType::kOffer: return "OFFER";
    case MessageType::kWithdrawal: return "WITHDRAWAL";
    case MessageType::kNaming: return "NAMING";
    case MessageType::kRelease: return "RELEASE";
  }
  FOLIOT_CHECK(false);
}

namespace {

constexpr uint32_t kBatchSizesMax = 256;
constexpr size_t kBucketsMax = std::numeric_limits<uint16_t>::max();  // a BucketId counts them
constexpr uint32_t kDimensionsMax = 64;

// Puts the frame's length and type before what is written while it lives.
class FrameWriter : public WireWriter {
 public:
  FrameWriter(MessageType type, WireBytes& bytes) : WireWriter(bytes), frame_(bytes), begin_(bytes.size()) {
    put(uint32_t{0});
    put(type);
  }
  ~FrameWriter() {
    const auto length = static_cast<uint32_t>(frame_.size() - begin_ - kFrameLengthBytes);
    std::memcpy(frame_.data() + begin_, &length, sizeof(length));
  }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

 private:
  WireBytes& frame_;
  size_t begin_;
};

Status finish(const Frame& frame, const WireReader& reader) {
  if (reader.complete()) return Status();
  return Status::invalid_argument(fmt::format(
      "malformed {} of {} bytes: {}", to_string(frame.type), frame.body.size(),
      reader.failed() ? "a field is missing or out of range" : fmt::format("{} bytes too many", reader.left())));
}

void put(WireWriter& writer, const Quantiles& quantiles) {
  writer.put(quantiles.p50);
  writer.put(quantiles.p99);
  writer.put(quantiles.p999);
  writer.put(quantiles.max);
}

void get(WireReader& reader, Quantiles& quantiles) {
  reader.get(quantiles.p50);
  reader.get(quantiles.p99);
  reader.get(quantiles.p999);
  reader.get(quantiles.max);
}

// ---- Lists ----

template <typename T, typename Put>
void put_list(WireWriter& writer, const std::vector<T>& list, Put put) {
  writer.put(static_cast<uint32_t>(list.size()));
  for (const T& element : list) put(element);
}

template <typename T>
void put_list(WireWriter& writer, const std::vector<T>& list) {
  put_list(writer, list, [&](const T& element) { writer.put(element); });
}

// `get` reads one element; each takes at least `bytes_each`.
template <typename T, typename Get>
void get_list(WireReader& reader, std::vector<T>& list, size_t bytes_each, Get get) {
  list.resize(reader.get_count(bytes_each));
  for (T& element : list) get(element);
}

template <typename T>
void get_list(WireReader& reader, std::vector<T>& list, size_t bytes_each) {
  get_list(reader, list, bytes_each, [&](T& element) { reader.get(element); });
}

// ---- Models ----

void put(WireWriter& writer, const TensorSpec& tensor) {
  writer.put(std::string_view(tensor.name));
  writer.put(tensor.type);
  put_list(writer, tensor.shape);
  put_list(writer, tensor.dimension_names, [&](const std::string& name) { writer.put(std::string_view(name)); });
}

void get(WireReader& reader, TensorSpec& tensor) {
  reader.get(tensor.name);
  reader.get(tensor.type, DataType::kFloat64);
  get_list(reader, tensor.shape, sizeof(int64_t));
  get_list(reader, tensor.dimension_names, sizeof(uint32_t));
  if (tensor.shape.size() > kDimensionsMax || tensor.dimension_names.size() > kDimensionsMax) reader.fail();
}

void put(WireWriter& writer, const Bucket& bucket) {
  writer.put(static_cast<uint32_t>(bucket.dimensions.size()));
  for (const auto& [name, extent] : bucket.dimensions) {
    writer.put(std::string_view(name));
    writer.put(extent);
  }
  put_list(writer, bucket.seed_exec);
}

void get(WireReader& reader, Bucket& bucket) {
  const uint32_t dimensions = reader.get_count(sizeof(uint32_t) + sizeof(int64_t));
  for (uint32_t i = 0; i < dimensions && !reader.failed(); ++i) {
    std::string name;
    reader.get(name);
    reader.get(bucket.dimensions[name]);
  }
  get_list(reader, bucket.seed_exec, sizeof(int64_t));
}

void put(WireWriter& writer, const ModelInfo& model) {
  writer.put(model.id);
  writer.put(std::string_view(model.name));
  writer.put(std::string_view(model.version));
  writer.put(std::string_view(model.content));
  put_list(writer, model.batch_sizes);
  writer.put(static_cast<uint8_t>(model.batching));
  put_list(writer, model.inputs, [&](const TensorSpec& tensor) { put(writer, tensor); });
  put_list(writer, model.outputs, [&](const TensorSpec& tensor) { put(writer, tensor); });
  put_list(writer, model.buckets, [&](const Bucket& bucket) { put(writer, bucket); });
  writer.put(model.pages);
  writer.put(model.seed_load);
  writer.put(model.default_slo.value_or(Duration()));
  writer.put(model.weight);
}

// What the rest of the program takes for granted of a ModelInfo.
bool sound(const ModelInfo& model) {
  const auto& sizes = model.batch_sizes;
  if (model.name.empty() || sizes.empty() || sizes.size() > kBatchSizesMax) return false;
  if (model.buckets.empty() || model.buckets.size() > kBucketsMax) return false;
  if (sizes.front() == 0 || sizes.back() > kBatchSizeMax || model.pages == 0 || !(model.weight > 0)) return false;
  if (std::ranges::adjacent_find(sizes, std::greater_equal<>()) != sizes.end()) return false;
  return model.seed_load >= Duration() && std::ranges::all_of(model.buckets, [&](const Bucket& bucket) {
           return bucket.seed_exec.size() == sizes.size() &&
                  std::ranges::all_of(bucket.seed_exec, [](Duration exec) { return exec >= Duration(); });
         });
}

void get(WireReader& reader, ModelInfo& model) {
  constexpr size_t kTensorBytesMin = 3 * sizeof(uint32_t) + 1;
  constexpr size_t kBucketBytesMin = 2 * sizeof(uint32_t);
  Duration default_slo;
  reader.get(model.id);
  reader.get(model.name);
  reader.get(model.version);
  reader.get(model.content);
  get_list(reader, model.batch_sizes, sizeof(uint32_t));
  reader.get(model.batching);
  get_list(reader, model.inputs, kTensorBytesMin, [&](TensorSpec& tensor) { get(reader, tensor); });
  get_list(reader, model.outputs, kTensorBytesMin, [&](TensorSpec& tensor) { get(reader, tensor); });
  get_list(reader, model.buckets, kBucketBytesMin, [&](Bucket& bucket) { get(reader, bucket); });
  reader.get(model.pages);
  reader.get(model.seed_load);
  reader.get(default_slo);
  reader.get(model.weight);
  if (default_slo > Duration()) model.default_slo = default_slo;
  if (!reader.failed() && !sound(model)) reader.fail();
}

constexpr size_t kModelBytesMin = 64;

void put(WireWriter& writer, const std::vector<ModelInfo>& models) {
  put_list(writer, models, [&](const ModelInfo& model) { put(writer, model); });
}

void get(WireReader& reader, std::vector<ModelInfo>& models) {
  get_list(reader, models, kModelBytesMin, [&](ModelInfo& model) { get(reader, model); });
}

bool have_distinct_ids(const std::vector<ModelInfo>& models) {
  std::vector<ModelId> ids;
  ids.reserve(models.size());
  for (const ModelInfo& model : models) ids.push_back(model.id);
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

// Each device's residents are positions in the list of models, ascending.
bool sound_residents(const Registration& message) {
  return message.residents.size() == message.page_counts.size() &&
         std::ranges::all_of(message.residents, [&](const std::vector<uint32_t>& models) {
           return std::ranges::adjacent_find(models, std::greater_equal<>()) == models.end() &&
                  (models.empty() || models.back() < message.models.size());
         });
}

}  // namespace

// ---- All links ----

void encode(const Goodbye& message, WireBytes& bytes) {
  FrameWriter(MessageType::kGoodbye, bytes).put(std::string_view(message.reason));
}

Status decode(const Frame& frame, Goodbye& message) {
  WireReader reader(frame.body);
  reader.get(message.reason);
  return finish(frame, reader);
}

void encode(const Ping& message, WireBytes& bytes) { FrameWriter(MessageType::kPing, bytes).put(message.sent); }

Status decode(const Frame& frame, Ping& message) {
  WireReader reader(frame.body);
  reader.get(message.sent);
  return finish(frame, reader);
}

void encode(const Pong& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kPong, bytes);
  writer.put(message.ping_sent);
  writer.put(message.host_time);
}

Status decode(const Frame& frame, Pong& message) {
  WireReader reader(frame.body);
  reader.get(message.ping_sent);
  reader.get(message.host_time);
  return finish(frame, reader);
}

// ---- Action link ----

void encode(const Registration& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kRegistration, bytes);
  writer.put(std::string_view(message.worker));
  writer.put(std::string_view(message.data_address));
  put_list(writer, message.page_counts);
  put(writer, message.models);
  put_list(writer, message.residents, [&](const std::vector<uint32_t>& models) { put_list(writer, models); });
}

Status decode(const Frame& frame, Registration& message) {
  WireReader reader(frame.body);
  reader.get(message.worker);
  reader.get(message.data_address);
  get_list(reader, message.page_counts, sizeof(uint32_t));
  get(reader, message.models);
  get_list(reader, message.residents, sizeof(uint32_t),
           [&](std::vector<uint32_t>& models) { get_list(reader, models, sizeof(uint32_t)); });
  if (!reader.failed() && !(have_distinct_ids(message.models) && sound_residents(message))) reader.fail();
  return finish(frame, reader);
}

void encode(const Welcome& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kWelcome, bytes);
  put_list(writer, message.devices);
  put_list(writer, message.models);
}

Status decode(const Frame& frame, Welcome& message) {
  WireReader reader(frame.body);
  get_list(reader, message.devices, sizeof(uint32_t));
  get_list(reader, message.models, sizeof(uint32_t));
  return finish(frame, reader);
}

void encode(const Offer& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kOffer, bytes);
  put(writer, message.model);
}

Status decode(const Frame& frame, Offer& message) {
  WireReader reader(frame.body);
  get(reader, message.model);
  return finish(frame, reader);
}

void encode(const Withdrawal& message, WireBytes& bytes) {
  FrameWriter(MessageType::kWithdrawal, bytes).put(message.model);
}

Status decode(const Frame& frame, Withdrawal& message) {
  WireReader reader(frame.body);
  reader.get(message.model);
  return finish(frame, reader);
}

void encode(const Naming& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kNaming, bytes);
  writer.put(message.model);
  writer.put(message.name);
}

Status decode(const Frame& frame, Naming& message) {
  WireReader reader(frame.body);
  reader.get(message.model);
  reader.get(message.name);
  if (message.name == kUnnamed) reader.fail();
  return finish(frame, reader);
}

void encode(const Release& message, WireBytes& bytes) { FrameWriter(MessageType::kRelease, bytes).put(message.model); }

Status decode(const Frame& frame, Release& message) {
  WireReader reader(frame.body);
  reader.get(message.model);
  return finish(frame, reader);
}

void encode(const Action& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kAction, bytes);
  writer.put(message.id);
  writer.put(message.type);
  writer.put(message.device);
  writer.put(message.model);
  writer.put(message.earliest);
  writer.put(message.latest);
  writer.put(message.expected);
  writer.put(message.bucket);
  writer.put(message.batch_size);
  writer.put(message.rows.size());
  for (const BatchRows::Row& row : message.rows) {
    writer.put(row.request);
    writer.put(row.payload);
  }
}

Status decode(const Frame& frame, Action& message) {
  WireReader reader(frame.body);
  reader.get(message.id);
  reader.get(message.type, ActionType::kInfer);
  reader.get(message.device);
  reader.get(message.model);
  reader.get(message.earliest);
  reader.get(message.latest);
  reader.get(message.expected);
  reader.get(message.bucket);
  reader.get(message.batch_size);
  const uint32_t rows = reader.get_count(2 * sizeof(uint64_t));
  if (rows > kBatchSizeMax) reader.fail();
  message.rows = BatchRows();
  for (uint32_t i = 0; i < rows && !reader.failed(); ++i) {
    BatchRows::Row row;
    reader.get(row.request);
    reader.get(row.payload);
    message.rows.add(row);
  }
  return finish(frame, reader);
}

void encode(const Outcome& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kOutcome, bytes);
  writer.put(message.action);
  writer.put(message.type);
  writer.put(message.device);
  writer.put(message.model);
  writer.put(message.status);
  writer.put(message.start);
  writer.put(message.end);
  writer.put(message.duration);
  writer.put(message.input_duration);
  writer.put(message.output_duration);
  writer.put(message.output_end);
}

Status decode(const Frame& frame, Outcome& message) {
  WireReader reader(frame.body);
  reader.get(message.action);
  reader.get(message.type, ActionType::kInfer);
  reader.get(message.device);
  reader.get(message.model);
  reader.get(message.status, OutcomeStatus::kFailed);
  reader.get(message.start);
  reader.get(message.end);
  reader.get(message.duration);
  reader.get(message.input_duration);
  reader.get(message.output_duration);
  reader.get(message.output_end);
  return finish(frame, reader);
}

void encode(const Leave& /*empty*/, WireBytes& bytes) { FrameWriter writer(MessageType::kLeave, bytes); }

Status decode(const Frame& frame, Leave& /*empty*/) { return finish(frame, WireReader(frame.body)); }

// ---- Request link ----

void encode(const Admission& message, WireBytes& bytes) {
  FrameWriter(MessageType::kAdmission, bytes).put(message.client);
}

Status decode(const Frame& frame, Admission& message) {
  WireReader reader(frame.body);
  reader.get(message.client);
  return finish(frame, reader);
}

void encode(const Models& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kModels, bytes);
  put(writer, message.models);
}

Status decode(const Frame& frame, Models& message) {
  WireReader reader(frame.body);
  get(reader, message.models);
  return finish(frame, reader);
}

void encode(const Workers& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kWorkers, bytes);
  put_list(writer, message.workers, [&](const Workers::Worker& worker) {
    writer.put(std::string_view(worker.name));
    writer.put(std::string_view(worker.data_address));
    put_list(writer, worker.devices);
  });
}

Status decode(const Frame& frame, Workers& message) {
  constexpr size_t kWorkerBytesMin = 3 * sizeof(uint32_t);
  WireReader reader(frame.body);
  get_list(reader, message.workers, kWorkerBytesMin, [&](Workers::Worker& worker) {
    reader.get(worker.name);
    reader.get(worker.data_address);
    get_list(reader, worker.devices, sizeof(uint32_t));
  });
  return finish(frame, reader);
}

void encode(const Request& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kRequest, bytes);
  writer.put(message.id);
  writer.put(message.model);
  writer.put(message.bucket);
  writer.put(message.payload);
  writer.put(message.arrival);
  writer.put(message.deadline);
  writer.put(message.tenant);
  writer.put(message.tenant_weight);
}

Status decode(const Frame& frame, Request& message) {
  WireReader reader(frame.body);
  reader.get(message.id);
  reader.get(message.model);
  reader.get(message.bucket);
  reader.get(message.payload);
  reader.get(message.arrival);
  reader.get(message.deadline);
  reader.get(message.tenant);
  reader.get(message.tenant_weight);
  if (message.tenant_weight == 0 || message.tenant_weight > kTenantWeightMax) reader.fail();
  return finish(frame, reader);
}

void encode(const Cancel& message, WireBytes& bytes) { FrameWriter(MessageType::kCancel, bytes).put(message.request); }

Status decode(const Frame& frame, Cancel& message) {
  WireReader reader(frame.body);
  reader.get(message.request);
  return finish(frame, reader);
}

void encode(const Completion& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kCompletion, bytes);
  writer.put(message.id);
  writer.put(message.model);
  writer.put(message.payload);
  writer.put(message.refusal);
  writer.put(std::string_view(message.detail));
  writer.put(message.arrival);
  writer.put(message.deadline);
  writer.put(message.finished);
  writer.put(message.earliest_completion);
  writer.put(message.batch_size);
  writer.put(static_cast<uint8_t>(message.cold_start));
  writer.put(message.exec_start);
  writer.put(message.input_duration);
  writer.put(message.exec_duration);
  writer.put(message.output_duration);
  writer.put(message.action);
  writer.put(message.device);
}

Status decode(const Frame& frame, Completion& message) {
  WireReader reader(frame.body);
  reader.get(message.id);
  reader.get(message.model);
  reader.get(message.payload);
  reader.get(message.refusal, kRefusalLast);
  reader.get(message.detail);
  reader.get(message.arrival);
  reader.get(message.deadline);
  reader.get(message.finished);
  reader.get(message.earliest_completion);
  reader.get(message.batch_size);
  reader.get(message.cold_start);
  reader.get(message.exec_start);
  reader.get(message.input_duration);
  reader.get(message.exec_duration);
  reader.get(message.output_duration);
  reader.get(message.action);
  reader.get(message.device);
  return finish(frame, reader);
}

void encode(const StatisticsRequest& /*empty*/, WireBytes& bytes) {
  FrameWriter writer(MessageType::kStatisticsRequest, bytes);
}

Status decode(const Frame& frame, StatisticsRequest& /*empty*/) { return finish(frame, WireReader(frame.body)); }

void encode(const Statistics& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kStatistics, bytes);
  writer.put(message.elapsed);
  writer.put(message.devices);
  writer.put(message.requests);
  writer.put(message.served);
  writer.put(message.actions);
  writer.put(message.decisions);
  put(writer, message.decision);
  put(writer, message.decision_processor);
  writer.put(message.processor_time);
  writer.put(message.bytes_received);
  writer.put(message.bytes_sent);
}

Status decode(const Frame& frame, Statistics& message) {
  WireReader reader(frame.body);
  reader.get(message.elapsed);
  reader.get(message.devices);
  reader.get(message.requests);
  reader.get(message.served);
  reader.get(message.actions);
  reader.get(message.decisions);
  get(reader, message.decision);
  get(reader, message.decision_processor);
  reader.get(message.processor_time);
  reader.get(message.bytes_received);
  reader.get(message.bytes_sent);
  return finish(frame, reader);
}

// ---- Data link ----

void encode(const Attach& message, WireBytes& bytes) { FrameWriter(MessageType::kAttach, bytes).put(message.client); }

Status decode(const Frame& frame, Attach& message) {
  WireReader reader(frame.body);
  reader.get(message.client);
  return finish(frame, reader);
}

void encode(const Fetch& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kFetch, bytes);
  writer.put(message.action);
  writer.put(message.request);
  writer.put(message.payload);
}

Status decode(const Frame& frame, Fetch& message) {
  WireReader reader(frame.body);
  reader.get(message.action);
  reader.get(message.request);
  reader.get(message.payload);
  return finish(frame, reader);
}

void encode(const Inputs& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kInputs, bytes);
  writer.put(message.action);
  writer.put(message.request);
  put_list(writer, message.tensors);
}

Status decode(const Frame& frame, Inputs& message) {
  WireReader reader(frame.body);
  reader.get(message.action);
  reader.get(message.request);
  get_list(reader, message.tensors, sizeof(uint64_t));
  return finish(frame, reader);
}

void encode(const Outputs& message, WireBytes& bytes) {
  FrameWriter writer(MessageType::kOutputs, bytes);
  writer.put(message.action);
  writer.put(message.request);
  writer.put(message.payload);
  put_list(writer, message.tensors);
}

Status decode(const Frame& frame, Outputs& message) {
  WireReader reader(frame.body);
  reader.get(message.action);
  reader.get(message.request);
  reader.get(message.payload);
  get_list(reader, message.tensors, sizeof(uint64_t));
  return finish(frame, reader);
}

}  // namespace foliot
