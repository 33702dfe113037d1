#include "cluster/transport/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint32_t kMagic = 0x544c4f46;                                // "FOLT"
constexpr size_t kVersionBytes = sizeof(uint32_t) + sizeof(uint16_t);  // until the end of the version
// Beyond that it is no epoch, so that the next one always exists.
constexpr uint64_t kGreetedEpochMax = uint64_t{1} << 62;
// How a record of TLS begins: of its handshake or an alert, version 3.x.
constexpr std::array kTlsRecordTypes{std::byte{22}, std::byte{21}};
constexpr std::byte kTlsVersion{3};
constexpr size_t kReceiveBytesMin = 4096;
constexpr size_t kStreamBytes = 65536;

void put_greeting(Role role, const Standing& standing, WireBytes& bytes) {
  WireWriter writer(bytes);
  writer.put(kMagic);
  writer.put(kWireVersion);
  writer.put(role);
  writer.put(standing.stands_by);
  writer.put(standing.epoch);
}

// Answered early: an alert is shorter than a greeting.
bool looks_like_tls(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && std::ranges::find(kTlsRecordTypes, bytes[0]) != kTlsRecordTypes.end() &&
         bytes[1] == kTlsVersion;
}

// Of a peer of another version no more than its version may ever come. `whole`: all of it has come.
Status read_greeting(std::span<const std::byte> bytes, bool whole, Role& role, Standing& standing) {
  WireReader reader(bytes);
  uint32_t magic;
  uint16_t version;
  reader.get(magic);
  reader.get(version);
  if (magic != kMagic) return Status::invalid_argument("its first bytes are not Foliot's protocol");
  if (version != kWireVersion) {
    return Status::invalid_argument(
        fmt::format("it speaks version {} of the protocol, this side version {}: run the same release on both sides",
                    version, kWireVersion));
  }
  if (!whole) return Status();
  reader.get(role, Role::kClient);
  reader.get(standing.stands_by);
  reader.get(standing.epoch);
  return reader.complete() && standing.epoch <= kGreetedEpochMax ? Status()
                                                                 : Status::invalid_argument("malformed greeting");
}

}  // namespace

Connection::Connection(const ConnectionOptions& options, ConnectionEnds ends, ConnectionHandler& host,
                       ConnectionDriver& driver)
    : options_(options),
      ends_(std::move(ends)),
      host_(host),
      standing_(host.standing()),
      driver_(driver),
      received_(kReceiveBytesMin) {
  put_greeting(options.role, standing_, unsent_);
}

std::span<std::byte> Connection::space() {
  if (end_ == received_.size() && begin_ > 0) {
    std::memmove(received_.data(), received_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Full of one unfinished frame, or of more than is read at a time: room for twice as much.
  if (end_ == received_.size()) received_.resize(received_.size() * 2);
  return std::span(received_).subspan(end_);
}

Status Connection::received(size_t bytes, TimePoint now) {
  FOLIOT_CHECK(!closed_ && bytes <= received_.size() - end_);
  // What fills all the room is a stream: take more of it at a time.
  const bool filled = bytes == received_.size() - end_;
  end_ += bytes;
  if (!session_) FOLIOT_RETURN_IF_ERROR(open(now));
  if (session_) FOLIOT_RETURN_IF_ERROR(handle_frames(now));
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (filled && received_.size() < kStreamBytes) received_.resize(received_.size() * 2);
  }
  return Status();
}

Status Connection::open(TimePoint now) {
  if (looks_like_tls(std::span(received_).subspan(begin_, end_ - begin_))) {
    return Status::invalid_argument("it speaks TLS, and this side does not: give both the flags --tls-link-...");
  }
  if (end_ - begin_ < kVersionBytes) return Status();
  const bool whole = end_ - begin_ >= kGreetingBytes;
  Role role = Role::kController;
  FOLIOT_RETURN_IF_ERROR(read_greeting(std::span(received_).subspan(begin_, std::min(end_ - begin_, kGreetingBytes)),
                                       whole, role, peer_standing_));
  if (!whole) return Status();
  begin_ += kGreetingBytes;
  FOLIOT_ASSIGN_OR_RETURN(session_, host_.on_open(*this, role, now));
  return Status();
}

Status Connection::handle_frames(TimePoint now) {
  while (hung_up_.ok() && end_ - begin_ >= kFrameLengthBytes) {
    uint32_t length;
    std::memcpy(&length, received_.data() + begin_, sizeof(length));
    if (length == 0 || length > options_.frame_bytes_max) {
      return Status::invalid_argument(
          fmt::format("a frame of {} bytes; allowed are 1 to {}", length, options_.frame_bytes_max));
    }
    if (end_ - begin_ < kFrameLengthBytes + length) break;
    const std::span<const std::byte> content = std::span(received_).subspan(begin_ + kFrameLengthBytes, length);
    begin_ += kFrameLengthBytes + length;
    const auto type = static_cast<uint8_t>(content[0]);
    if (type > static_cast<uint8_t>(kMessageTypeLast)) {
      return Status::invalid_argument(fmt::format("a frame of unknown type {}", type));
    }
    FOLIOT_RETURN_IF_ERROR(session_->on_frame({static_cast<MessageType>(type), content.subspan(1)}, now));
  }
  return hung_up_;
}

void Connection::sent(size_t bytes) {
  FOLIOT_CHECK(bytes <= unsent_bytes());
  sent_ += bytes;
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  }
}

void Connection::request_close(Status reason) {
  FOLIOT_CHECK(!reason.ok());
  if (hung_up_.ok()) hung_up_ = std::move(reason);
  driver_.on_unsent(*this);
}

Status Connection::check() const {
  if (!hung_up_.ok()) return hung_up_;
  if (unsent_bytes() <= options_.unsent_bytes_max) return Status();
  return Status::resource_exhausted(fmt::format("it does not read: {} bytes wait for it, the limit is {}",
                                                unsent_bytes(), options_.unsent_bytes_max));
}

void Connection::close(const Status& reason, bool notify_peer, TimePoint now) {
  FOLIOT_CHECK(!closed_);
  closed_ = true;
  if (!session_) return host_.on_no_greeting(ends_.peer, reason);
  if (notify_peer) encode(Goodbye{reason.ok() ? "it has stopped" : reason.message()}, unsent_);
  session_->on_close(reason, now);
  session_.reset();
}

}  // namespace foliot
