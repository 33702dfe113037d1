#include "answer/inference/conformance/fake_inference.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "answer/inference/kept_query.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find_if(specs, [&](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

Status wrong(const ModelInfo& model, std::string what) {
  return Status::invalid_argument("model '" + model.name + "': " + std::move(what));
}

Shape whole_shape(const ModelInfo& model, const TensorSpec& spec, int64_t rows) {
  Shape shape = spec.shape;
  if (model.batching) shape.insert(shape.begin(), rows);
  return shape;
}

int64_t rows_of(const ModelInfo& model, const Query& query) {
  return model.batching && !query.inputs.empty() && !query.inputs.front().shape.empty() ? query.inputs.front().shape[0]
                                                                                        : 1;
}

Status check_query(const ModelInfo& model, const Query& query) {
  const int64_t rows = rows_of(model, query);
  if (rows < 1 || rows > int64_t{model.batch_size_max()}) return wrong(model, "too many rows: " + std::to_string(rows));
  for (const TensorView& input : query.inputs) {
    const std::string name(input.name);
    const TensorSpec* spec = find_spec(model.inputs, input.name);
    if (spec == nullptr) return wrong(model, "unknown input '" + name + "'");
    const Shape shape = whole_shape(model, *spec, rows);
    if (input.datatype != to_string(spec->type)) return wrong(model, "input '" + name + "': wrong datatype");
    if (input.shape != shape) return wrong(model, "input '" + name + "': got " + to_string(input.shape));
    if (input.bytes.size() != byte_size(spec->type, shape)) return wrong(model, "input '" + name + "': wrong size");
  }
  for (const TensorSpec& spec : model.inputs) {
    if (std::ranges::count(query.inputs, spec.name, &TensorView::name) != 1)
      return wrong(model, "input '" + spec.name + "' is missing, or was sent twice");
  }
  for (std::string_view output : query.outputs) {
    if (find_spec(model.outputs, output) == nullptr)
      return wrong(model, "unknown output '" + std::string(output) + "'");
  }
  return Status();
}

}  // namespace

class FakeInference::Call final : public Answer, public Delivery {
 public:
  Call(FakeInference& inference, CallId call, std::shared_ptr<const ModelInfo> model, const Query& query,
       const Caller& caller)
      : inference_(inference),
        call_(call),
        model_(std::move(model)),
        id_(query.id),
        arrival_(query.arrival),
        deadline_(model_->default_slo ? std::min(query.deadline, query.arrival + *model_->default_slo)
                                      : query.deadline),
        rows_(rows_of(*model_, query)),
        mailbox_(caller.mailbox),
        sink_(caller.sink) {
    for (uint32_t i = 0; i < model_->outputs.size(); ++i)
      if (query.outputs.empty()) outputs_.push_back(i);
    for (std::string_view output : query.outputs)
      outputs_.push_back(static_cast<uint32_t>(find_spec(model_->outputs, output) - model_->outputs.data()));
  }

  void refuse(Refusal refusal, std::string detail) {
    refusal_ = refusal;
    detail_ = std::move(detail);
  }
  void serve(std::vector<std::string> bytes, Quality quality) {
    bytes_ = std::move(bytes);
    quality_ = quality;
  }
  void serve_later(const Query& query) { kept_.emplace(query); }
  void serve_what_waits(Quality quality) {
    if (kept_ && served()) serve(inference_.compute_(*model_, kept_->query()), quality);
  }
  // Whether it is on its way to its caller.
  bool sent() const { return sent_; }
  void send() {
    sent_ = true;
    mailbox_.push(*this);
  }
  void deliver() override { sink_.on_answer(call_, inference_.give(call_)); }

  bool served() const override { return refusal_ == Refusal::kNone; }
  CallError error() const override {
    CallError error =
        call_error(refusal_, model_->name, detail_, arrival_, inference_.now_(), TimePoint::infinite_future());
    error.request = number();
    return error;
  }
  std::string_view name() const override { return model_->name; }
  std::string_view version() const override { return model_->version; }
  std::string_view id() const override { return id_; }
  Quality quality() const override { return quality_; }
  RequestId number() const override { return RequestId(call_.value()); }
  uint32_t output_count() const override { return static_cast<uint32_t>(outputs_.size()); }
  const TensorSpec& output_spec(uint32_t i) const override { return model_->outputs[outputs_[i]]; }
  Shape output_shape(uint32_t i) const override { return whole_shape(*model_, output_spec(i), rows_); }
  bool output_is_padded(uint32_t /*i*/) const override { return false; }
  std::string take_output(uint32_t i) override { return std::move(bytes_.at(outputs_[i])); }
  void settle() override {
    if (served() && inference_.now_() > deadline_) refuse(Refusal::kLate, "");
  }

