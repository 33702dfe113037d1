#include "answer/personal/service/feature_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <span>
#include <unordered_map>
#include <utility>

#include "answer/personal/items/item_input.h"
#include "answer/personal/weights/user_weights.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

Status cannot(const std::string& model, std::string_view why) {
  return Status::invalid_argument(fmt::format("model '{}' cannot give features: {}", model, why));
}

// The shape of a row of features does not depend on the item.
Result<size_t> count_features(const std::string& model, const TensorSpec& output) {
  if (output.type != DataType::kFloat32) {
    return cannot(model, fmt::format("its output '{}' is {}, must be FP32", output.name, to_string(output.type)));
  }
  if (output.bound || std::ranges::any_of(output.shape, [](int64_t extent) { return extent < 0; })) {
    return cannot(model, fmt::format("its output '{}' varies in size", output.name));
  }
  const uint64_t count = element_count(output.shape);
  if (count >= 1 && count <= kFeaturesMax) return static_cast<size_t>(count);
  return cannot(
      model, fmt::format("a row of its output '{}' has {} numbers, limits 1 and {}", output.name, count, kFeaturesMax));
}

}  // namespace

struct FeatureSource::Resolving {
  std::shared_ptr<const Version> version;
  ComputedRows rows;
  Done done;
  // What is asked for: each input once.
  std::vector<ItemInput> missing;
  std::vector<Hash128> keys;                                          // of these
  std::vector<std::pair<size_t, size_t>> places;                      // of an item, and of its input in `missing`
  std::unordered_map<Hash128, size_t, Hash128Hash> place_of_missing;  // in `missing`

  std::span<float> row(size_t index) {
    const size_t width = rows.by->width();
    return std::span(rows.values).subspan(index * width, width);
  }
};

Result<FeatureModel> FeatureSource::find() const {
  const std::string& name = options_.model;
  const Catalog::EntryPtr entry = catalog_.find(name);
  if (entry == nullptr) {
    return Status::unavailable(fmt::format("the model of its features, '{}', is not served: add its folder", name));
  }
  if (entry->role != EntryRole::kModel && entry->role != EntryRole::kPipeline) {
    return cannot(name, fmt::format("it is an {}, whose outputs change while its version does not; name a model or a "
                                    "pipeline",
                                    entry->role == EntryRole::kApplication ? "application" : "entry of another kind"));
  }
  if (entry->state != ModelState::kReady || entry->info == nullptr) {
    return Status::unavailable(fmt::format("the model of its features, '{}', is not ready{}{}", name,
                                           entry->reason.empty() ? "" : ": ", entry->reason));
  }
  const ModelInfo& info = *entry->info;
  if (info.content.empty()) return cannot(name, "it does not say when its content changes");
  const auto output = std::ranges::find_if(
      info.outputs, [this](const TensorSpec& spec) { return options_.output.empty() || spec.name == options_.output; });
  if (output == info.outputs.end()) return cannot(name, fmt::format("it has no output '{}'", options_.output));
  if (options_.output.empty() && info.outputs.size() > 1) {
    return cannot(name, fmt::format("it has {} outputs; name one as features_output", info.outputs.size()));
  }
  FOLIOT_ASSIGN_OR_RETURN(const size_t features, count_features(name, *output));
  return FeatureModel{.name = name,
                      .version = entry->version,
                      .content = info.content,
                      .output = output->name,
                      .features = features,
                      .batching = info.batching};
}

Status FeatureSource::compute(const FeatureModel& model, const std::vector<KnownItem>& items, ComputedItems& computed) {
  std::vector<KnownItem> missing;
  for (const KnownItem& item : items) {
    if (!computed.features_of(item.item)) missing.push_back(item);
  }
  for (size_t begin = 0; begin < missing.size(); begin += FeatureAsker::kRowsMax) {
    const size_t end = std::min(missing.size(), begin + FeatureAsker::kRowsMax);
    std::promise<std::variant<std::vector<float>, CallError>> answer;
    FeatureAsker::Ask ask{.model = model, .inputs = {}, .arrival = asker_.now(), .done = {}};
    for (size_t i = begin; i < end; ++i) ask.inputs.push_back(missing[i].input);
    ask.done = [&answer](std::variant<std::vector<float>, CallError> given) { answer.set_value(std::move(given)); };
    asker_.ask(std::move(ask));
    const std::variant<std::vector<float>, CallError> given = answer.get_future().get();
    if (const auto* const error = std::get_if<CallError>(&given)) return Status::unavailable(error->message);
    const std::span<const float> rows = std::get<std::vector<float>>(given);
    const size_t width = computed.width();
    for (size_t i = begin; i < end; ++i) computed.add(missing[i].item, rows.subspan((i - begin) * width, width));
  }
  return Status();
}

