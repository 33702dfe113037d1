#include "answer/personal/service/feature_asker.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "answer/personal/items/item_input.h"
#include "answer/personal/weights/cholesky.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

// Names the model. Where that is unknown, what the client called is not.
CallError of_model(const FeatureModel& model, CallError error) {
  if (error.http_status == 404) {
    error = call_error(Status::unavailable(error.message));
  }
  error.message = fmt::format("the features of model '{}': {}", model.name, error.message);
  return error;
}

CallError wrong(const FeatureModel& model, Status status) { return of_model(model, call_error(status)); }

}  // namespace

uint64_t FeatureModel::checksum() const {
  StreamHash hash;
  for (const std::string* part : {&name, &version, &content, &output}) {
    const uint64_t size = part->size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    hash.update(std::as_bytes(std::span(*part)));
  }
  const uint64_t count = features;
  hash.update(std::as_bytes(std::span(&count, 1)));
  return hash.digest64();
}

struct FeatureAsker::Pending {
  explicit Pending(Ask given)
      : ask(std::move(given)), width(padded_rows(ask.model.features)), rows(ask.inputs.size() * width) {}
  // Of one that stop() found.
  ~Pending() {
    if (ask.done) ask.done(call_error(Refusal::kDraining, ask.model.name, "", ask.arrival, ask.arrival, {}));
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  Ask ask;
  const size_t width;
  std::vector<float> rows;
  std::vector<CallId> calls;
  size_t open = 1;  // calls, and the starting of them
  std::optional<CallError> error;
};

struct FeatureAsker::Flight {
  PendingPtr pending;          // null: stop() has refused it
  std::vector<size_t> places;  // of its inputs
  std::vector<std::string> data;
};

FeatureAsker::FeatureAsker(const Catalog& catalog, std::function<TimePoint()> now)
    : catalog_(catalog), now_(std::move(now)) {}

FeatureAsker::~FeatureAsker() { stop(); }

Status FeatureAsker::start(Inference& inference, uint32_t rows_max) {
  inference_ = &inference;
  mailbox_ = std::make_unique<Mailbox>(rows_max, [this] {
    {
      const MutexLock lock(mutex_);
      has_mail_ = true;
    }
    woken_.notify_one();
  });
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "foliot-asker"}, [this] { run(); }));
  return Status();
}

void FeatureAsker::stop() {
  if (mailbox_ == nullptr) return;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  woken_.notify_one();
  thread_.join();
  mailbox_->close();
  for (const auto& [call, flight] : flights_) flight->pending.reset();
}

void FeatureAsker::run() {
  MutexLock lock(mutex_);
  while (true) {
    woken_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || has_mail_; });
    if (stopping_) return;
    has_mail_ = false;
    lock.unlock();
    mailbox_->deliver();
    lock.lock();
  }
}

void FeatureAsker::ask(Ask ask) {
  FOLIOT_CHECK(mailbox_ != nullptr && !ask.inputs.empty());
  mailbox_->post([this, pending = std::make_shared<Pending>(std::move(ask))] { begin(pending); });
}

// Rows whose inputs have one shape make a call, up to kRowsMax of them.
void FeatureAsker::begin(const PendingPtr& pending) {
  const size_t rows_max = pending->ask.model.batching ? kRowsMax : 1;
  std::vector<RowView> shape;
  std::vector<size_t> places;
  const auto start = [&] {
    if (places.empty() || pending->error) return;
    ++pending->open;
    if (auto error = start_call(pending, std::exchange(places, {}))) {
      fail(*pending, *std::move(error));
      --pending->open;
    }
  };
  const auto is_like = [&shape](const std::vector<RowView>& row) {
    if (row.size() != shape.size()) return false;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i].is_like(shape[i])) return false;
    }
    return true;
  };
  for (size_t i = 0; i < pending->ask.inputs.size(); ++i) {
    std::optional<std::vector<RowView>> row = decode_input(*pending->ask.inputs[i]);
    FOLIOT_CHECK(row.has_value());
    if (places.size() == rows_max || !is_like(*row)) start();
    shape = *std::move(row);
    places.push_back(i);
  }
  start();
  on_part(pending);
}

