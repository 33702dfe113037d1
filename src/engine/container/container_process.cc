#include "engine/container/container_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "engine/container/container_launch.h"
#include "engine/device/plan.h"
#include "foundation/base/error_text.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

static_assert(std::endian::native == std::endian::little, "packets are little-endian");

// Types of packets.
constexpr char kDescription = 'D', kError = 'E', kMemory = 'M', kCall = 'C', kDone = 'R', kFailedRows = 'F';
// The largest, and one byte more, by which a larger one is noticed.
constexpr size_t kFailuresBytesMax = kBatchSizeMax / 8 + kBatchSizeMax * (sizeof(uint16_t) + kFailureBytesMax);
constexpr size_t kReceivedBytes = 1 + std::max(kContainerDescriptionBytesMax, kFailuresBytesMax) + 1;
// A wait for a packet is interrupted so often, to look at the time.
constexpr suseconds_t kTickMicroseconds = 10'000;
// A process that is starved of processor time has so many times start_timeout.
constexpr int kStarvedStart = 10;
// From the end of a process's connection to its own.
constexpr int kEndingMilliseconds = 200;
constexpr const char* kUnaskedPacket = "it broke the protocol with a packet that nothing asked for";

struct [[gnu::packed]] MemoryPacket {
  char type = kMemory;
  uint64_t bytes = 0;
};
struct [[gnu::packed]] CallPacket {
  char type = kCall;
  uint32_t rows = 0;
  uint64_t input_offset = 0;
  uint64_t output_offset = 0;
};
static_assert(sizeof(MemoryPacket) == 9 && sizeof(CallPacket) == 21);

ChildOptions child_options(const ContainerOptions& options, const TemporaryFolder& temporary, int socket) {
  const ContainerLaunch launch{.python = options.python,
                               .module = options.module,
                               .folder = options.folder,
                               .package = options.package,
                               .temporary = temporary.path(),
                               .readable = options.readable,
                               .cores = options.cores,
                               .memory_bytes = options.memory_bytes,
                               .disk_bytes = options.disk_bytes,
                               .network = options.network,
                               .gpus = options.gpus,
                               .namespaces = true,
                               .safety = options.safety};
  ChildOptions child{.command = options.launcher,
                     .environment = container_environment(options, temporary.path()),
                     .input = encode_launch(launch),
                     .output_file = socket};
  if (options.safety.kernel.namespaces) child.namespaces = ChildNamespaces{.network = options.network};
  return child;
}

// Memory without a name, all of it there, of a size that nothing can change.
Result<Descriptor> make_memory(uint64_t bytes) {
  Descriptor file(::memfd_create("foliot container", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const auto size = static_cast<off_t>(bytes);
  if (file.is_open() && ::ftruncate(file.number(), size) == 0 && ::fallocate(file.number(), 0, 0, size) == 0 &&
      ::fcntl(file.number(), F_ADD_SEALS, kSeals) == 0) {
    return file;
  }
  return Status::resource_exhausted(
      fmt::format("cannot make {} of memory to share with a container: {}", format_bytes(bytes), error_text(errno)));
}

}  // namespace

struct ContainerProcess::Packet {
  enum class Kind { kReceived, kLate, kEnded, kCancelled };
  Kind kind = Kind::kReceived;
  std::string_view bytes{};  // its type, and the rest

  char type() const { return bytes.empty() ? '\0' : bytes.front(); }
  std::string_view rest() const { return bytes.substr(1); }
};

// ---- Start and end

Result<std::unique_ptr<ContainerProcess>> ContainerProcess::start(const ContainerOptions& options, OnLine on_line,
                                                                  const std::function<bool()>& cancelled) {
  FOLIOT_ASSIGN_OR_RETURN(TemporaryFolder temporary, TemporaryFolder::make());
  FOLIOT_ASSIGN_OR_RETURN(SocketPair sockets, make_socket_pair());
  const timeval tick{.tv_sec = 0, .tv_usec = kTickMicroseconds};
  ::setsockopt(sockets.ours.number(), SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick));
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess child,
                          ChildProcess::start(child_options(options, temporary, sockets.theirs.number())));
  FOLIOT_ASSIGN_OR_RETURN(Descriptor handle, child.handle());
  sockets.theirs.close();
  std::unique_ptr<ContainerProcess> process(new ContainerProcess(
      std::move(temporary), std::move(child), std::move(sockets.ours), std::move(handle), options, std::move(on_line)));
  FOLIOT_RETURN_IF_ERROR(process->load(cancelled));
  return process;
}

