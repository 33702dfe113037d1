#include "edge/jobs/offline_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// How long a run may not notice that it is over.
constexpr Duration kAttentionInterval = Duration::milliseconds(50);

bool is_refused_for_now(const CallError& error) {
  return error.http_status == 429 || error.http_status == 503 || error.http_status == 504;
}

std::string variant_of(const Answer& answer) {
  for (const AnswerParameter& parameter : answer.parameters()) {
    const auto* const text = std::get_if<std::string>(&parameter.value);
    if (parameter.name == kVariantParameter && text != nullptr) return *text;
  }
  return "";
}

}  // namespace

OfflineRun::OfflineRun(Parts parts, OfflineRequest request, const Job& job)
    : parts_(std::move(parts)),
      request_(std::move(request)),
      rows_(job.total),
      is_begun_(job.done > 0),
      per_call_(rows_of_a_call()),
      next_(job.done),
      done_(job.done),
      kept_(job.done),
      kept_at_(parts_.options.now()),
      variants_(job.variants) {}

uint64_t OfflineRun::rows_of_a_call() const {
  if (!parts_.model->batching) return 1;
  uint64_t row_bytes = 1;
  for (const auto& [name, input] : parts_.inputs) row_bytes += input.row_bytes();
  const uint64_t most = std::min<uint64_t>(parts_.options.rows_max, parts_.model->batch_size_max());
  return std::clamp<uint64_t>(parts_.options.call_bytes_max / row_bytes, 1, std::max<uint64_t>(most, 1));
}

Status OfflineRun::run() {
  while (failed_.ok() && !is_finished() && !parts_.context.is_over()) {
    failed_ = fill_window();
    if (failed_.ok()) failed_ = send_due(parts_.options.now());
    if (failed_.ok()) wait_for_answers(parts_.options.now());
    advance();
    if (failed_.ok() && parts_.options.now() - kept_at_ >= parts_.options.keep_interval) failed_ = keep();
  }
  end_calls();
  advance();
  const Status kept = keep();
  if (!failed_.ok()) return failed_;
  FOLIOT_RETURN_IF_ERROR(kept);
  return is_finished() ? Status() : Status::unavailable("the run was ended before all rows were done");
}

Status OfflineRun::fill_window() {
  while (window_.size() < parts_.options.calls_max && next_ < rows_) {
    Range range{.begin = next_, .end = std::min(rows_, next_ + per_call_)};
    for (const auto& [name, input] : parts_.inputs) {
      FOLIOT_RETURN_IF_ERROR(input.read(range.begin, range.end, range.inputs.emplace_back()));
    }
    next_ = range.end;
    window_.push_back(std::move(range));
  }
  return Status();
}

Status OfflineRun::send_due(TimePoint now) {
  for (Range& range : window_) {
    if (range.state == Range::State::kToSend && range.send_at <= now) FOLIOT_RETURN_IF_ERROR(send(range, now));
  }
  return Status();
}

Status OfflineRun::send(Range& range, TimePoint now) {
  Query query{.name = request_.name,
              .arrival = now,
              .request_class = RequestClass::kOffline,
              .accuracy = request_.accuracy,
              .cost = request_.cost};
  size_t i = 0;
  for (const auto& [name, input] : parts_.inputs) {
    Shape shape = input.row_shape();
    if (parts_.model->batching) shape.insert(shape.begin(), static_cast<int64_t>(range.end - range.begin));
    const std::vector<std::byte>& bytes = range.inputs[i++];
    query.body_bytes += bytes.size();
    query.inputs.push_back({name, to_string(input.type()), std::move(shape), bytes});
  }
  const Inference::Started started = parts_.inference.start(query, {parts_.tenant, parts_.inbox.mailbox(), *this});
  if (const auto* error = std::get_if<CallError>(&started)) return send_again_or_fail(range, *error, now);
  range.call = std::get<CallId>(started);
  range.state = Range::State::kSent;
  ++under_way_;
  return Status();
}

Status OfflineRun::send_again_or_fail(Range& range, const CallError& error, TimePoint now) {
  if (!is_refused_for_now(error)) {
    return Status::invalid_argument(fmt::format("rows {} to {}: {}", range.begin, range.end - 1, error.message));
  }
  const OfflineOptions& options = parts_.options;
  range.wait = std::clamp(range.wait * 2, options.wait_first, options.wait_most);
  range.send_at = now + std::min(std::max(range.wait, error.retry_after.value_or(Duration())), options.wait_most);
  range.state = Range::State::kToSend;
  parts_.context.set_waiting(error.message);
  return Status();
}

