#include "worker/infer_executors.h"

namespace foliot {
namespace {

Outcome outcome_of(const Action& action, OutcomeStatus status) {
  return {.action = action.id, .type = action.type, .device = action.device, .model = action.model, .status = status};
}

}  // namespace

InputExecutor::InputExecutor(uint64_t io_cache_bytes, InferSlots& slots, ModelTable& models, Engine& engine,
                             OutcomeSink& outcomes, ExecExecutor& next, Waker& next_waker)
    : io_cache_(io_cache_bytes, slots.size()),
      io_cache_bytes_(io_cache_bytes),
      slots_(slots),
      models_(models),
      engine_(engine),
      outcomes_(outcomes),
      next_(next),
      next_waker_(next_waker),
      inbox_(slots.size()),
      returned_(slots.size()) {
  for (uint32_t slot = 0; slot < slots.size(); ++slot) free_slots_.push_back(slot);
}

void InputExecutor::give_back(uint32_t slot) { FOLIOT_CHECK(returned_.push(slot)); }

Executor::Step InputExecutor::poll(TimePoint now) {
  while (std::optional<uint32_t> slot = returned_.pop()) {
    io_cache_.release(slots_[*slot].block);
    free_slots_.push_back(*slot);
  }
  while (std::optional<Action> action = inbox_.pop()) {
    const OutcomeStatus status = begin(*action);
    if (status == OutcomeStatus::kDone) return {.run = true, .action = &slots_[current_].work.action};
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
  if (free_slots_.empty()) return OutcomeStatus::kQueueFull;
  const IoBytes bytes = model->io_bytes[*plan];
  // The input block is rounded up so that the output block behind it is aligned.
  const uint64_t output_at = (bytes.input + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  io_cache_.grow(io_cache_bytes_.load(std::memory_order_acquire));
  const std::optional<IoCache::Block> block = io_cache_.acquire(output_at + bytes.output);
  if (!block) return OutcomeStatus::kNoIoMemory;
  current_ = free_slots_.back();
  free_slots_.pop_back();
  InferSlot& slot = slots_[current_];
  slot.work = {action, block->offset, block->offset + output_at};
  slot.block = *block;
  return OutcomeStatus::kDone;
}

Status InputExecutor::perform() {
  engine_.input(slots_[current_].work);
  return Status();
}

void InputExecutor::finish(TimePoint start, TimePoint end, const Status& /*always ok*/) {
  slots_[current_].input_duration = end - start;
  slots_[current_].ready = end;
  next_.submit(current_);
  next_waker_.wake();
}

ExecExecutor::ExecExecutor(InferSlots& slots, ModelTable& models, Engine& engine, OutputExecutor& next,
                           Waker& next_waker)
    : slots_(slots),
      models_(models),
      engine_(engine),
      next_(next),
      next_waker_(next_waker),
      inbox_(slots.size()),
      queue_(slots.size()) {}

// The inbox and the queue hold as many as there are slots: neither can be full.
void ExecExecutor::submit(uint32_t slot) { FOLIOT_CHECK(inbox_.push(slot)); }

Executor::Step ExecExecutor::poll(TimePoint now) {
  while (std::optional<uint32_t> slot = inbox_.pop()) {
    const Action& action = slots_[*slot].work.action;
    queue_.push(*slot, action.earliest, action.latest);
  }
  while (true) {
    switch (queue_.head_state(now)) {
      case HeadState::kNone: return {.wake = TimePoint::infinite_future()};
      case HeadState::kWaiting: return {.wake = queue_.head_earliest()};
      case HeadState::kTooLate: pass_on(queue_.pop(), OutcomeStatus::kTooLate, now, now); continue;
      case HeadState::kOpen: break;
    }
    current_ = queue_.pop();
    const Action& action = slots_[current_].work.action;
    if (models_.begin_exec(action.model)) return {.run = true, .action = &action};
    pass_on(current_, OutcomeStatus::kNotLoaded, now, now);
  }
}

Status ExecExecutor::perform() { return engine_.run(slots_[current_].work); }

void ExecExecutor::finish(TimePoint start, TimePoint end, const Status& status) {
  models_.end_exec(slots_[current_].work.action.model);
  pass_on(current_, status.ok() ? OutcomeStatus::kDone : OutcomeStatus::kFailed, start, end);
}

void ExecExecutor::pass_on(uint32_t slot, OutcomeStatus status, TimePoint start, TimePoint end) {
  slots_[slot].status = status;
  slots_[slot].exec_start = start;
  slots_[slot].exec_end = end;
  next_.submit(slot);
  next_waker_.wake();
}

OutputExecutor::OutputExecutor(InferSlots& slots, Engine& engine, OutcomeSink& outcomes)
    : slots_(slots), engine_(engine), outcomes_(outcomes), inbox_(slots.size()) {}

void OutputExecutor::submit(uint32_t slot) { FOLIOT_CHECK(inbox_.push(slot)); }

Executor::Step OutputExecutor::poll(TimePoint now) {
  while (std::optional<uint32_t> slot = inbox_.pop()) {
    current_ = *slot;
    if (slots_[current_].status == OutcomeStatus::kDone) {
      return {.run = true, .action = &slots_[current_].work.action};
    }
    report(current_, Duration(), now);
  }
  return {.wake = TimePoint::infinite_future()};
}

Status OutputExecutor::perform() {
  engine_.output(slots_[current_].work);
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
  first_->give_back(index);
  outcomes_.report(outcome);
}

}  // namespace foliot
