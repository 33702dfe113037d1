#include "answer/selection/feedback_store.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/units.h"

namespace foliot {
namespace {

constexpr size_t kIdDigits = 32;
// Of an id that an error quotes.
constexpr size_t kShownIdMax = 64;

std::string to_text(const Hash128& id) { return fmt::format("{:016x}{:016x}", id.high, id.low); }

std::optional<Hash128> parse_id(std::string_view text) {
  if (text.size() != kIdDigits) return std::nullopt;
  Hash128 id;
  const char* const middle = text.data() + kIdDigits / 2;
  const char* const end = text.data() + kIdDigits;
  const auto high = std::from_chars(text.data(), middle, id.high, 16);
  const auto low = std::from_chars(middle, end, id.low, 16);
  if (high.ec != std::errc() || high.ptr != middle || low.ec != std::errc() || low.ptr != end) return std::nullopt;
  return id;
}

size_t byte_size(const AnsweredCall& call) {
  size_t bytes = sizeof(AnsweredCall) + call.context.size() + call.selection.weights.size() * sizeof(double) +
                 call.selection.models.size() * sizeof(uint32_t) +
                 call.outputs.size() * sizeof(std::optional<Prediction::Output>);
  for (const auto& output : call.outputs) {
    if (output) bytes += output->bytes.size() + output->spec.name.size() + output->shape.size() * sizeof(int64_t);
  }
  return bytes;
}

}  // namespace

std::string FeedbackStore::add(AnsweredCall call, TimePoint now) {
  size_t outputs = 0;
  for (const auto& output : call.outputs) outputs += output ? output->bytes.size() : 0;
  if (outputs > kOutputBytesMax) call.outputs.assign(call.outputs.size(), std::nullopt);

  StreamHash hash(secret_);
  const uint64_t number = ++added_;
  hash.update(std::as_bytes(std::span(&number, 1)));
  call.answered = now;
  Kept kept{hash.digest(), std::move(call), 0, false};
  kept.bytes = byte_size(kept.call);
  bytes_ += kept.bytes;
  calls_.push_back(std::move(kept));
  const auto last = std::prev(calls_.end());
  by_id_[last->id] = last;
  while (calls_.size() > calls_max_ || (bytes_ > bytes_max_ && calls_.size() > 1) ||
         calls_.front().call.answered + window_ < now) {
    remove_oldest();
  }
  return to_text(last->id);
}

void FeedbackStore::set_limits(Duration window, uint64_t calls_max) {
  window_ = window;
  calls_max_ = calls_max;
  while (calls_.size() > calls_max_) remove_oldest();
}

void FeedbackStore::clear() {
  while (!calls_.empty()) remove_oldest();
}

void FeedbackStore::remove_oldest() {
  bytes_ -= calls_.front().bytes;
  by_id_.erase(calls_.front().id);
  calls_.pop_front();
}

Result<const AnsweredCall*> FeedbackStore::find(std::string_view text, TenantId tenant, TimePoint now) const {
  const std::optional<Hash128> id = parse_id(text);
  const auto found = id ? by_id_.find(*id) : by_id_.end();
  // To another tenant, there is no such call.
  if (found == by_id_.end() || found->second->call.tenant != tenant) {
    return Status::not_found(
        fmt::format("feedback_id '{}' is unknown: it is not one that this key was given, or it was dropped: after {} "
                    "(feedback_window), or for later ones (feedback_max)",
                    text.substr(0, kShownIdMax), format_duration(window_)));
  }
  const Kept& kept = *found->second;
  if (kept.call.answered + window_ < now) {
    return Status::not_found(
        fmt::format("feedback_id '{}' is too old: feedback comes within {} of the answer "
                    "(feedback_window), and {} have passed",
                    text, format_duration(window_), format_duration(now - kept.call.answered)));
  }
  if (kept.closed) return Status::already_exists(fmt::format("feedback_id '{}' has had its feedback", text));
  return &kept.call;
}

void FeedbackStore::close(std::string_view text) {
  const std::optional<Hash128> id = parse_id(text);
  FOLIOT_CHECK(id && by_id_.contains(*id));
  Kept& kept = *by_id_.at(*id);
  kept.closed = true;
  kept.call = {
      .tenant = kept.call.tenant, .context = {}, .selection = {}, .outputs = {}, .answered = kept.call.answered};
  bytes_ -= kept.bytes;
  kept.bytes = byte_size(kept.call);
  bytes_ += kept.bytes;
}

}  // namespace foliot