ContainerProcess::ContainerProcess(TemporaryFolder temporary, ChildProcess child, Descriptor socket, Descriptor handle,
                                   const ContainerOptions& options, OnLine on_line)
    : temporary_(std::move(temporary)),
      memory_bytes_max_(options.memory_bytes),
      disk_bytes_max_(options.disk_bytes),
      batch_size_max_(options.batch_size_max),
      start_timeout_(options.start_timeout),
      socket_(std::move(socket)),
      handle_(std::move(handle)),
      received_(kReceivedBytes),
      lines_([this, on_line = std::move(on_line)](std::string_view line) {
        last_line_ = line;
        on_line(line);
      }),
      child_(std::move(child)) {}

ContainerProcess::~ContainerProcess() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

Status ContainerProcess::load(const std::function<bool()>& cancelled) {
  const Packet packet = receive(start_timeout_, While::kStarting, &cancelled);
  if (packet.kind != Packet::Kind::kReceived || packet.type() != kDescription) return why_not_loaded(packet);
  FOLIOT_ASSIGN_OR_RETURN(description_,
                          parse_description(packet.rest(), batch_size_max_.value_or(kContainerBatchSizeDefault)));
  description_.batch_size_max = std::min(description_.batch_size_max, batch_size_max_.value_or(kBatchSizeMax));
  return {};
}

Status ContainerProcess::why_not_loaded(const Packet& packet) {
  switch (packet.kind) {
    case Packet::Kind::kCancelled: return Status::unavailable("starting the container was cancelled");
    case Packet::Kind::kLate:
      return Status::resource_exhausted(
          fmt::format("the container was not ready within {}; raise start_timeout", format_duration(start_timeout_)));
    case Packet::Kind::kReceived:
      if (packet.type() == kError && packet.bytes.size() <= 1 + kContainerErrorBytesMax) {
        return Status::invalid_argument(escaped(packet.rest()));
      }
      return Status::invalid_argument("the container broke the protocol: its first packet is no description");
    case Packet::Kind::kEnded: break;
  }
  end_of_connection().ok();
  while (listen(Duration::seconds(1))) {
  }
  const std::string last = last_line_.empty() ? "" : "; its last line: " + last_line_;
  return Status::internal(fmt::format("the container ended before it was ready: {}{}", ending(), last));
}

void ContainerProcess::kill() { end("it was no longer wanted").ok(); }

Status ContainerProcess::end(std::string reason) {
  const MutexLock lock(mutex_);
  if (reason_.empty() && ended_.empty()) {
    reason_ = std::move(reason);
    ::syscall(SYS_pidfd_send_signal, handle_.number(), SIGKILL, nullptr, 0);
  }
  gone_.store(true, std::memory_order_release);
  return Status::unavailable(fmt::format("the container's process was killed: {}", reason_));
}

// A process that ends closes its connection first.
Status ContainerProcess::end_of_connection() {
  pollfd ending{handle_.number(), POLLIN, 0};
  if (::poll(&ending, 1, kEndingMilliseconds) != 1) return end("it closed its connection");
  gone_.store(true, std::memory_order_release);
  const MutexLock lock(mutex_);
  return Status::unavailable(reason_.empty() ? "the container's process has ended"
                                             : "the container's process was killed: " + reason_);
}

std::string ContainerProcess::ending() const {
  const MutexLock lock(mutex_);
  if (!reason_.empty()) return "it was killed: " + reason_;
  return ended_.empty() ? "its connection is closed" : ended_;
}

// ---- Packets

