#include "control/fleet/pools/process_worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace foliot {
namespace {

constexpr Duration kFirstWait = Duration::seconds(1);
constexpr Duration kLongestWait = Duration::seconds(30);
// Longer lines are passed on in pieces.
constexpr size_t kLineBytesMax = 16 * 1024;
// A worker that ran for so long has no trouble at its start.
constexpr Duration kGoodRun = Duration::seconds(60);

// What ends a program when the thread that started it has ended: part of Debian's util-linux.
constexpr std::array kEndsWithParent = {"/usr/bin/setpriv", "--pdeathsig", "TERM", "--"};

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

Duration wait_after(uint32_t ends_in_a_row) {
  Duration wait = kFirstWait;
  for (uint32_t i = 1; i < ends_in_a_row && wait < kLongestWait; ++i) wait = wait * 2;
  return std::min(wait, kLongestWait);
}

Status ask_to_leave(const ChildProcess& process) {
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor handle, process.handle());
  ::syscall(SYS_pidfd_send_signal, handle.number(), SIGTERM, nullptr, 0);  // fails where it has ended
  return Status();
}

}  // namespace

ProcessWorkerPool::ProcessWorkerPool(ProcessWorkerPoolOptions options, OnLine on_line)
    : leave_most_(options.leave_most), on_line_(std::move(on_line)) {
  for (auto& [name, command] : options.commands) kinds_.push_back({.name = name, .command = std::move(command)});
}

ProcessWorkerPool::Kind* ProcessWorkerPool::find(std::string_view kind) {
  const auto found = std::ranges::find(kinds_, kind, &Kind::name);
  return found == kinds_.end() ? nullptr : &*found;
}

Result<uint32_t> ProcessWorkerPool::size(std::string_view kind) {
  const Kind* const found = find(kind);
  if (found == nullptr) return Status::not_found(fmt::format("no command starts workers of kind '{}'", kind));
  return found->size;
}

Status ProcessWorkerPool::set_size(std::string_view kind, uint32_t workers) {
  FOLIOT_RETURN_IF_ERROR(size(kind).status());
  Kind& found = *find(kind);
  found.size = workers;
  while (found.workers.size() < workers) {
    found.workers.push_back({.name = fmt::format("{}-{}", found.name, found.workers.size())});
  }
  return Status();
}

std::optional<std::string> ProcessWorkerPool::next_to_leave(std::string_view kind) {
  const Kind* const found = find(kind);
  if (found == nullptr || found->size == 0) return std::nullopt;
  return found->workers[found->size - 1].name;
}

void ProcessWorkerPool::attend(TimePoint now) {
  for (Kind& kind : kinds_) {
    for (uint32_t i = 0; i < kind.workers.size(); ++i) {
      Worker& worker = kind.workers[i];
      if (worker.process) read(worker, now);
      if (worker.process && (i >= kind.size || worker.leaving)) let_leave(worker, now);
      if (!worker.process && i < kind.size && worker.next_start <= now) start(kind, worker, now);
    }
    while (kind.workers.size() > kind.size && !kind.workers.back().process) kind.workers.pop_back();
  }
}

void ProcessWorkerPool::wait(Duration timeout, int also) const {
  std::vector<pollfd> polled = {{also, POLLIN, 0}};
  for (const Kind& kind : kinds_) {
    for (const Worker& worker : kind.workers) {
      if (!worker.process) continue;
      for (const int source : worker.process->sources()) polled.push_back({source, POLLIN, 0});
    }
  }
  ::poll(polled.data(), polled.size(), static_cast<int>(timeout.nanoseconds() / 1'000'000));
}

size_t ProcessWorkerPool::running() const {
  size_t count = 0;
  for (const Kind& kind : kinds_) {
    count += static_cast<size_t>(
        std::ranges::count_if(kind.workers, [](const Worker& worker) { return worker.process.has_value(); }));
  }
  return count;
}

void ProcessWorkerPool::start(const Kind& kind, Worker& worker, TimePoint now) {
  std::vector<std::string> command(kEndsWithParent.begin(), kEndsWithParent.end());
  command.insert(command.end(), kind.command.begin(), kind.command.end());
  command.insert(command.end(), {"--name", worker.name, "--kind", kind.name});
  auto process = ChildProcess::start({.command = std::move(command), .environment = own_environment()});
  worker.started = now;
  if (process.ok()) {
    worker.process.emplace(std::move(*process));
    on_line_(worker.name, "started");
    return;
  }
  worker.next_start = now + wait_after(++worker.ends_in_a_row);
  on_line_(worker.name, fmt::format("cannot be started: {}", process.status().message()));
}

void ProcessWorkerPool::read(Worker& worker, TimePoint now) {
  const bool runs = worker.process->listen(Duration(), worker.said, worker.complained);
  pass_lines(worker, worker.said, !runs);
  pass_lines(worker, worker.complained, !runs);
  if (!runs) note_end(worker, now);
}

void ProcessWorkerPool::note_end(Worker& worker, TimePoint now) {
  const std::string ending = worker.process->ending();
  worker.process.reset();
  if (std::exchange(worker.leaving, std::nullopt)) {
    worker.ends_in_a_row = 0;
    worker.next_start = now;
    on_line_(worker.name, fmt::format("has left ({})", ending));
    return;
  }
  worker.ends_in_a_row = now - worker.started >= kGoodRun ? 1 : worker.ends_in_a_row + 1;
  const Duration wait = wait_after(worker.ends_in_a_row);
  worker.next_start = now + wait;
  on_line_(worker.name,
           fmt::format("ended by itself ({}); it is started again in {:.0f} s", ending, wait.to_seconds()));
}

void ProcessWorkerPool::let_leave(Worker& worker, TimePoint now) {
  if (!worker.leaving) {
    worker.leaving = now;
    // Without a handle its time runs out.
    if (const Status asked = ask_to_leave(*worker.process); !asked.ok()) on_line_(worker.name, asked.message());
  } else if (now - *worker.leaving >= leave_most_) {
    worker.process->kill();
  }
}

void ProcessWorkerPool::pass_lines(const Worker& worker, std::string& text, bool whole) const {
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    on_line_(worker.name, std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  text.erase(0, begin);
  if ((!whole || text.empty()) && text.size() <= kLineBytesMax) return;
  on_line_(worker.name, text);
  text.clear();
}

}  // namespace foliot
