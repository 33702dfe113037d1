#include "engine/worker/infer_executors.h"

#include <algorithm>

namespace foliot {
namespace {

Outcome outcome_of(const Action& action, OutcomeStatus status) {
  return {.action = action.id, .type = action.type, .device = action.device, .model = action.model, .status = status};
}

}  // namespace

InputExecutor::InputExecutor(uint64_t io_cache_bytes, uint32_t context_count, InferSlots& slots, ModelTable& models,
                             Engine& engine, OutcomeSink& outcomes, std::vector<ExecLane> lanes)
    : io_cache_(io_cache_bytes, slots.size() + context_count),
      batches_(context_count),
      io_cache_bytes_(io_cache_bytes),
      slots_(slots),
      models_(models),
      engine_(engine),
      outcomes_(outcomes),
      lanes_(std::move(lanes)),
      inbox_(slots.size()),
      returned_{SpscRing<uint32_t>(slots.size()), SpscRing<uint32_t>(slots.size())} {
  for (uint32_t slot = 0; slot < slots.size(); ++slot) free_slots_.push_back(slot);
}

void InputExecutor::give_back(uint32_t slot, bool from_large) {
  FOLIOT_CHECK(returned_[from_large ? 1 : 0].push(slot));
}

// What has a range before it that is over now is there with its successor at the latest.
void InputExecutor::take_returned() {
  for (SpscRing<uint32_t>& returned : returned_) {
    while (std::optional<uint32_t> index = returned.pop()) take_back(*index);
  }
}

void InputExecutor::take_back(uint32_t index) {
  const InferSlot& slot = slots_[index];
  const Action& action = slot.work.action;
  std::optional<Batch>& batch = batches_[action.context];
  free_slots_.push_back(index);
  if (action.range.whole()) {
    io_cache_.release(slot.block);
  } else if (slot.status != OutcomeStatus::kDone || action.range.ends()) {
    release(batch);
  } else {
    batch->last = action;
  }
}

void InputExecutor::release(std::optional<Batch>& batch) {
  if (!batch) return;
  io_cache_.release(batch->block);
  batch.reset();
}

const InputExecutor::Batch* InputExecutor::resumed(const Action& action) const {
  const std::optional<Batch>& batch = batches_[action.context];
  if (!batch) return nullptr;
  const Action& last = batch->last;
  const bool same = last.model == action.model && last.bucket == action.bucket &&
                    last.batch_size == action.batch_size && last.range.last == action.range.first &&
                    std::ranges::equal(last.rows, action.rows, {}, &BatchRows::Row::request, &BatchRows::Row::request);
  return same ? &*batch : nullptr;
}

ContextIndex InputExecutor::device_context(const Action& action) const {
  if (action.range.whole()) return action.lanes.first;
  return batches_.size() == 1 ? 0 : static_cast<ContextIndex>(lanes_.size()) + action.context;
}

Executor::Step InputExecutor::poll(TimePoint now) {
  take_returned();
  while (std::optional<Action> action = inbox_.pop()) {
    const OutcomeStatus status = begin(*action);
    if (status == OutcomeStatus::kDone) {
      return {.run = true, .action = &slots_[current_].work.action, .is_short = input_bytes_ <= kSmallBytes};
    }
    Outcome refused = outcome_of(*action, status);
    refused.start = refused.end = refused.output_end = now;
    outcomes_.report(refused);
  }
  return {.wake = TimePoint::infinite_future()};
}

OutcomeStatus InputExecutor::begin(const Action& action) {
  const WorkerModel* model = models_.find(action.model);
  if (model == nullptr) return OutcomeStatus::kUnknownModel;
  const std::optional<uint32_t> plan = model->plan(action.bucket, action.batch_size);
  if (!plan || action.rows.size() == 0 || action.rows.size() > action.batch_size) return OutcomeStatus::kUnknownModel;
  if (!is_lane_interval(action.lanes, static_cast<uint32_t>(lanes_.size()))) return OutcomeStatus::kUnknownModel;
  if (action.context >= batches_.size() || action.range.first >= action.range.last) return OutcomeStatus::kNoContext;
  if (!action.range.ends() && !model->operator_counts.empty() && action.range.last >= model->operator_counts[*plan]) {
    return OutcomeStatus::kNoContext;  // compiled for this device into other operators
  }
  take_returned();
  if (free_slots_.empty()) return OutcomeStatus::kQueueFull;
  std::optional<Batch>& batch = batches_[action.context];
  const ExecPart part{.range = action.range, .lanes = action.lanes, .context = device_context(action)};
  const IoBytes bytes = model->io_bytes[*plan];
  const bool is_large = action.range.ends() && bytes.output > kSmallBytes;
  input_bytes_ = action.range.begins() ? bytes.input : 0;
  if (!action.range.begins()) {
    const Batch* unfinished = resumed(action);
    if (unfinished == nullptr) return OutcomeStatus::kNoContext;
    current_ = free_slots_.back();
    free_slots_.pop_back();
    slots_[current_].work = {.action = action,
                             .part = part,
                             .input_offset = unfinished->block.offset,
                             .output_offset = unfinished->output_offset};
    slots_[current_].is_large = is_large;
    return OutcomeStatus::kDone;
  }
  release(batch);  // given up by the controller, which has no use for it any more
  // The input block is rounded up so that the output block behind it is aligned.
  const uint64_t output_at = (bytes.input + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  io_cache_.grow(io_cache_bytes_.load(std::memory_order_acquire));
  const std::optional<IoCache::Block> block = io_cache_.acquire(output_at + bytes.output);
  if (!block) return OutcomeStatus::kNoIoMemory;
  current_ = free_slots_.back();
  free_slots_.pop_back();
  InferSlot& slot = slots_[current_];
  slot.work = {
      .action = action, .part = part, .input_offset = block->offset, .output_offset = block->offset + output_at};
  slot.block = *block;
  slot.is_large = is_large;
  if (!action.range.ends()) batch = Batch{action, *block, slot.work.output_offset};
  return OutcomeStatus::kDone;
}

Status InputExecutor::perform() {
  const InferWork& work = slots_[current_].work;
  if (work.action.range.begins()) engine_.input(work);
  return Status();
}

void InputExecutor::finish(TimePoint start, TimePoint end, const Status& /*always ok*/) {
  slots_[current_].input_duration = end - start;
  slots_[current_].ready = end;
  const LaneInterval lanes = slots_[current_].work.action.lanes;
  slots_[current_].lanes_waiting.store(lanes.count);
  // The first lane last: it may begin at once, and end, before the others are submitted to.
  for (uint32_t lane = lanes.end(); lane-- > lanes.first;) {
    lanes_[lane].executor->submit(current_);
    lanes_[lane].waker->wake();
  }
}

ExecExecutor::ExecExecutor(uint32_t lane, LaneClaims& claims, InferSlots& slots, ModelTable& models, Engine& engine,
                           std::vector<Waker*> wakers, const OutputExecutors& next)
    : lane_(lane),
      claims_(claims),
      slots_(slots),
      models_(models),
      engine_(engine),
      wakers_(std::move(wakers)),
      next_(next),
      inbox_(slots.size()),
      queue_(slots.size()) {}

// The inbox and the queue hold as many as there are slots: neither can be full.
void ExecExecutor::submit(uint32_t slot) { FOLIOT_CHECK(inbox_.push(slot)); }

Executor::Step ExecExecutor::poll(TimePoint now) {
  if (!take_back()) return {.wake = TimePoint::infinite_future()};
  while (std::optional<uint32_t> slot = inbox_.pop()) {
    const Action& action = slots_[*slot].work.action;
    queue_.push(*slot, action.earliest, action.latest);
  }
  while (true) {
    switch (queue_.head_state(now)) {
      case HeadState::kNone: return {.wake = TimePoint::infinite_future()};
      case HeadState::kWaiting: return {.wake = queue_.head_earliest()};
      case HeadState::kTooLate: drop(queue_.pop(), now); continue;
      case HeadState::kOpen: break;
    }
    const uint32_t head = queue_.head();
    const Action& action = slots_[head].work.action;
    const TimePoint window_over = action.latest + Duration::nanoseconds(1);
    if (!leads(head)) {
      const uint32_t leader = action.lanes.first;
      claims_.offer(lane_, head);  // from here on the slot may be over, and another action's
      wakers_[leader]->wake();
      return {.wake = window_over};
    }
    if (!take_all_lanes(head)) return {.wake = window_over};
    current_ = queue_.pop();
    if (models_.begin_exec(action.model)) return {.run = true, .action = &action};
    give_lanes_back(current_);
    pass_on(current_, OutcomeStatus::kNotLoaded, now, now);
  }
}

bool ExecExecutor::take_back() {
  while (true) {
    switch (claims_.state(lane_)) {
      case LaneClaims::State::kFree: return true;
      case LaneClaims::State::kTaken: return false;
      case LaneClaims::State::kOffered:
        if (claims_.withdraw(lane_)) return true;
        continue;  // the leader was quicker
      case LaneClaims::State::kGivenBack:
        // What it was offered to is the head still: nothing was put in the queue since.
        queue_.pop();
        claims_.reset(lane_);
        return true;
    }
  }
}

bool ExecExecutor::take_all_lanes(uint32_t slot) {
  const LaneInterval lanes = lanes_of(slot);
  const uint32_t others = lanes.count - 1u;
  const uint32_t taken = claims_.take_all(lanes, slot);
  if (taken == others) return true;
  for (uint32_t i = 1; i <= taken; ++i) wakers_[lanes.first + i]->wake();
  return false;
}

void ExecExecutor::give_lanes_back(uint32_t slot) {
  for (uint32_t lane = lanes_of(slot).first + 1; lane < lanes_of(slot).end(); ++lane) {
    claims_.give_back(lane);
    wakers_[lane]->wake();
  }
}

// The last lane in whose queue it waits passes it on.
void ExecExecutor::drop(uint32_t slot, TimePoint now) {
  if (slots_[slot].lanes_waiting.fetch_sub(1) == 1) pass_on(slot, OutcomeStatus::kTooLate, now, now);
}

Status ExecExecutor::perform() {
  InferSlot& slot = slots_[current_];
  slot.failed_rows.reset();
  slot.work.failed_rows = &slot.failed_rows;
  return engine_.run(slot.work);
}

void ExecExecutor::finish(TimePoint start, TimePoint end, const Status& status) {
  models_.end_exec(slots_[current_].work.action.model);
  give_lanes_back(current_);
  const bool by_model = status.code() == StatusCode::kInvalidArgument;
  pass_on(current_,
          status.ok() ? OutcomeStatus::kDone
          : by_model  ? OutcomeStatus::kModelError
                      : OutcomeStatus::kFailed,
          start, end);
}

void ExecExecutor::pass_on(uint32_t slot, OutcomeStatus status, TimePoint start, TimePoint end) {
  slots_[slot].status = status;
  slots_[slot].exec_start = start;
  slots_[slot].exec_end = end;
  const OutputOf& next = slots_[slot].is_large && status == OutcomeStatus::kDone ? next_.large : next_.small;
  next.executor->submit(lane_, slot);
  next.waker->wake();
}

OutputExecutor::OutputExecutor(bool is_of_large, uint32_t lane_count, InferSlots& slots, Engine& engine,
                               OutcomeSink& outcomes)
    : is_of_large_(is_of_large), slots_(slots), engine_(engine), outcomes_(outcomes), queue_(slots.size()) {
  for (uint32_t lane = 0; lane < lane_count; ++lane) {
    inboxes_.push_back(std::make_unique<SpscRing<uint32_t>>(slots.size()));
  }
}

void OutputExecutor::submit(uint32_t lane, uint32_t slot) { FOLIOT_CHECK(inboxes_[lane]->push(slot)); }

Executor::Step OutputExecutor::poll(TimePoint now) {
  for (const auto& inbox : inboxes_) {
    while (std::optional<uint32_t> slot = inbox->pop()) {
      if (slots_[*slot].status == OutcomeStatus::kDone) {
        queue_.push(*slot, slots_[*slot].work.action.latest, TimePoint::infinite_future());
      } else {
        report(*slot, Duration(), now);
      }
    }
  }
  if (queue_.empty()) return {.wake = TimePoint::infinite_future()};
  current_ = queue_.pop();
  return {.run = true, .action = &slots_[current_].work.action, .is_short = !slots_[current_].is_large};
}

Status OutputExecutor::perform() {
  InferSlot& slot = slots_[current_];
  slot.conditions.clear();
  slot.work.conditions = &slot.conditions;
  slot.counts.clear();
  slot.work.counts = &slot.counts;
  if (slot.work.action.range.ends()) engine_.output(slot.work);
  return Status();
}

void OutputExecutor::finish(TimePoint start, TimePoint end, const Status& /*always ok*/) {
  report(current_, end - start, end);
}

void OutputExecutor::report(uint32_t index, Duration output_duration, TimePoint output_end) {
  const InferSlot& slot = slots_[index];
  Outcome outcome = outcome_of(slot.work.action, slot.status);
  outcome.start = slot.exec_start;
  outcome.end = slot.exec_end;
  outcome.duration = slot.exec_end - slot.exec_start;
  outcome.input_duration = slot.input_duration;
  outcome.output_duration = output_duration;
  outcome.output_end = output_end;
  outcome.ready = slot.ready;
  if (outcome.done()) {
    outcome.failed_rows = slot.failed_rows;
    outcome.conditions = slot.conditions;
    outcome.counts = slot.counts;
  }
  first_->give_back(index, is_of_large_);
  outcomes_.report(outcome);
}

}  // namespace foliot