Status ContainerProcess::send(std::span<const std::byte> packet, int descriptor) {
  iovec content{const_cast<std::byte*>(packet.data()), packet.size()};  // NOLINT: sendmsg's type
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = ancillary.data();
    header.msg_controllen = ancillary.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(packet.size())) return Status();
  // Packets are sent one at a time: where unread ones fill the socket, others were taken for their answers.
  const bool is_full = sent < 0 && errno == EAGAIN;
  return is_full ? end(kUnaskedPacket) : end_of_connection();
}

// The clock is read only when a packet takes longer than a tick.
ContainerProcess::Packet ContainerProcess::receive(Duration timeout, While meanwhile,
                                                   const std::function<bool()>* cancelled) {
  const TimePoint begin = monotonic_now();
  while (true) {
    const ssize_t got = ::recv(socket_.number(), received_.data(), received_.size(), 0);
    if (got > 0) return {Packet::Kind::kReceived, std::string_view(received_.data(), static_cast<size_t>(got))};
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return {Packet::Kind::kEnded};
    const Duration taken = monotonic_now() - begin;
    if (taken >= timeout) {
      const bool starved = meanwhile == While::kStarting && taken - child_.queued_time() < timeout;
      if (!starved || taken >= timeout * kStarvedStart) return {Packet::Kind::kLate};
    }
    if (meanwhile == While::kWaiting) continue;
    listen(Duration());
    if (cancelled != nullptr && *cancelled && (*cancelled)()) return {Packet::Kind::kCancelled};
  }
}

Status ContainerProcess::expect_done(const Packet& packet, Duration timeout) {
  switch (packet.kind) {
    case Packet::Kind::kLate:
      late_.store(true, std::memory_order_release);
      return end(fmt::format("it did not answer within {}", format_duration(timeout)));
    case Packet::Kind::kEnded:
    case Packet::Kind::kCancelled: return end_of_connection();
    case Packet::Kind::kReceived: break;
  }
  if (packet.type() == kDone && packet.bytes.size() == 1) return {};
  if (packet.type() == kError && packet.bytes.size() <= 1 + kContainerErrorBytesMax) {
    return Status::internal(escaped(packet.rest()));
  }
  return end(fmt::format("it broke the protocol with a packet {} of {} bytes", in_quotes(packet.bytes.substr(0, 1)),
                         packet.bytes.size()));
}

// ---- Memory and calls

Status ContainerProcess::share_memory(uint64_t bytes) {
  FOLIOT_CHECK(memory_.empty() && bytes > 0);
  FOLIOT_ASSIGN_OR_RETURN(const Descriptor file, make_memory(bytes));
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.number(), 0);
  if (mapped == MAP_FAILED) {
    return Status::resource_exhausted(fmt::format("cannot map {}: {}", format_bytes(bytes), error_text(errno)));
  }
  memory_ = {static_cast<std::byte*>(mapped), bytes};
  const MemoryPacket packet{.bytes = bytes};
  FOLIOT_RETURN_IF_ERROR(send(std::as_bytes(std::span(&packet, 1)), file.number()));
  return expect_done(receive(start_timeout_, While::kListening), start_timeout_);
}

Status ContainerProcess::call(uint32_t rows, uint64_t input_offset, uint64_t output_offset, Duration timeout,
                              CallFailures* failures) {
  return run(rows, input_offset, output_offset, timeout, While::kWaiting, failures);
}

Status ContainerProcess::call_listening(uint32_t rows, uint64_t input_offset, uint64_t output_offset,
                                        Duration timeout) {
  return run(rows, input_offset, output_offset, timeout, While::kListening, nullptr);
}

Status ContainerProcess::run(uint32_t rows, uint64_t input_offset, uint64_t output_offset, Duration timeout,
                             While meanwhile, CallFailures* failures) {
  if (!alive()) return Status::unavailable("the container's process is gone");
  // Nothing is due: a packet that is there already would count as the answer.
  if (::recv(socket_.number(), received_.data(), received_.size(), MSG_DONTWAIT) > 0) {
    return end(kUnaskedPacket);
  }
  const CallPacket packet{.rows = rows, .input_offset = input_offset, .output_offset = output_offset};
  FOLIOT_RETURN_IF_ERROR(send(std::as_bytes(std::span(&packet, 1))));
  const Packet answer = receive(timeout, meanwhile);
  if (answer.kind == Packet::Kind::kReceived && answer.type() == kFailedRows) {
    return take_failures(answer, rows, failures);
  }
  Status status = expect_done(answer, timeout);
  // What it says of several rows may be about another client's.
  if (status.code() == StatusCode::kInternal && rows == 1 && failures != nullptr) {
    *failures = {RowSet(1), {std::string(status.message().substr(0, kFailureBytesMax))}};
  }
  return status;
}