std::optional<CallError> FeatureAsker::start_call(const PendingPtr& pending, std::vector<size_t> places) {
  const Ask& ask = pending->ask;
  const std::vector<RowView> shape = *decode_input(*ask.inputs[places.front()]);
  auto flight = std::make_unique<Flight>();
  flight->data.resize(shape.size());
  for (const size_t place : places) {
    const std::vector<RowView> row = *decode_input(*ask.inputs[place]);
    for (size_t i = 0; i < row.size(); ++i) flight->data[i] += row[i].bytes;
  }
  Query query{.name = ask.model.name,
              .arrival = ask.arrival,
              .deadline = ask.deadline,
              .request_class = ask.deadline.is_infinite() ? RequestClass::kBestEffort : RequestClass::kDeadline};
  query.outputs = {ask.model.output};
  for (size_t i = 0; i < shape.size(); ++i) {
    TensorView input{.name = shape[i].name, .datatype = shape[i].datatype, .shape = shape[i].shape, .bytes = {}};
    if (ask.model.batching) input.shape.insert(input.shape.begin(), static_cast<int64_t>(places.size()));
    input.bytes = std::as_bytes(std::span(flight->data[i]));
    query.body_bytes += input.bytes.size();
    query.inputs.push_back(std::move(input));
  }
  flight->places = std::move(places);
  flight->pending = pending;
  Inference::Started started = inference_->start(query, {ask.tenant, *mailbox_, *this});
  if (auto* const error = std::get_if<CallError>(&started)) return of_model(ask.model, std::move(*error));
  const CallId call = std::get<CallId>(started);
  pending->calls.push_back(call);
  flights_.emplace(call, std::move(flight));
  return std::nullopt;
}

void FeatureAsker::on_answer(CallId call, std::unique_ptr<Answer> answer) {
  const auto found = flights_.find(call);
  FOLIOT_CHECK(found != flights_.end());
  const std::unique_ptr<Flight> flight = std::move(found->second);
  flights_.erase(found);
  const PendingPtr pending = flight->pending;
  std::optional<CallError> error = answer->served() ? read(*flight, *answer) : std::nullopt;
  answer->settle();
  if (!answer->served()) error = of_model(pending->ask.model, answer->error());
  answer.reset();
  if (error) fail(*pending, *std::move(error));
  on_part(pending);
}

std::optional<CallError> FeatureAsker::read(const Flight& flight, Answer& answer) const {
  Pending& pending = *flight.pending;
  const FeatureModel& model = pending.ask.model;
  const Catalog::EntryPtr entry = catalog_.find(model.name);
  const bool is_served = entry != nullptr && entry->info != nullptr && entry->info->content == model.content;
  if (!is_served || answer.version() != model.version) {
    return wrong(model, Status::unavailable("another version is served by now, and features are being made anew"));
  }
  if (answer.quality() != Quality::kComplete) {
    return wrong(model, Status::unavailable(fmt::format("its answer is {}", to_string(answer.quality()))));
  }
  FOLIOT_CHECK(answer.output_count() == 1 && answer.output_spec(0).type == DataType::kFloat32);
  const std::string bytes = answer.take_output(0);
  const size_t row_bytes = model.features * sizeof(float);
  if (bytes.size() != flight.places.size() * row_bytes) {
    return wrong(model,
                 Status::internal(fmt::format("output '{}' has {} bytes for {} items of {} features", model.output,
                                              bytes.size(), flight.places.size(), model.features)));
  }
  for (size_t i = 0; i < flight.places.size(); ++i) {
    float* const row = pending.rows.data() + flight.places[i] * pending.width;
    std::memcpy(row, bytes.data() + i * row_bytes, row_bytes);
    for (size_t j = 0; j < model.features; ++j) {
      if (std::isfinite(row[j])) continue;
      return wrong(model, Status::internal(fmt::format("feature {} of an item is {}: must be finite", j, row[j])));
    }
  }
  return std::nullopt;
}

// The first error counts; what else was asked is not needed any more.
void FeatureAsker::fail(Pending& pending, CallError error) {
  if (pending.error) return;
  pending.error = std::move(error);
  for (const CallId call : pending.calls) inference_->cancel(call);
}

void FeatureAsker::on_part(const PendingPtr& pending) {
  if (--pending->open > 0) return;
  const Done done = std::exchange(pending->ask.done, nullptr);
  if (pending->error) return done(*std::move(pending->error));
  done(std::move(pending->rows));
}

}  // namespace foliot