void OfflineRun::on_answer(CallId call, std::unique_ptr<Answer> answer) {
  --under_way_;
  const auto found = std::ranges::find_if(
      window_, [&](const Range& range) { return range.state == Range::State::kSent && range.call == call; });
  FOLIOT_CHECK(found != window_.end());
  answer->settle();
  const Status status =
      answer->served() ? take(*found, *answer) : send_again_or_fail(*found, answer->error(), parts_.options.now());
  // Calls that are ended are no failures.
  if (!status.ok() && failed_.ok() && !parts_.context.is_over()) failed_ = status;
}

Status OfflineRun::take(Range& range, Answer& answer) {
  for (uint32_t i = 0; i < answer.output_count(); ++i) FOLIOT_RETURN_IF_ERROR(write(range, answer, i));
  range.variant = variant_of(answer);
  range.state = Range::State::kWritten;
  return Status();
}

Status OfflineRun::write(const Range& range, Answer& answer, uint32_t i) {
  const TensorSpec& spec = answer.output_spec(i);
  Shape row_shape = answer.output_shape(i);
  const uint64_t rows = range.end - range.begin;
  if (parts_.model->batching) {
    if (row_shape.empty() || row_shape.front() != static_cast<int64_t>(rows)) {
      return Status::invalid_argument(
          fmt::format("output '{}' has shape {}, and not a row for each of {}", spec.name, to_string(row_shape), rows));
    }
    row_shape.erase(row_shape.begin());
  }
  if (!outputs_.contains(spec.name)) FOLIOT_RETURN_IF_ERROR(open_output(spec, row_shape));
  const auto found = outputs_.find(spec.name);
  if (!found->second.has(spec.type, row_shape)) {
    return Status::invalid_argument(
        fmt::format("output '{}' has rows of shape {}, and earlier ones {}: their lengths differ", spec.name,
                    to_string(row_shape), to_string(found->second.row_shape())));
  }
  const std::string bytes = answer.take_output(i);
  if (bytes.size() != rows * byte_size(spec.type, row_shape)) {
    return Status::internal(fmt::format("output '{}' has {} bytes for {} rows", spec.name, bytes.size(), rows));
  }
  return found->second.write(range.begin, std::as_bytes(std::span(bytes)));
}

Status OfflineRun::open_output(const TensorSpec& spec, const Shape& row_shape) {
  output_bytes_ += rows_ * byte_size(spec.type, row_shape);
  FOLIOT_RETURN_IF_ERROR(parts_.claim_room(output_bytes_));
  FOLIOT_ASSIGN_OR_RETURN(OutputFile made,
                          OutputFile::open(parts_.output, spec.name, spec.type, row_shape, rows_, is_begun_));
  outputs_.emplace(spec.name, std::move(made));
  return Status();
}

// Over the first ranges that are written.
void OfflineRun::advance() {
  while (!window_.empty() && window_.front().state == Range::State::kWritten) {
    const Range& range = window_.front();
    done_ = range.end;
    if (!range.variant.empty()) variants_[range.variant] += range.end - range.begin;
    window_.pop_front();
  }
}

// That the rows that were read are those of the inputs, and that what was written is found where it was to be.
Status OfflineRun::check_files() const {
  for (const auto& [name, input] : parts_.inputs) {
    FOLIOT_RETURN_IF_ERROR(input.check_unchanged().with_context(fmt::format("input '{}'", name)));
  }
  if (!parts_.find_output) return Status();
  const Result<Descriptor> folder = parts_.find_output();
  for (const auto& [name, output] : outputs_) {
    if (folder.ok() && output.is_in(*folder)) continue;
    return Status::invalid_argument(
        fmt::format("output {} was removed or replaced while the job wrote it: submit it again", output.file_name()));
  }
  return Status();
}

// First the outputs, then that they are there.
Status OfflineRun::keep() {
  kept_at_ = parts_.options.now();
  if (done_ == kept_) return Status();
  FOLIOT_RETURN_IF_ERROR(check_files());
  for (auto& [name, output] : outputs_) FOLIOT_RETURN_IF_ERROR(output.sync());
  kept_ = done_;
  parts_.context.keep(done_, rows_, variants_);
  return Status();
}

void OfflineRun::wait_for_answers(TimePoint now) {
  Duration wait = kAttentionInterval;
  for (const Range& range : window_) {
    if (range.state == Range::State::kToSend) wait = std::min(wait, std::max(range.send_at - now, Duration()));
  }
  parts_.inbox.wait(wait);
}

// Those under way still use the inputs.
void OfflineRun::end_calls() {
  for (const Range& range : window_) {
    if (range.state == Range::State::kSent) parts_.inference.cancel(range.call);
  }
  while (under_way_ > 0) wait_for_answers(parts_.options.now());
}

}  // namespace foliot