// A bit for each row, the first of a byte the lowest; then of each that failed the length of its
// text, and the text.
Status ContainerProcess::take_failures(const Packet& packet, uint32_t rows, CallFailures* failures) {
  const size_t bytes = (rows + 7) / 8;
  std::string_view rest = packet.rest();
  bool sound = rest.size() >= bytes;
  CallFailures found{.rows = {}, .reasons = std::vector<std::string>(rows)};
  const std::string_view bits = rest.substr(0, bytes);
  rest.remove_prefix(bits.size());
  for (uint32_t row = 0; sound && row < rows; ++row) {
    if ((static_cast<unsigned char>(bits[row / 8]) >> (row % 8) & 1) == 0) continue;
    uint16_t length = 0;
    sound = rest.size() >= sizeof(length);
    if (!sound) break;
    std::memcpy(&length, rest.data(), sizeof(length));
    rest.remove_prefix(sizeof(length));
    sound = length <= kFailureBytesMax && length <= rest.size();
    if (!sound) break;
    found.rows.set(row);
    found.reasons[row] = escaped(rest.substr(0, length)).substr(0, kFailureBytesMax);
    rest.remove_prefix(length);
  }
  if (!sound || !rest.empty() || found.rows.none()) {
    return end(
        fmt::format("it broke the protocol with {} bytes about failed ones of {} rows", packet.bytes.size(), rows));
  }
  const auto first = static_cast<size_t>(found.rows._Find_first());
  const std::string& why = found.reasons[first];
  Status all_failed = Status::internal(why.empty() ? "its code failed on every row" : why);
  const bool some_are_good = failures != nullptr && found.rows.count() < rows;
  if (failures != nullptr) *failures = std::move(found);
  return some_are_good ? Status() : all_failed;
}

// ---- Supervision

bool ContainerProcess::listen(Duration timeout) {
  if (has_ended_) return false;
  const Duration wait = std::min(timeout, memory_bytes_max_ > 0 ? kContainerMemoryInterval : kContainerDiskInterval);
  const bool running = child_.listen(wait, said_, complained_);
  const TimePoint now = monotonic_now();
  lines_.add(OutputLines::kStandardOutput, said_, now);
  lines_.add(OutputLines::kStandardError, complained_, now);
  said_.clear();
  complained_.clear();
  if (running) {
    limit_memory(now);
    limit_disk(now);
    return true;
  }
  lines_.finish(now);
  has_ended_ = true;
  gone_.store(true, std::memory_order_release);
  const MutexLock lock(mutex_);
  ended_ = child_.ending();
  return false;
}

void ContainerProcess::limit_memory(TimePoint now) {
  if (memory_bytes_max_ == 0 || now - memory_measured_ < kContainerMemoryInterval) return;
  memory_measured_ = now;
  const uint64_t used = child_.memory_bytes();
  if (used <= memory_bytes_max_ + memory_.size()) return;  // what is shared is the server's
  end(fmt::format("it took {} of memory; it may take {}", format_bytes(used), format_bytes(memory_bytes_max_))).ok();
}

void ContainerProcess::limit_disk(TimePoint now) {
  if (now - disk_measured_ < kContainerDiskInterval) return;
  disk_measured_ = now;
  const uint64_t used = temporary_.bytes(disk_bytes_max_);
  if (used <= disk_bytes_max_) return;
  end(fmt::format("its temporary files took {}; they may take {}: raise disk in [container]", format_bytes(used),
                  format_bytes(disk_bytes_max_)))
      .ok();
}

}  // namespace foliot