 private:
  FakeInference& inference_;
  const CallId call_;
  const std::shared_ptr<const ModelInfo> model_;
  const std::string id_;
  const TimePoint arrival_;
  const TimePoint deadline_;
  const int64_t rows_;
  Mailbox& mailbox_;
  AnswerSink& sink_;
  std::vector<uint32_t> outputs_;  // positions in the model's
  std::vector<std::string> bytes_;
  Quality quality_ = Quality::kComplete;
  Refusal refusal_ = Refusal::kNone;
  std::string detail_;
  bool sent_ = false;
  std::optional<KeptQuery> kept_;  // of one that is held
};

FakeInference::FakeInference(const ServedNames& names, Compute compute, std::function<TimePoint()> now)
    : names_(names), compute_(std::move(compute)), now_(std::move(now)) {}

FakeInference::~FakeInference() = default;

Inference::Started FakeInference::start(const Query& query, const Caller& caller) {
  const auto model = names_.find(query.name, query.version);
  if (!model.ok()) return call_error(model.status());
  if (const Status status = check_query(**model, query); !status.ok()) return call_error(status);

  const MutexLock lock(mutex_);
  const CallId id(++last_id_);
  auto made = std::make_unique<Call>(*this, id, *model, query, caller);
  Call& call = *made;
  const bool runs = running_.contains((*model)->name);
  const auto own = refusals_.find((*model)->name);
  if (refusal_ != Refusal::kNone) {
    call.refuse(refusal_, detail_);
  } else if (own != refusals_.end() && own->second != Refusal::kNone) {
    call.refuse(own->second, "");
  } else if (runs) {
    call.serve_later(query);
  } else {
    call.serve(compute_(**model, query), quality_);
  }
  calls_.emplace(id, std::move(made));
  if (!held_ && !runs) call.send();
  return id;
}

void FakeInference::cancel(CallId call) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end() || found->second->sent() || running_.contains(std::string(found->second->name()))) return;
  found->second->refuse(Refusal::kCancelled, "");
  found->second->send();
}

Status FakeInference::observe(const Observation& observation) {
  const auto model = names_.find(observation.name, observation.version);
  if (!model.ok()) return model.status();
  const MutexLock lock(mutex_);
  ++observations_[(*model)->name];
  return Status();
}

void FakeInference::hold() {
  const MutexLock lock(mutex_);
  held_ = true;
}

void FakeInference::hold_running(const std::string& name) {
  const MutexLock lock(mutex_);
  running_.insert(name);
}

void FakeInference::release() {
  const MutexLock lock(mutex_);
  held_ = false;
  running_.clear();
  for (const auto& [id, call] : calls_) {
    if (call->sent()) continue;
    call->serve_what_waits(quality_);
    call->send();
  }
}

void FakeInference::refuse(Refusal refusal, std::string detail) {
  const MutexLock lock(mutex_);
  refusal_ = refusal;
  detail_ = std::move(detail);
}

void FakeInference::refuse_model(const std::string& name, Refusal refusal) {
  const MutexLock lock(mutex_);
  refusals_[name] = refusal;
}

void FakeInference::set_quality(Quality quality) {
  const MutexLock lock(mutex_);
  quality_ = quality;
}

uint64_t FakeInference::observations(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = observations_.find(name);
  return found == observations_.end() ? 0 : found->second;
}

std::unique_ptr<Answer> FakeInference::give(CallId call) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  FOLIOT_CHECK(found != calls_.end());
  std::unique_ptr<Answer> answer = std::move(found->second);
  calls_.erase(found);
  return answer;
}

std::vector<std::string> double_inputs(const ModelInfo& /*model*/, const Query& query) {
  const std::span<const std::byte> bytes = query.inputs.front().bytes;
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (float& value : values) value *= 2;
  return {std::string(reinterpret_cast<const char*>(values.data()), bytes.size())};
}

}  // namespace foliot