void FeatureSource::use(FeatureModel model, std::shared_ptr<ComputedItems> items) {
  auto version = std::make_shared<Version>(Version{.model = std::move(model), .items = std::move(items)});
  version->checksum = version->model.checksum();
  const MutexLock lock(mutex_);
  version_ = std::move(version);
}

std::shared_ptr<const FeatureSource::Version> FeatureSource::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

std::optional<FeatureModel> FeatureSource::used() const {
  const std::shared_ptr<const Version> version = this->version();
  return version == nullptr ? std::nullopt : std::optional(version->model);
}

void FeatureSource::resolve(PersonalModel& known, ItemsOfCall call, Done done) {
  auto resolving = std::make_shared<Resolving>();
  resolving->version = version();
  FOLIOT_CHECK(resolving->version != nullptr);
  resolving->done = std::move(done);
  ComputedRows& rows = resolving->rows;
  rows.by = resolving->version->items;
  rows.items = std::move(call.items);
  rows.inputs.resize(rows.items.size());
  rows.values.resize(rows.items.size() * rows.by->width());
  std::vector<std::string> inputs;
  if (call.inputs != nullptr) {
    Result<std::vector<std::string>> encoded = encode_inputs(*call.inputs, rows.items.size());
    if (!encoded.ok()) return resolving->done(call_error(encoded.status()));
    inputs = *std::move(encoded);
  }
  for (size_t i = 0; i < rows.items.size(); ++i) {
    const Status status = resolve(known, *resolving, i, inputs.empty() ? nullptr : &inputs[i]);
    if (!status.ok()) return resolving->done(call_error(status));
  }
  if (resolving->missing.empty()) return resolving->done(std::move(rows));
  counters_.computed += resolving->missing.size();
  FeatureAsker::Ask ask{.model = resolving->version->model,
                        .inputs = resolving->missing,
                        .arrival = call.arrival,
                        .deadline = call.deadline,
                        .tenant = std::move(call.tenant),
                        .done = {}};
  ask.done = [this, resolving](std::variant<std::vector<float>, CallError> computed) {
    finish(*resolving, std::move(computed));
  };
  asker_.ask(std::move(ask));
}

Status FeatureSource::resolve(PersonalModel& known, Resolving& resolving, size_t index, std::string* input) {
  ComputedRows& rows = resolving.rows;
  const uint64_t item = rows.items[index];
  const bool has_features = rows.by->copy(item, resolving.row(index));
  const ItemInput kept = has_features && input == nullptr ? nullptr : known.input_of(item);
  if (kept != nullptr && input != nullptr && *kept != *input) {
    return Status::invalid_argument(
        fmt::format("item {} was observed with another input before; give another number to this one", item));
  }
  if (has_features && (input == nullptr || kept != nullptr)) {  // else those of an item that has left
    ++counters_.known;
    return Status();
  }
  if (kept == nullptr && input == nullptr) {
    return Status::not_found(fmt::format("item {} is unknown: it was not observed yet; send its input", item));
  }
  rows.inputs[index] = kept != nullptr ? kept : std::make_shared<const std::string>(std::move(*input));
  const Hash128 key = cache_.key(resolving.version->checksum, *rows.inputs[index]);
  std::vector<float> cached;
  if (cache_.find(key, cached)) {
    ++counters_.cached;
    std::ranges::copy(cached, resolving.row(index).begin());
    return Status();
  }
  const auto [place, is_new] = resolving.place_of_missing.emplace(key, resolving.missing.size());
  if (is_new) {
    resolving.missing.push_back(rows.inputs[index]);
    resolving.keys.push_back(key);
  }
  resolving.places.emplace_back(index, place->second);
  return Status();
}

void FeatureSource::finish(Resolving& resolving, std::variant<std::vector<float>, CallError> computed) {
  if (auto* const error = std::get_if<CallError>(&computed)) return resolving.done(std::move(*error));
  const std::span<const float> features = std::get<std::vector<float>>(computed);
  const size_t width = resolving.rows.by->width();
  for (size_t i = 0; i < resolving.keys.size(); ++i) {
    cache_.insert(resolving.keys[i], features.subspan(i * width, width));
  }
  for (const auto& [index, place] : resolving.places) {
    std::ranges::copy(features.subspan(place * width, width), resolving.row(index).begin());
  }
  resolving.done(std::move(resolving.rows));
}

}  // namespace foliot
